/**
 * Attempts that wait and are due: retries, fires, replays, what was recovered. Reads them page by page in the order of their instants, and
 * hands them out in turns by account. What an account has no room for stays here, so that its backlog, however long, is not read again for
 * every attempt of another account. Holds no state that matters: what it hands out is begun only where the database still agrees.
 */
import type { Functions } from '../database/functions.ts'
import { engineOf, type Share } from '../firing/due-cue.ts'
import { createTurnQueue } from '../firing/turn-queue.ts'

type Options = {
  fn: Pick<Functions, 'lookWaiting'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  share: () => Share
  /** Something was read. */
  onChange: () => void
  onError: (error: unknown, task: string) => void
}

/** What is held: its account, and whether it could not be begun before. */
export type Waiting = { execution_id: string; account_id: string; again: boolean }
/** Where reading goes on: behind this instant, in microseconds, and id. */
type Place = { at: number; id: string }

const pageSize = 1000
/** What is held of one account. The rest is read again when that is used up. */
const heldPerAccount = 500
/** An instant this far behind the place of reading is one whose transaction committed late; the farther past is read again by the way. */
const lateMs = 10_000
/** Between pages of what is read again, so that it costs the database a tenth of a core at most. */
const pauseMs = 20
/** What could not be begun was locked, or another engine has it: tried once more after this, and then left to the next regular look. */
const againMs = 250

const firstId = '00000000-0000-0000-0000-000000000000'
const before = (at: number): Place => ({ at: Math.floor(at) * 1000 - 1, id: firstId })
const isBefore = (a: Place, b: Place) => a.at < b.at || (a.at === b.at && a.id < b.id)

export const createWaiting = ({ fn, now, share, onChange, onError }: Options) => {
  const held = createTurnQueue<Waiting>()
  // Held, or being begun.
  const known = new Set<string>()
  // What was read and not held: where the first of each account is.
  const left = new Map<string, Place>()
  let front = before(0)
  // At once: what is there is unknown.
  let frontDueAt = 0
  // Reads again what lies behind the front.
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
    const { engines, place } = share()
    // Each engine begins with its own, so that they do not all try the same.
    const own = due.filter(row => engineOf(row.execution_id, engines) === place)
    const others = due.filter(row => engineOf(row.execution_id, engines) !== place)
    for (const row of [...own, ...others]) hold(row.execution_id, row.account_id, { at: row.due_at - 1, id: firstId })
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
    // Unless something came meanwhile that lies before.
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

  // A page is handed out before the next one is read.
  const isCrowded = () => hasMore && held.size >= pageSize
  const lookDueAt = () => (looking || isCrowded() ? Number.POSITIVE_INFINITY : Math.min(frontDueAt, backDueAt))

  const look = async () => {
    looking = true
    try {
      await (frontDueAt <= now() ? lookFront() : lookBack())
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
    /** An attempt waits and is due at this instant, in epoch milliseconds. */
    expect: (at: number): void => {
      const place = before(at)
      if (!isBefore(place, front)) frontDueAt = Math.min(frontDueAt, at)
      else if (front.at - place.at < lateMs * 1000) {
        front = place
        frontDueAt = 0
      } else readAgainFrom(place)
    },

    /** Reads on, if it is time. */
    lookIfDue: (): void => {
      if (lookDueAt() <= now()) void look()
    },

    /** When there is something to read or to take next, as far as is known. Epoch milliseconds. */
    get wakeAt() {
      return hasMore ? 0 : lookDueAt()
    },
    get held() {
      return held.size
    },

    /** Due attempts of accounts that are admitted. Each is to be passed to `ended` when it was begun, or was not. */
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

    /** These were to be begun, and of them these were. */
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
