/** `pgcue workers …`: the registry. `pgcue worker` is the worker itself. */
import { command, none, only } from './command.ts'

export const workersList = command({
  summary: 'List workers as they report themselves',
  run: async context => {
    none(context)
    const { out } = context
    const answer = await (await context.connect()).workers.list()
    out.list(
      answer,
      answer.workers,
      [
        ['id', worker => worker.worker_id],
        ['status', worker => worker.heartbeat_status],
        ['last heartbeat', worker => worker.last_heartbeat],
        ['handlers', worker => worker.handlers.join(', ')]
      ],
      'There are no workers. pgcue worker starts one.'
    )
  }
})

export const workersDelete = command({
  args: 'ID',
  summary: 'Remove a worker; what it holds may be claimed again',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    await (await context.connect()).workers.delete(id)
    out.show({ worker_id: id, deleted: true }, () => out.line(`${id} is removed`))
  }
})
