/** `pgcue workers …`: the registry of workers. `pgcue worker` runs one. */
import { command, integer, none, only } from './command.ts'
import { offsetOf } from './cues.ts'

export const workersList = command({
  summary: 'List registered workers',
  options: {
    limit: { type: 'string', value: 'N', help: 'maximum number of results, 1 to 100' },
    offset: { type: 'string', value: 'N', help: 'number of results to skip' }
  },
  run: async context => {
    none(context)
    const { options, out } = context
    const offset = offsetOf(options.offset)
    const answer = await (await context.connect()).workers.list({ limit: integer(options.limit, 'limit', 1, 100), offset })
    out.list(
      { ...answer, offset },
      answer.workers,
      [
        ['id', worker => worker.worker_id],
        ['status', worker => worker.heartbeat_status],
        ['last heartbeat', worker => worker.last_heartbeat],
        ['handlers', worker => worker.handlers.join(', ')]
      ],
      'No workers. Start one with: pgcue worker'
    )
  }
})

export const workersDelete = command({
  args: 'ID',
  summary: 'Remove a worker and release its claims',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    await (await context.connect()).workers.delete(id)
    out.show({ worker_id: id, deleted: true }, () => out.line(`Removed ${id}`))
  }
})
