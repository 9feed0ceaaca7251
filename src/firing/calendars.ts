/** Calendars for engines, by revision: what has been read never changes. */
import type { Functions } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'

/** A cue's row: the revisions of the calendars that it names. */
type Row = { calendars: number[] | null }

export type Calendars = ReturnType<typeof createCalendars>

/** If those that are known take more bytes, all are forgotten. */
const bytesKept = 32 * 2 ** 20

export const createCalendars = (fn: Pick<Functions, 'calendarsByRevision'>) => {
  const byRevision = new Map<number, Calendar>()
  let bytes = 0
  return {
    /** Reads what rows need. */
    load: async (rows: readonly Row[]): Promise<void> => {
      if (bytes > bytesKept) {
        byRevision.clear()
        bytes = 0
      }
      const revisions = [...new Set(rows.flatMap(({ calendars }) => calendars ?? []))].filter(revision => !byRevision.has(revision))
      if (revisions.length === 0) return
      for (const { revision, ...calendar } of await fn.calendarsByRevision({ revisions })) {
        byRevision.set(revision, calendar as Calendar)
        bytes += 50 * calendar.dates.length + 200 * (calendar as Calendar).ranges.length + 1000
      }
    },
    /** Those of a row; undefined if one has changed since, so that the row is out of date. */
    of: ({ calendars }: Row): Calendar[] | undefined => {
      if (!calendars || calendars.length === 0) return none
      const loaded = calendars.flatMap(revision => byRevision.get(revision) ?? [])
      return loaded.length === calendars.length ? loaded : undefined
    }
  }
}

const none: Calendar[] = []
