/** The worker: waits for executions of its tasks, claims as many as it can run at once, runs them and reports their outcomes. */
import { PgcueError } from '../errors.ts'
import { pause, pauseBefore } from '../transport.ts'
import type { Claim } from '../types.ts'
import { createReporter, type Reporter } from './reporter.ts'
import { type Run, type RunOptions, runClaim } from './run.ts'
import type { Log } from './store.ts'

/** The service's maximum per claim request. */
const mostClaims = 10
/** Time for sending reports after the handlers have ended. */
const reportMs = 5000
const badKey = ['invalid_api_key', 'not_authenticated', 'insufficient_scope']

/** Everything a worker needs to run. */
export type LoopOptions = RunOptions & {
  workerId: string
  /** Tasks it handles; `*` stands for all others. */
  tasks: readonly string[]
  concurrency: number
  /** Time for running handlers to end when the worker is stopped. */
  drainMs: number
  /** Deals with what a former process of this worker has left. */
  recover: (reporter: Reporter) => Promise<void>
  /** When aborted, the worker claims nothing more and ends once its handlers have ended. */
  stopping: AbortSignal
  /** When aborted, running handlers are ended too. */
  dying: AbortSignal
  /** Interval of the worker's heartbeats. */
  beatMs?: number
  /** Maximum wait of one long poll. */
  waitSeconds?: number
}

/** Runs until stopped. @throws PgcueError if the key is invalid, and any error that prevents writing to the store */
export const runLoop = async (options: LoopOptions): Promise<void> => {
  const { client, workerId, tasks: handlers, concurrency, store, log, dying, beatMs = 60_000, waitSeconds = 30 } = options
  const tasks = handlers.includes('*') ? undefined : [...handlers]
  const reporter = createReporter(client, store, log)
  const running = new Map<Promise<void>, Run>()
  const stop = new AbortController()
  const stopping = stop.signal
  /** Ends the wait for a place. A race of promises would add a reaction to those that stay pending, each time. */
  let wake = () => {}
  stopping.addEventListener('abort', () => wake(), { once: true })
  when(options.stopping).then(() => stop.abort())
  /** A claim request got no response, so it may have claimed something. */
  let doubtful = false
  let failure: unknown

  const beat = () => client.workers.heartbeat({ worker_id: workerId, handlers: [...handlers] }, { retries: 0 })

  const start = (claim: Claim) => {
    const run = runClaim(options, reporter, claim)
    const done = run.done
      .catch(error => {
        failure ??= error
        stop.abort()
      })
      .finally(() => {
        running.delete(done)
        wake()
      })
    running.set(done, run)
  }

  /** Nothing is running, and no report is waiting. */
  const idle = async () => {
    while (running.size > 0 || reporter.size() > 0) await Promise.all([...running.keys(), reporter.settled()])
  }

  /**
   * Releases claims whose response was lost, by removing the worker. That is only safe while it holds nothing else, so it claims nothing
   * until then; as long as it sends heartbeats, no other worker gets those executions.
   */
  const settleDoubts = async () => {
    if (!doubtful) return
    await Promise.race([idle(), when(stopping)])
    stopping.throwIfAborted()
    await client.workers.delete(workerId, { signal: stopping })
    await beat()
    doubtful = false
  }

  const claimUpTo = async (free: number) => {
    const began = Date.now()
    const body = { worker_id: workerId, wait: waitSeconds, limit: Math.min(free, mostClaims), ...(tasks && { tasks }) }
    const claims = await client.executions.claimNext(body, { signal: stopping, retries: 0 })
    for (const claim of claims) start(claim)
    // An empty response without waiting: the service is stopping.
    if (claims.length === 0 && waitSeconds > 0 && Date.now() - began < 500) await pause(pauseBefore(2), stopping)
  }

  const claimUntilStopped = async () => {
    for (let failures = 0; !stopping.aborted; ) {
      const free = concurrency - running.size
      if (free === 0) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
        // Handlers that end at the same time make room for one claim of several.
        await new Promise(resolve => setTimeout(resolve))
        continue
      }
      try {
        await settleDoubts()
        await claimUpTo(free)
        failures = 0
      } catch (error) {
        if (stopping.aborted) return
        if (!(error instanceof PgcueError) || badKey.includes(error.code)) throw error
        doubtful ||= error.sent && (error.status === 0 || error.status >= 500)
        if (failures === 0) log('claim failed', { code: error.code, message: error.message })
        await pause(pauseBefore(++failures, error), stopping).catch(() => {})
      }
    }
  }

  await firstBeat(beat, log, stopping)
  if (stopping.aborted) return
  await options.recover(reporter)
  const beating = setInterval(() => beat().catch(error => log('heartbeat failed', { code: error.code })), beatMs)
  log('ready', { worker_id: workerId, handlers: handlers.join(','), service: client.baseUrl })
  await claimUntilStopped().catch(error => {
    failure ??= error
  })

  log('stopping', { reason: failure instanceof Error ? failure.message : null, running: running.size, seconds: options.drainMs / 1000 })
  const ends = Promise.all(running.keys())
  await within(options.drainMs, ends, dying)
  for (const run of running.values()) run.giveBack()
  when(dying).then(() => {
    for (const run of running.values()) run.kill()
  })
  await ends
  await within(reportMs, reporter.settled(), dying)
  clearInterval(beating)
  const unreported = reporter.size()
  reporter.stop()
  // Claims with waiting reports must be kept.
  if (unreported === 0) await client.workers.delete(workerId, { retries: 1, timeoutMs: 3000 }).catch(() => {})
  log('stopped', { unreported })
  if (failure !== undefined) throw failure
}

/** Registers, retrying as long as necessary; fails immediately if the key is invalid. */
const firstBeat = async (beat: () => Promise<unknown>, log: Log, stopping: AbortSignal) => {
  for (let failures = 0; !stopping.aborted; ) {
    try {
      return await beat()
    } catch (error) {
      if (!(error instanceof PgcueError) || (error.status >= 400 && error.status < 500 && error.status !== 429)) throw error
      if (failures === 0) log('registration failed', { code: error.code, message: error.message })
      await pause(pauseBefore(++failures, error), stopping).catch(() => {})
    }
  }
}

const when = (signal: AbortSignal) =>
  new Promise<void>(resolve => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))

/** Waits for `work` until the time is over or the signal is aborted. */
const within = async (ms: number, work: Promise<unknown>, signal: AbortSignal) => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, late, when(signal)])
  clearTimeout(timer)
}
