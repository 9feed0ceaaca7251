/** The worker of the command line: the client's loop, with commands as handlers and a state that outlives the process. */
import { runLoop } from '../../client/worker/loop.ts'
import { releaseClaim } from '../../client/worker/run.ts'
import { endLeftover } from './process.ts'
import { startCommand, type WorkerOptions } from './run.ts'
import type { CommandClaim, State } from './state.ts'

export const runWorker = ({ settings, state, ...options }: WorkerOptions): Promise<void> =>
  runLoop({
    ...options,
    workerId: state.id,
    tasks: [...settings.handlers.keys()],
    concurrency: settings.concurrency,
    drainMs: settings.drainMs,
    store: state,
    handle: (claim, held) => startCommand({ settings, state, ...options }, claim, held),
    recover: async reporter => {
      for (const claim of state.claims.all()) await giveBackLeftover(options, state, claim)
      for (const spooled of state.reports.all()) reporter.add(spooled)
    }
  })

/**
 * Handles a claim left by a killed worker: ends its handler if it is still running, and releases the execution. If a report is waiting, the
 * claim is left to that.
 */
const giveBackLeftover = async ({ client, log }: Pick<WorkerOptions, 'client' | 'log'>, state: State, claim: CommandClaim) => {
  if (state.reports.has(claim)) return state.claims.remove(claim)
  const killed = await endLeftover(claim.process)
  const answer = await releaseClaim(client, claim)
  log('released leftover claims', { execution_id: claim.execution_id, answer, handler_killed: killed })
  state.removeRun(claim)
  if (answer !== null) state.claims.remove(claim)
}
