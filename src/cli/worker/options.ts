import type { Client } from '../../client/index.ts'
import type { Log } from './log.ts'
import type { Settings } from './settings.ts'
import type { State } from './state.ts'

/** Everything a worker needs to run. */
export type WorkerOptions = {
  client: Client
  settings: Settings
  state: State
  log: Log
  /** Environment of the worker, passed on to handlers. */
  env: Record<string, string | undefined>
  /** When aborted, the worker claims nothing more and ends once its handlers have ended. */
  stopping: AbortSignal
  /** When aborted, running handlers are ended too. */
  dying: AbortSignal
  /** Interval of the worker's heartbeats. */
  beatMs?: number
  /** Interval for extending a claim; a third of its lease by default. */
  leaseMs?: number
  /** Maximum wait of one long poll. */
  waitSeconds?: number
}
