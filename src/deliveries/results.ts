/**
 * Writes the results of attempts in batches: of each kind, those that end within 20 ms or while a statement is under way in one statement. While the
 * database is unavailable, results are held in memory. The attempt's number keeps a result from being written twice.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { bisect } from '../database/bisect.ts'
import type { BegunAttempt, Functions } from '../database/functions.ts'
import { isLockTimeout } from '../errors.ts'
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
  /** The headers of a failed response that are stored, as a JSON object. */
  headers: string | null
  /** A sentence for the cue's owner; null means delivered. */
  error: string | null
  retry_after_ms: number | null
  gone: boolean
  /** The outcome that the response itself reported, if one is awaited. */
  reported: ReportInResponse | null
}

type Ended = { attempt: BegunAttempt; result: AttemptResult }

type Options = {
  fn: Pick<Functions, 'finishAttempts' | 'settleAttempts' | 'heldAttempts'>
  flights: Pick<Flights, 'end' | 'giveUp'>
  /** A batch was written or given up. */
  onWritten: () => void
  log: Pick<FastifyBaseLogger, 'warn' | 'error'>
}

/** Maximum results per statement. */
export const batchSize = 1000
const waitMs = 20
/** Statements at the same time: one of each kind. */
export const writersAtMost = 2
const retryMs = 500

export type Results = ReturnType<typeof createResults>

export const createResults = (options: Options) => {
  const { fn } = options
  const plain = createWriter(options, batch => fn.finishAttempts(columns(batch)))
  const other = createWriter(options, batch => fn.settleAttempts({ ...columns(batch), ...otherColumns(batch) }))
  return {
    /** Queues a result to be written. */
    add: (attempt: BegunAttempt, result: AttemptResult): void =>
      (attempt.plain && result.error === null ? plain : other).add({ attempt, result }),

    /** Resolves when everything is written, or at the signal: results still held then lapse with their flights and are recovered. */
    stop: async (signal: AbortSignal): Promise<void> => {
      await Promise.all([plain.stop(signal), other.stop(signal)])
    }
  }
}

/** Writes the results of a kind, one statement at a time. */
const createWriter = ({ fn, flights, onWritten, log }: Options, statement: (batch: Ended[]) => Promise<unknown>) => {
  const queue: Ended[] = []
  let isWriting = false
  /** Results to be written later, because another transaction has locked a row that they need. */
  let putOff = 0
  let stopped = false

  const add = (...results: Ended[]): void => {
    queue.push(...results)
    if (!isWriting) void work()
  }

  const work = async () => {
    isWriting = true
    while (queue.length > 0) {
      if (queue.length < batchSize) await delay(waitMs)
      await write(new Set(queue.splice(0, batchSize)))
      onWritten()
    }
    isWriting = false
  }

  /** Writes results until none is left, except those that the database refuses. */
  const write = async (pending: Set<Ended>): Promise<void> => {
    for (let tries = 0; pending.size > 0 && !stopped; tries++) {
      try {
        await bisect([...pending], part => writePart(part, pending), giveUp)
        return
      } catch (error) {
        if (stopped) return
        if (isLockTimeout(error)) {
          await putOffLocked(pending)
          continue
        }
        if (tries === 0) log.warn({ err: error, attempts: pending.size }, 'results held in memory until the database is back')
        await delay(retryMs)
      }
    }
  }

  const writePart = async (part: Ended[], pending: Set<Ended>): Promise<never[]> => {
    await statement(part)
    for (const ended of part) pending.delete(ended)
    flights.end(part.map(({ attempt }) => attempt))
    return []
  }

  const giveUp = ({ attempt }: Ended, err: unknown) => {
    if (stopped) return
    log.error({ err, execution_id: attempt.execution_id }, 'result not recorded')
    flights.giveUp(attempt)
  }

  /** Puts off the results that need a locked row; all, if a whole table is locked. */
  const putOffLocked = async (pending: Set<Ended>): Promise<void> => {
    const { execution_ids, cue_ids } = columns([...pending])
    const locked = new Set(pending.size > 1 ? await fn.heldAttempts({ execution_ids, cue_ids }).catch(() => []) : [])
    const late = [...pending].filter(({ attempt }) => locked.size === 0 || locked.has(attempt.execution_id))
    for (const ended of late) pending.delete(ended)
    putOff += late.length
    setTimeout(() => {
      putOff -= late.length
      add(...late)
    }, retryMs)
  }

  return {
    add,
    stop: async (signal: AbortSignal): Promise<void> => {
      while ((isWriting || putOff > 0) && !signal.aborted) await delay(5)
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

const otherColumns = (batch: Ended[]) => ({
  headers: batch.map(({ result }) => result.headers),
  errors: batch.map(({ result }) => result.error),
  retry_after_ms: batch.map(({ result }) => result.retry_after_ms),
  gone: batch.map(({ result }) => result.gone),
  reports: batch.map(({ result }) => result.reported?.report ?? null),
  omitted: batch.map(({ result }) => result.reported?.omitted ?? null)
})
