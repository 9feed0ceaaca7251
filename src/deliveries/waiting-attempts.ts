/**
 * Waiting attempts that are due: retries, fires, replays and recovered attempts. Reads them page by page, in the order in which they are due, into
 * the queue of due cues. Attempts of accounts without room stay there, so that a long backlog is not read again for every attempt of another
 * account. Its state may be outdated, since an attempt is begun only if the database still agrees.
 */
import { createCounts } from '../cache/counts.ts'
import type { Functions, LookWaitingRow } from '../database/functions.ts'
import { type DueQueue, inRotatedOrder, type WaitingAttempt } from '../firing/due-queue.ts'

type Options = {
  fn: Pick<Functions, 'lookWaiting'>
  queue: Pick<DueQueue, 'addWaiting' | 'count'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  /** Runs a task unless it is running, and then takes a turn. */
  run: (task: string, work: () => Promise<unknown>) => unknown
}

/** Where reading continues: after this instant, in microseconds, and id. */
type Place = { at: number; id: string }

const pageSize = 1000
/** Maximum attempts held for an account. The rest is read again when those are used up. */
const heldPerAccount = 500
/** An attempt due up to this long before the front was committed late, and is read at once. Older ones are read again in the background. */
const lateMs = 10_000
/** Between pages that are read again, so that this takes at most a tenth of a core of the database. */
const pauseMs = 20
/** An attempt that could not be begun is locked, or was begun by another engine: after this, it is read again. */
const againMs = 500
/** After a read that failed. */
const failedMs = 500

const firstId = '00000000-0000-0000-0000-000000000000'
const before = (at: number): Place => ({ at: Math.floor(at) * 1000 - 1, id: firstId })
const isBefore = (a: Place, b: Place) => a.at < b.at || (a.at === b.at && a.id < b.id)

/** Decides where to read next: at the front, where attempts come due, or behind it, where some were left or committed late. */
const createPlaces = ({ fn, now, hold }: Pick<Options, 'fn' | 'now'> & { hold: (row: LookWaitingRow) => void }) => {
  let front = before(0)
  // Due at once: nothing has been read yet.
  let frontDueAt = 0
  // Where attempts before the front are read again.
  let back: Place | null = null
  let backDueAt = Number.POSITIVE_INFINITY

  const readAgainFrom = (place: Place, afterMs = pauseMs) => {
    if (!back || isBefore(place, back)) back = place
    backDueAt = Math.min(backDueAt, now() + afterMs)
  }

  const readAt = async (from: Place): Promise<{ place: Place; isFull: boolean; next: number }> => {
    const rows = await fn.lookWaiting({ after: from.at, after_id: from.id, limit: pageSize })
    const due = rows.filter(row => row.is_due)
    for (const row of inRotatedOrder([...due], row => row.due_at)) hold(row)
    const last = due.at(-1)
    const next = rows.find(row => !row.is_due)
    return {
      place: last ? { at: last.due_at, id: last.execution_id } : from,
      isFull: due.length >= pageSize,
      next: next ? next.due_at / 1000 : Number.POSITIVE_INFINITY
    }
  }

  const readFront = async () => {
    frontDueAt = Number.POSITIVE_INFINITY
    const from = front
    const { place, isFull, next } = await readAt(from)
    // Unless an earlier attempt was announced meanwhile.
    if (front === from) front = place
    frontDueAt = Math.min(frontDueAt, isFull ? 0 : next)
  }

  const readBack = async () => {
    const from = back!
    back = null
    backDueAt = Number.POSITIVE_INFINITY
    const { place, isFull } = await readAt(from)
    if (isFull && isBefore(place, front)) readAgainFrom(place)
  }

  return {
    readAgainFrom,
    /** When to read next, in epoch milliseconds. */
    get dueAt() {
      return Math.min(frontDueAt, backDueAt)
    },
    /** Reads a page. */
    read: async (): Promise<void> => {
      try {
        await (frontDueAt <= now() ? readFront() : readBack())
      } catch (error) {
        readAgainFrom(front)
        frontDueAt = now() + failedMs
        throw error
      }
    },
    /** An attempt is due at `at`, in epoch milliseconds. */
    expect: (at: number): void => {
      const place = before(at)
      if (!isBefore(place, front)) frontDueAt = Math.min(frontDueAt, at)
      else if (front.at - place.at < lateMs * 1000) {
        front = place
        frontDueAt = 0
      } else readAgainFrom(place)
    }
  }
}

export const createWaitingAttempts = ({ fn, queue, now, run }: Options) => {
  // Ids of attempts that are in the queue, or being begun.
  const ids = new Set<string>()
  // Attempts in the queue.
  const queued = createCounts()
  // Account → place of its first attempt that was read but not held.
  const unheld = new Map<string, Place>()
  let isReading = false

  const hold = ({ due_at, is_due: _, ...row }: LookWaitingRow) => {
    const { execution_id, account_id } = row
    if (ids.has(execution_id)) return
    if (queued.of(account_id) < heldPerAccount) {
      ids.add(execution_id)
      queued.add(account_id, 1)
      queue.addWaiting({ ...row, due: due_at / 1000 })
    } else if (!unheld.has(account_id)) unheld.set(account_id, { at: due_at - 1, id: firstId })
  }
  const places = createPlaces({ fn, now, hold })

  // The next page is read after this one has been handed out.
  const isCrowded = () => queued.total >= pageSize && queue.count('send', now()) > 0
  const dueAt = () => (isReading || isCrowded() ? Number.POSITIVE_INFINITY : places.dueAt)

  const look = async () => {
    isReading = true
    await places.read().finally(() => {
      isReading = false
    })
  }

  return {
    /** A waiting attempt is due at `at`, in epoch milliseconds. */
    expect: places.expect,

    /** Reads the next page if it is time. */
    lookIfDue: (): void => {
      if (dueAt() <= now()) void run('read waiting attempts', look)
    },

    /** When to read next, as far as is known, in epoch milliseconds; 0 for at once. */
    get wakeAt() {
      return dueAt()
    },

    /** These attempts were taken from the queue. The caller must pass them to `ended` once they were begun or could not be. */
    taken: (attempts: readonly WaitingAttempt[]): void => {
      for (const { account_id } of attempts) {
        queued.add(account_id, -1)
        const place = unheld.get(account_id)
        if (!place || queued.of(account_id) > 0) continue
        unheld.delete(account_id)
        places.readAgainFrom(place)
      }
    },

    /** The attempts `tried` are done with; those in `begun` were begun. */
    ended: (tried: readonly WaitingAttempt[], begun: ReadonlySet<string>): void => {
      for (const { execution_id, due } of tried) {
        ids.delete(execution_id)
        if (!begun.has(execution_id)) places.readAgainFrom(before(due), againMs)
      }
    }
  }
}
