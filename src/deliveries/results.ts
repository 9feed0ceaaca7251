/**
 * Writes results of attempts, in batches: what ends within 20 milliseconds goes in one statement, at most two at a time. While the
 * database is away results are held, and written when it is back; the attempt's number keeps one from being written twice.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { BegunAttempt, Functions } from '../database/functions.ts'
import { isAway, isHeld } from '../errors.ts'
import type { Flights } from './flights.ts'
import type { Report } from './response-text.ts'

/** What became of one attempt. Instants in epoch milliseconds of the database's clock. */
export type AttemptResult = {
  started_at: number
  duration_ms: number
  http_status: number | null
  /** What of the answer is kept. */
  body: string | null
  /** A person's sentence; null means delivered. */
  error: string | null
  retry_after_ms: number | null
  gone: boolean
  /** What the answer itself reported, where an outcome is awaited. */
  reported: Report | null
}

type Ended = { attempt: BegunAttempt; result: AttemptResult }

type Options = {
  fn: Pick<Functions, 'finishAttempts' | 'settleAttempts' | 'heldAttempts'>
  flights: Flights
  /** Attempts that were written, or given up: their accounts' open deliveries. */
  onWritten: () => void
  log: Pick<FastifyBaseLogger, 'warn' | 'error'>
}

export const batchSize = 300
const waitMs = 20
const writersAtMost = 2
const retryMs = 500

export const createResults = ({ fn, flights, onWritten, log }: Options) => {
  const plain: Ended[] = []
  const other: Ended[] = []
  let writers = 0
  /** Results that somebody's lock keeps from being written. */
  let waiting = 0
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    while (writers < writersAtMost && (plain.length > 0 || other.length > 0)) {
      if (plain.length > 0) write(plain.splice(0, batchSize), finish)
      else write(other.splice(0, batchSize), settle)
    }
  }

  const write = async (batch: Ended[], statement: typeof finish) => {
    writers++
    await keepWriting(batch, statement)
    writers--
    onWritten()
    if (plain.length > 0 || other.length > 0) flush()
  }

  /** Tries until it is written. What cannot be written for its own sake is given up alone: its flight lapses. */
  const keepWriting = async (batch: Ended[], statement: typeof finish): Promise<void> => {
    const ended = new Map<number, number>()
    for (const { attempt } of batch) ended.set(attempt.flight_id, (ended.get(attempt.flight_id) ?? 0) + 1)
    let held = false
    while (!stopped) {
      const gone = flights.ending(ended)
      try {
        await statement(batch, gone)
        return flights.end(ended, gone)
      } catch (error) {
        if (stopped) return
        if (isHeld(error)) {
          const free = await withoutHeld(batch, statement)
          return free.length > 0 ? keepWriting(free, statement) : undefined
        }
        if (isAway(error)) {
          if (!held) log.warn({ err: error, attempts: batch.length }, 'results held in memory until the database is back')
          held = true
          await delay(retryMs)
        } else if (batch.length > 1) {
          const half = batch.length >> 1
          await keepWriting(batch.slice(0, half), statement)
          return keepWriting(batch.slice(half), statement)
        } else {
          const { flight_id, execution_id } = batch[0]!.attempt
          log.error({ err: error, execution_id }, 'result not recorded')
          return flights.giveUp(flight_id)
        }
      }
    }
  }

  /** Leaves what somebody's lock keeps from being written to a later try. @returns the others; none where a whole table is locked */
  const withoutHeld = async (batch: Ended[], statement: typeof finish): Promise<Ended[]> => {
    const { execution_ids, cue_ids } = columns(batch)
    const held = new Set(batch.length > 1 ? await fn.heldAttempts({ execution_ids, cue_ids }).catch(() => []) : [])
    const late = held.size > 0 ? batch.filter(({ attempt }) => held.has(attempt.execution_id)) : batch
    waiting += late.length
    setTimeout(() => {
      waiting -= late.length
      ;(statement === finish ? plain : other).push(...late)
      flush()
    }, retryMs)
    return held.size > 0 ? batch.filter(({ attempt }) => !held.has(attempt.execution_id)) : []
  }

  const finish = (batch: Ended[], endedFlights: number[]) => fn.finishAttempts({ ...columns(batch), ended_flights: endedFlights })

  const settle = (batch: Ended[], endedFlights: number[]) =>
    fn.settleAttempts({
      ...columns(batch),
      errors: batch.map(({ result }) => result.error),
      retry_after_ms: batch.map(({ result }) => result.retry_after_ms),
      gone: batch.map(({ result }) => result.gone),
      reported: batch.map(({ result }) => result.reported?.success ?? null),
      reported_results: batch.map(({ result }) => result.reported?.result ?? null),
      reported_errors: batch.map(({ result }) => result.reported?.error ?? null),
      ended_flights: endedFlights
    })

  return {
    add: (attempt: BegunAttempt, result: AttemptResult) => {
      if (attempt.plain && result.error === null) plain.push({ attempt, result })
      else other.push({ attempt, result })
      if (plain.length >= batchSize || other.length >= batchSize) flush()
      else timer ??= setTimeout(flush, waitMs)
    },

    /** Resolves when everything is written, or the signal ends the trying: what is held then lapses with its flight. */
    stop: async (signal: AbortSignal): Promise<void> => {
      while ((writers + waiting > 0 || plain.length > 0 || other.length > 0) && !signal.aborted) {
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
