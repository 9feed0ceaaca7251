/** `pgcue workers …`: the registry of workers. `pgcue worker` runs one. */
import { acting, filtersOf, listing } from './command.ts'

export const list = listing(
  ({ workers }, query) => workers.list(query),
  answer => answer.workers,
  [['id', 'worker_id'], ['status', 'heartbeat_status'], 'last_heartbeat', 'handlers'],
  { empty: 'No workers. Start one with: pgcue worker', options: filtersOf('listWorkers') }
)

export const remove = acting(
  ({ workers }, worker_id) => workers.delete(worker_id).then(() => ({ worker_id, deleted: true })),
  ({ worker_id }) => `Removed ${worker_id}`
)
