/**
 * Writes the results of attempts in batches: those that end within 20 ms in one statement. While one is under way, results gather for three
 * times as long before another one starts, as a statement costs as much as 20 results in it. While the database is unavailable, results are held
 * in memory. The attempt's number keeps a result from being written twice.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { bisect } from '../database/bisect.ts'
import type { BegunAttempt, Functions } from '../database/functions.ts'
import { isLockTimeout, isUnavailable, mayBeOfOne } from '../errors.ts'
import type { Flights } from './flights.ts'
import type { ReportInResponse } from './report.ts'

/** The result of one attempt. */
export type AttemptResult = {
  /** Epoch milliseconds, on the database's clock. */
  started_at: number
  duration_ms: number
  http_status: number | null
  /** The part of the response that is stored. */
  body: string | null
  /** A sentence for the cue's owner; null means delivered. */
  error: string | null
  retry_after_ms: number | null
  gone: boolean
  /** The outcome that the response itself reported, if one is awaited. */
  reported: ReportInResponse | null
}

type Ended = { attempt: BegunAttempt; result: AttemptResult }
type Statement = (batch: Ended[], endedFlights: number[]) => Promise<unknown>

type Options = {
  fn: Pick<Functions, 'finishAttempts' | 'settleAttempts' | 'heldAttempts'>
  flights: Flights
  /** A batch was written or given up. */
  onWritten: () => void
  log: Pick<FastifyBaseLogger, 'warn' | 'error'>
}

/** Maximum results per statement. */
export const batchSize = 1000
const waitMs = 20
const waitBesideMs = 60
/** Maximum statements at the same time. */
export const writersAtMost = 2
const retryMs = 500

export type Results = ReturnType<typeof createResults>

export const createResults = ({ fn, flights, onWritten, log }: Options) => {
  const plain: Ended[] = []
  const other: Ended[] = []
  let writers = 0
  /** Results to be written later, because another transaction has locked a row that they need. */
  let putOff = 0
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let gatheringSince = 0

  /** How long the results at hand are still left to gather, in milliseconds: not if they fill a statement. */
  const gatherMs = () => {
    if (plain.length >= batchSize || other.length >= batchSize) return 0
    return gatheringSince + (writers === 0 ? waitMs : waitBesideMs) - performance.now()
  }

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    while (writers < writersAtMost && plain.length + other.length > 0) {
      const ms = gatherMs()
      if (ms > 0) {
        timer = setTimeout(flush, ms)
        return
      }
      gatheringSince = performance.now()
      if (plain.length > 0) write(plain.splice(0, batchSize), finish)
      else write(other.splice(0, batchSize), settle)
    }
  }

  const write = async (batch: Ended[], statement: Statement) => {
    writers++
    await keepWriting(batch, statement)
    writers--
    onWritten()
    flush()
  }

  /** Writes a batch, except results that the database refuses. If it refuses all of them, they are held until it is back. */
  const keepWriting = (batch: Ended[], statement: Statement): Promise<unknown> =>
    untilBack(batch, () =>
      bisect(
        batch,
        async part => {
          await writeOrWait(part, statement)
          return []
        },
        ({ attempt: { flight_id, execution_id } }, err) => {
          if (stopped) return
          log.error({ err, execution_id }, 'result not recorded')
          flights.giveUp(flight_id)
        }
      )
    )

  /** Tries again while the database is unavailable. Rejects with any other error. */
  const untilBack = async (batch: Ended[], write: () => Promise<unknown>, mayPass = isUnavailable): Promise<void> => {
    for (let tries = 0; !stopped; tries++) {
      try {
        await write()
        return
      } catch (error) {
        if (stopped) return
        if (!mayPass(error)) throw error
        if (tries === 0) log.warn({ err: error, attempts: batch.length }, 'results held in memory until the database is back')
        await delay(retryMs)
      }
    }
  }

  /** Puts off results whose rows are locked. Rejects if the database refuses the batch. */
  const writeOrWait = (batch: Ended[], statement: Statement): Promise<void> => {
    const ended = new Map<number, number>()
    for (const { attempt } of batch) ended.set(attempt.flight_id, (ended.get(attempt.flight_id) ?? 0) + 1)
    const write = async () => {
      const gone = flights.ending(ended)
      try {
        await statement(batch, gone)
        flights.end(ended, gone)
      } catch (error) {
        if (stopped || !isLockTimeout(error)) throw error
        const free = await putOffLocked(batch, statement)
        if (free.length > 0) await keepWriting(free, statement)
      }
    }
    return untilBack(batch, write, error => !mayBeOfOne(error))
  }

  /** Puts off the results that need a locked row. Returns the others; none if a whole table is locked. */
  const putOffLocked = async (batch: Ended[], statement: Statement): Promise<Ended[]> => {
    const { execution_ids, cue_ids } = columns(batch)
    const locked = new Set(batch.length > 1 ? await fn.heldAttempts({ execution_ids, cue_ids }).catch(() => []) : [])
    const late = locked.size > 0 ? batch.filter(({ attempt }) => locked.has(attempt.execution_id)) : batch
    putOff += late.length
    setTimeout(() => {
      putOff -= late.length
      ;(statement === finish ? plain : other).push(...late)
      flush()
    }, retryMs)
    return locked.size > 0 ? batch.filter(({ attempt }) => !locked.has(attempt.execution_id)) : []
  }

  const finish: Statement = (batch, endedFlights) => fn.finishAttempts({ ...columns(batch), ended_flights: endedFlights })

  const settle: Statement = (batch, endedFlights) =>
    fn.settleAttempts({
      ...columns(batch),
      errors: batch.map(({ result }) => result.error),
      retry_after_ms: batch.map(({ result }) => result.retry_after_ms),
      gone: batch.map(({ result }) => result.gone),
      reports: batch.map(({ result }) => result.reported?.report ?? null),
      omitted: batch.map(({ result }) => result.reported?.omitted ?? null),
      ended_flights: endedFlights
    })

  return {
    /** Queues a result to be written. */
    add: (attempt: BegunAttempt, result: AttemptResult) => {
      if (plain.length + other.length === 0) gatheringSince = performance.now()
      if (attempt.plain && result.error === null) plain.push({ attempt, result })
      else other.push({ attempt, result })
      if (!timer || plain.length === batchSize || other.length === batchSize) flush()
    },

    /** Resolves when everything is written, or at the signal: results still held then lapse with their flights and are recovered. */
    stop: async (signal: AbortSignal): Promise<void> => {
      while ((writers + putOff > 0 || plain.length > 0 || other.length > 0) && !signal.aborted) {
        flush()
        await delay(5)
      }
      stopped = true
    }
  }
}

const columns = (batch: Ended[]) => ({
  execution_ids: batch.map(({ attempt }) => attempt.execution_id),
  attempts: batch.map(({ attempt }) => attempt.attempt),
  cue_ids: batch.map(({ attempt }) => attempt.cue_id),
  started_at: batch.map(({ result }) => new Date(result.started_at)),
  duration_ms: batch.map(({ result }) => result.duration_ms),
  http_status: batch.map(({ result }) => result.http_status),
  bodies: batch.map(({ result }) => result.body)
})
