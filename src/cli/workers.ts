/** `pgcue workers …`: the registry of workers. `pgcue worker` runs one. */
import { command, none, only } from './command.ts'
import { page, pageOf } from './page.ts'

export const workersList = command({
  summary: 'List registered workers',
  options: page,
  run: async context => {
    none(context)
    const { options, out } = context
    const asked = pageOf(options)
    const answer = await (await context.connect()).workers.list(asked)
    out.list(
      { ...answer, offset: asked.offset },
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
