/**
 * Waiting attempts that are due: retries, fires, replays and recovered attempts. Reads them page by page, in the order in which they are due, and
 * hands them out in turns by account. Attempts of accounts without room stay here, so that a long backlog is not read again for every attempt of
 * another account. Its state may be outdated, since an attempt is begun only if the database still agrees.
 */
import type { Functions } from '../database/functions.ts'
import { inRotatedOrder } from '../firing/lane.ts'
import { createTurnQueue } from '../firing/turn-queue.ts'

type Options = {
  fn: Pick<Functions, 'lookWaiting'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  /** Attempts were read, or can be tried again. */
  onChange: () => void
  onError: (error: unknown, task: string) => void
  /** A task has succeeded. */
  onDone?: (task: string) => void
}

/** `again`: it could not be begun the first time. */
export type Waiting = { execution_id: string; account_id: string; again: boolean }
/** Where reading continues: after this instant, in microseconds, and id. */
type Place = { at: number; id: string }

const pageSize = 1000
/** Maximum attempts held for an account. The rest is read again when those are used up. */
const heldPerAccount = 500
/** An attempt due up to this long before the front was committed late, and is read at once. Older ones are read again in the background. */
const lateMs = 10_000
/** Between pages that are read again, so that this takes at most a tenth of a core of the database. */
const pauseMs = 20
/** An attempt that could not be begun is locked, or was begun by another engine: it is tried once more after this, and then left to the next page. */
const againMs = 250

const firstId = '00000000-0000-0000-0000-000000000000'
const before = (at: number): Place => ({ at: Math.floor(at) * 1000 - 1, id: firstId })
const isBefore = (a: Place, b: Place) => a.at < b.at || (a.at === b.at && a.id < b.id)

export const createWaiting = ({ fn, now, onChange, onError, onDone = () => {} }: Options) => {
  const held = createTurnQueue<Waiting>()
  // Ids of attempts that are held or being begun.
  const known = new Set<string>()
  // Account → place of its first attempt that was read but not held.
  const left = new Map<string, Place>()
  let front = before(0)
  // Due at once: nothing has been read yet.
  let frontDueAt = 0
  // Where attempts before the front are read again.
  let back: Place | null = null
  let backDueAt = Number.POSITIVE_INFINITY
  let looking = false
  let hasMore = false

  const readAgainFrom = (place: Place) => {
    if (!back || isBefore(place, back)) back = place
    backDueAt = Math.min(backDueAt, now() + pauseMs)
  }

  const hold = (execution_id: string, account_id: string, place: Place) => {
    if (known.has(execution_id)) return
    if (held.countOf(account_id) < heldPerAccount) {
      known.add(execution_id)
      held.add(account_id, { execution_id, account_id, again: false })
    } else if (!left.has(account_id)) left.set(account_id, place)
  }

  const lookAt = async (from: Place): Promise<{ place: Place; isFull: boolean; next: number }> => {
    const rows = await fn.lookWaiting({ after: from.at, after_id: from.id, limit: pageSize })
    const due = rows.filter(row => row.is_due)
    for (const row of inRotatedOrder(due, row => row.due_at)) hold(row.execution_id, row.account_id, { at: row.due_at - 1, id: firstId })
    const last = due.at(-1)
    const next = rows.find(row => !row.is_due)
    return {
      place: last ? { at: last.due_at, id: last.execution_id } : from,
      isFull: due.length >= pageSize,
      next: next ? next.due_at / 1000 : Number.POSITIVE_INFINITY
    }
  }

  const lookFront = async () => {
    frontDueAt = Number.POSITIVE_INFINITY
    const from = front
    const { place, isFull, next } = await lookAt(from)
    // Unless an earlier attempt was announced meanwhile.
    if (front === from) front = place
    frontDueAt = Math.min(frontDueAt, isFull ? 0 : next)
  }

  const lookBack = async () => {
    const from = back!
    back = null
    backDueAt = Number.POSITIVE_INFINITY
    const { place, isFull } = await lookAt(from)
    if (isFull && isBefore(place, front)) readAgainFrom(place)
  }

  // The next page is read after this one has been handed out.
  const isCrowded = () => hasMore && held.size >= pageSize
  const lookDueAt = () => (looking || isCrowded() ? Number.POSITIVE_INFINITY : Math.min(frontDueAt, backDueAt))

  const look = async () => {
    looking = true
    try {
      await (frontDueAt <= now() ? lookFront() : lookBack())
      onDone('read waiting attempts')
    } catch (error) {
      readAgainFrom(front)
      frontDueAt = now() + againMs
      onError(error, 'read waiting attempts')
    } finally {
      looking = false
      hasMore ||= held.size > 0
      onChange()
    }
  }

  return {
    /** A waiting attempt is due at `at`, in epoch milliseconds. */
    expect: (at: number): void => {
      const place = before(at)
      if (!isBefore(place, front)) frontDueAt = Math.min(frontDueAt, at)
      else if (front.at - place.at < lateMs * 1000) {
        front = place
        frontDueAt = 0
      } else readAgainFrom(place)
    },

    /** Reads the next page if it is time. */
    lookIfDue: (): void => {
      if (lookDueAt() <= now()) void look()
    },

    /** When to read or take next, as far as is known, in epoch milliseconds; 0 for at once. */
    get wakeAt() {
      return hasMore ? 0 : lookDueAt()
    },
    /** Number of due attempts that wait for room. */
    get held() {
      return held.size
    },

    /** Takes up to `limit` due attempts, in turns by account. The caller must pass them to `ended` once they were begun or could not be. */
    take: (limit: number, admit: (account: string) => boolean): Waiting[] => {
      const taken = held.take(limit, admit)
      hasMore = held.size > 0 && taken.length === limit
      for (const { account_id } of taken) {
        const place = held.countOf(account_id) === 0 && left.get(account_id)
        if (!place) continue
        left.delete(account_id)
        readAgainFrom(place)
      }
      return taken
    },

    /** The attempts `tried` are done with; those in `begun` were begun. */
    ended: (tried: Waiting[], begun: ReadonlySet<string>): void => {
      const failed: Waiting[] = []
      for (const one of tried) {
        if (begun.has(one.execution_id) || one.again) known.delete(one.execution_id)
        else failed.push({ ...one, again: true })
      }
      if (failed.length === 0) return
      setTimeout(() => {
        for (const one of failed) held.add(one.account_id, one)
        hasMore = true
        onChange()
      }, againMs)
    }
  }
}
