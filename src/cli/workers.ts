/** `pgcue workers …`: the registry of workers. `pgcue worker` runs one. */
import type { WorkerFilter } from '../client/index.ts'
import { command, filtersOf } from './command.ts'

export const list = command({
  options: filtersOf('listWorkers'),
  run: async context => {
    const { out } = context
    const { client, body: page } = await context.ready<WorkerFilter>()
    const answer = await client.workers.list(page)
    out.list(
      { ...answer, offset: page.offset },
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

export const remove = command({
  run: async ({ args, connect, out }) => {
    const id = args[0]!
    await (await connect()).workers.delete(id)
    out.show({ worker_id: id, deleted: true }, () => out.line(`Removed ${id}`))
  }
})
