/**
 * Sweeps over cues that have passed an instant: reads the oldest, computes what comes next, and writes it, page by page. A cue that can't be moved
 * (it is locked, broken, or takes long to compute) is left out for a while, so that it holds up no other.
 */
import { bisect } from '../database/bisect.ts'
import type { Functions } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { type Calendars, createCalendars } from './calendars.ts'
import { type Computing, createComputing, type Steps } from './computing.ts'
import { createLeftOut } from './left-out.ts'

type Row = { cue_id: string; account_id: string; calendars: number[] | null }

/** What sweeps share. */
export type SweepOptions = {
  fn: Pick<Functions, 'calendarsByRevision'>
  calendars?: Calendars
  computing?: Computing
  onError?: (error: unknown, task: string) => void
}

type Kind<R, M> = {
  task: string
  read: (page: { limit: number; skip: string[] }) => Promise<R[]>
  compute: (row: R, calendars: readonly Calendar[]) => M | Steps<M>
  /** Resolves to a number, which the page adds up. */
  write: (moved: { row: R; move: M }[]) => Promise<number>
}

const pageSize = 200
const lockedMs = 1000
const brokenMs = 60_000

/** @returns a function that moves a page of cues; `isFull` if there may be more */
export const createSweep = <R extends Row, M>(
  { fn, calendars = createCalendars(fn), computing = createComputing(), onError = () => {} }: SweepOptions,
  { task, read, compute, write }: Kind<R, M>
) => {
  const leftOut = createLeftOut(() => performance.now())
  let ready: { row: R; move: M }[] = []
  let before = new Set<string>()
  const giveUp = (row: Row, error: unknown) => {
    leftOut.add(row.cue_id, brokenMs)
    onError(error, `${task} of cue ${row.cue_id}`)
  }

  const computeMove = async (row: R, used: readonly Calendar[]) => {
    leftOut.add(row.cue_id, Number.POSITIVE_INFINITY)
    try {
      const move = await computing.run(row.account_id, () => compute(row, used))
      ready.push({ row, move })
    } catch (error) {
      giveUp(row, error)
    }
  }

  return async (): Promise<{ count: number; isFull: boolean }> => {
    const rows = await read({ limit: pageSize, skip: leftOut.ids() })
    await calendars.load(rows)
    const computations = rows.flatMap(row => {
      const used = calendars.of(row)
      // One of the former page could not be moved.
      if (used && !before.has(row.cue_id)) return computeMove(row, used)
      leftOut.add(row.cue_id, lockedMs)
      return []
    })
    before = new Set(rows.map(({ cue_id }) => cue_id))
    // What accounts that are passed over compute later is written with a later page.
    await Promise.race([Promise.all(computations), computing.settled()])
    const moved = ready
    ready = []
    for (const { row } of moved) leftOut.delete(row.cue_id)
    const counts =
      moved.length > 0
        ? await bisect(
            moved,
            async some => [await write(some)],
            ({ row }, error) => giveUp(row, error)
          )
        : []
    return { count: counts.reduce((sum, count) => sum + count, 0), isFull: rows.length === pageSize }
  }
}

/** Goes on until a page has moved something, or none is left. */
export const untilMoved = (page: () => Promise<{ count: number; isFull: boolean }>) => async (): Promise<number> => {
  for (;;) {
    const { count, isFull } = await page()
    if (count > 0 || !isFull) return count
  }
}
