/** Runs one claim: starts its handler, extends its lease and passes its outcome to the reporter. */
import { PgcueError } from '../errors.ts'
import type { Methods } from '../methods.ts'
import type { CallOptions } from '../transport.ts'
import type { Claim } from '../types.ts'
import { keepLease } from './lease.ts'
import type { Reporter } from './reporter.ts'
import type { Held, Log, Spooled, Store } from './store.ts'

/** A running handler. */
export type Handling = {
  /** Its time, after which it is stopped. */
  timeoutMs: number
  /** Resolves when it has ended, or was stopped. */
  ended: Promise<unknown>
  /** Stops it, at once if `hard`. Returns false if it has ended already. */
  stop: (hard?: boolean) => boolean
  /** Returns what to report about it, after its end. */
  report: (timedOut: boolean) => Omit<Spooled, 'held'>
  /** Removes what it needed. */
  clean?: () => void
}

export type RunOptions = {
  client: Methods
  /** Starts the handler of a claim. */
  handle: (claim: Claim, held: Held) => Handling
  store: Store
  log: Log
  /** Interval for extending a claim; a third of its lease by default. */
  leaseMs?: number
}

export type Run = ReturnType<typeof runClaim>

export const runClaim = (options: RunOptions, reporter: Reporter, claim: Claim) => {
  const { client, store, log, handle, leaseMs = (claim.lease_seconds * 1000) / 3 } = options
  const { execution_id, claim_token, execution_token, attempt, task } = claim
  const held: Held = { execution_id, claim_token, execution_token, attempt }
  let cut: 'released' | 'lost' | 'timed out' | undefined
  let handling: Handling | undefined
  const end = (why: NonNullable<typeof cut>) => {
    if (handling?.stop()) cut ??= why
  }

  const work = async () => {
    log('claimed', { execution_id, task, attempt, cue_id: claim.cue_id })
    store.claims.put(held, held)
    handling = handle(claim, held)
    const lease = keepLease(client, held, leaseMs, code => {
      log('claim lost', { execution_id, code })
      end('lost')
    })
    const timer = setTimeout(end, handling.timeoutMs, 'timed out')
    await handling.ended.finally(() => {
      clearTimeout(timer)
      lease.end()
    })
    if (cut === 'lost' || cut === 'released') {
      if (cut === 'released') await giveBack()
      else store.claims.remove(held)
      return handling.clean?.()
    }
    const spooled = { held, ...handling.report(cut === 'timed out') }
    store.reports.put(held, spooled)
    store.claims.remove(held)
    handling.clean?.()
    reporter.add(spooled)
  }

  const giveBack = async () => {
    const answer = await releaseClaim(client, held, { timeoutMs: 3000 })
    log('released', { execution_id, answer })
    if (answer !== null) store.claims.remove(held)
  }

  const done = work().catch(async error => {
    log('run failed', { execution_id, message: error.message })
    handling?.stop(true)
    await giveBack()
    throw error
  })
  return { done, giveBack: () => end('released'), kill: () => handling?.stop(true) }
}

/** Releases a claim. Returns null if there was no response. */
export const releaseClaim = ({ executions }: Pick<Methods, 'executions'>, { execution_id, claim_token }: Held, options: CallOptions = {}) =>
  executions.release(execution_id, claim_token, options).then(
    () => 'released',
    error => (error instanceof PgcueError && error.status > 0 && error.status < 500 ? error.code : null)
  )
