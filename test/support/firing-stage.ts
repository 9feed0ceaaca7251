/** Fires cues step by step as engines do, each with what it has read. */
import type { Functions, LookAheadByScheduleRow } from '../../src/database/functions.ts'
import { createCalendars } from '../../src/firing/calendars.ts'
import { cuesOf, dueColumns, followingColumns, isLast, movedColumns } from '../../src/firing/due-cue.ts'
import { catchUp, prepareInSteps } from '../../src/firing/preparing.ts'
import { finish } from './finish.ts'
import type { Stage } from './stage.ts'

const never = '100 years'

type CueColumns = 'cue_ids' | 'account_ids' | 'versions' | 'next_runs'
export type LookAheadRow = Omit<LookAheadByScheduleRow, CueColumns> & {
  cue_id: string
  account_id: string
  version: number
  next_run: Date
}

/** Looks ahead, and returns one row per cue. */
export const lookAhead = async (
  fn: Pick<Functions, 'lookAheadBySchedule'>,
  args: Parameters<Functions['lookAheadBySchedule']>[0]
): Promise<LookAheadRow[]> => {
  const rows = (await fn.lookAheadBySchedule(args)).flatMap(({ cue_ids, account_ids, versions, next_runs, ...schedule }) =>
    cue_ids.map((cue_id, n) => ({
      ...schedule,
      cue_id,
      account_id: account_ids[n]!,
      version: versions[n]!,
      next_run: new Date(Number(next_runs[n])) // text on connections without our parsers
    }))
  )
  return rows.sort((a, b) => +a.next_run - +b.next_run || a.cue_id.localeCompare(b.cue_id))
}

export type Seen = Awaited<ReturnType<typeof look>>

/** Time for an engine to prepare a few cues. */
export const prepared = async () => {
  for (let n = 0; n < 20; n++) await new Promise(resolve => setImmediate(resolve))
}

/** The due cues as an engine prepares them. */
export const look = async ({ fn, clock }: { fn: Functions; clock: Pick<Stage['clock'], 'now'> }) => {
  const rows = await fn.lookAheadBySchedule({ until: clock.now() })
  const calendars = createCalendars(fn)
  await calendars.load(rows)
  const due = cuesOf(rows).filter(cue => cue.at <= clock.now().getTime())
  return due.map(cue => finish(prepareInSteps(cue, calendars.of(cue.schedule)!)))
}

/** Fires cues that an engine has seen. Returns the slots that it sends. */
export const fire = async (cues: Seen, fn: Functions): Promise<Date[]> => {
  const columns = (some: Seen) => ({ ...dueColumns(some), missed_after: never })
  const missed = cues.filter(cue => cue.missed)
  if (missed.length > 0) await fn.catchUpCues({ cues: JSON.stringify(missed.map(cue => cue.missed)) })
  const refused = cues.filter(cue => cue.schedule.over_limit && !missed.includes(cue))
  if (refused.length > 0) await fn.refuseDueCues({ ...columns(refused), ...followingColumns(refused) })
  const sent = cues.filter(cue => !missed.includes(cue) && !cue.schedule.over_limit)
  const others = sent.filter(cue => !isLast(cue))
  const taken = others.length > 0 ? await fn.takeDueCues({ ...columns(others), ...movedColumns(others) }) : []
  const last = sent.filter(isLast)
  if (last.length > 0) taken.push(...(await fn.takeLastSlots(columns(last))))
  return taken.map(({ scheduled_for }) => scheduled_for)
}

/** What an engine decides about a cue that came due during an outage, from its row in psql. */
export const catchUpRow = ({ cue_id, version, next_run, ...schedule }: LookAheadRow) =>
  finish(catchUp({ cue_id, version, schedule, slot: { next_run, excludes: [] } }))
