import type { Client } from '../../client/index.ts'
import type { Log } from './log.ts'
import type { Settings } from './settings.ts'
import type { State } from './state.ts'

/** What a worker is made of. */
export type WorkerOptions = {
  client: Client
  settings: Settings
  state: State
  log: Log
  /** The environment that handlers get, beside their own. */
  env: Record<string, string | undefined>
  /** Aborted when it should claim nothing more, and end when its handlers have. */
  stopping: AbortSignal
  /** Aborted when handlers have no more time either. */
  dying: AbortSignal
  /** How often it shows that it lives. */
  beatMs?: number
  /** How often a claim is extended; a third of its lease by default. */
  leaseMs?: number
  /** How long one request may wait for executions. */
  waitSeconds?: number
}
