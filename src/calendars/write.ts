/** Changes of calendars: the cues that use one get their new next runs in the same transaction. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Caller } from '../accounts/admission.ts'
import { changeInTurn } from '../cues/write.ts'
import type { CalendarCuesRow, Functions } from '../database/functions.ts'
import type { Transaction } from '../database/transaction.ts'
import { createYield } from '../database/yield.ts'
import { ApiError, invalid } from '../errors.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { readDates, readRange } from '../schedule/parse-exclusions.ts'
import { createAllowance, excessOf, slotsAfter } from '../schedule/parse-schedule.ts'
import { excludedFrom, planOf, runOf } from '../schedule/plan.ts'
import { type Rules, scheduleOf } from '../schedule/schedule.ts'
import type { PutCalendar } from './schemas.ts'

/** Cues that come due while a change is being written would be locked then, so they are written last. */
const soonMs = 2000
/** If more of them than this are due soon, the change waits for them to fire. */
const crowd = 500
const waitMs = 500
const waits = 5
/** Tries to move cues that others hold. */
const tries = 50
const retryMs = 20

type Moved = { next_run: Date | null; next_slot: Date | null; excluded_at: Date | null }

/** Creates or replaces a calendar; returns whether it is new. @throws ApiError also if a cue would never run again */
export const putCalendar = async (app: FastifyInstance, caller: Caller, name: string, request: PutCalendar): Promise<boolean> => {
  const content = readCalendar(request)
  const description = request.description ?? null
  return changeInTurn(`${caller.account_id} calendars`, async () => {
    const stored = await app.db
      .selectFrom('calendar_view')
      .select(['revision', 'description', 'dates', 'ranges'])
      .where('account_id', '=', caller.account_id)
      .where('name', '=', name)
      .executeTakeFirst()
    if (stored && description === stored.description && isSame(content, stored as unknown as Calendar)) return false
    const movesOf = createMoves(name, content, app.now())
    await afterHerd(app, caller, name, movesOf)
    const transaction = app.transaction(caller.account_id, async () => {})
    try {
      const revision = stored?.revision ?? null
      await transaction.fn.putCalendar({ name, description, ...content, ranges: JSON.stringify(content.ranges), revision, ...caller })
      await moveCues(transaction.fn, caller, name, movesOf, new Date(+app.now() + soonMs))
      await transaction.commit(async () => {})
    } catch (error) {
      await transaction.rollback()
      throw error
    }
    return !stored
  })
}

const readCalendar = ({ dates = [], ranges = [] }: PutCalendar): Calendar => {
  const fail = (member: string) => (path: (string | number)[], rule: string) => {
    throw invalid([{ type: 'value_error', loc: ['body', member, ...path], msg: `Value error, ${rule}`, input: null }])
  }
  return {
    dates: readDates(dates, fail('dates')),
    ranges: ranges.map((range, n) => readRange(range, (path, rule) => fail('ranges')([n, ...path], rule)))
  }
}

const isSame = (a: Calendar, b: Calendar) =>
  JSON.stringify(a.dates) === JSON.stringify(b.dates) &&
  JSON.stringify(a.ranges) === JSON.stringify(b.ranges.map(({ from, to }) => ({ from, to })))

type Moves = ReturnType<typeof createMoves>

/** Computes what changes for cues, once for each row that is the same as before. */
const createMoves = (name: string, content: Calendar, now: Date) => {
  const planned = new Map<string, { version: number; next_run: Date | null; names: string; move: Moved }>()
  return async (fn: Pick<Functions, 'namedCalendars'>, { account_id }: Caller, rows: CalendarCuesRow[]): Promise<Moved[]> => {
    const namesOf = (row: CalendarCuesRow) => (row.schedule_rules as Rules).exclude_calendars!
    const names = [...new Set(rows.flatMap(namesOf))].filter(other => other !== name)
    const named = names.length > 0 ? await fn.namedCalendars({ account_id, names }) : []
    const calendars = new Map(named.map(calendar => [calendar.name, calendar]))
    const yieldToRequests = createYield()
    const allow = createAllowance(rows.length)
    const moves: Moved[] = []
    for (const row of rows) {
      const revisions = namesOf(row)
        .map(other => calendars.get(other)?.revision)
        .join()
      const before = planned.get(row.cue_id)
      const isKnown = before?.version === row.version && +(before.next_run ?? 0) === +(row.next_run ?? 0) && before.names === revisions
      const used = namesOf(row).flatMap(other => (other === name ? content : ((calendars.get(other) as Calendar | undefined) ?? [])))
      if (!isKnown) await yieldToRequests()
      try {
        const move = isKnown ? before.move : allow(() => moveOf(row, used, now))
        planned.set(row.cue_id, { version: row.version, next_run: row.next_run, names: revisions, move })
        moves.push(move)
      } catch (error) {
        throw refusalFor(row.cue_id, error)
      }
    }
    return moves
  }
}

/** A slot that is due stays, and one that fires later within its window: engines leave out what is excluded by then. */
const moveOf = (row: CalendarCuesRow, calendars: Calendar[], now: Date): Moved => {
  const { next_run, next_slot, last_slot } = row
  const excess = excessOf(calendars)
  if (excess) throw refused(`makes ${excess}, over the calendars of cue ${row.cue_id}`)
  if (next_run === null) return { next_run, next_slot, excluded_at: null }
  const schedule = scheduleOf(row)
  const plan = planOf(schedule, row.cue_id, calendars)
  const slot = next_slot ?? next_run
  const stays = next_run <= now || (slot <= now && !plan.excludedAt(+slot))
  const search = slotsAfter(schedule, plan, new Date(Math.max(+now, +(last_slot ?? 0))))
  const run = stays ? { slot, due: next_run } : runOf(plan, search.next().value ?? Infinity)
  if (!run) throw refused(`leaves no slot for cue ${row.cue_id}`)
  return {
    next_run: run.due,
    next_slot: (schedule as Rules).window === undefined ? null : run.slot,
    excluded_at: row.excluded_at && row.excluded_at <= now ? row.excluded_at : excludedFrom(plan, now)
  }
}

const refused = (rule: string) => {
  const msg = `Value error, ${rule}; pause or delete that cue first, or change its schedule`
  return invalid([{ type: 'value_error', loc: ['body'], msg, input: null }])
}

/** Names the cue whose schedule is to blame. */
const refusalFor = (cue_id: string, error: unknown) =>
  error instanceof ApiError && error.detail?.[0]?.loc[1] === 'schedule'
    ? refused(`does not work with cue ${cue_id}: ${error.message}`)
    : error

/** Computes in advance, and waits if very many cues are about to fire. */
const afterHerd = async (app: FastifyInstance, caller: Caller, name: string, movesOf: Moves): Promise<void> => {
  for (let n = 0; n < waits; n++) {
    const rows = await app.fn.calendarCues({ name, ...caller })
    await movesOf(app.fn, caller, rows)
    const soon = new Date(+app.now() + soonMs)
    if (rows.filter(({ next_run }) => next_run && next_run <= soon).length <= crowd) return
    await sleep(waitMs)
  }
}

const moveCues = async (fn: Transaction['fn'], caller: Caller, name: string, movesOf: Moves, soon: Date): Promise<void> => {
  let remaining: string[] | undefined
  for (let n = 0; n < tries; n++) {
    if (n > 1) await sleep(retryMs)
    const rows = await fn.calendarCues({ name, ...(remaining && { cue_ids: remaining }), ...caller })
    if (rows.length === 0) return
    const moves = await movesOf(fn, caller, rows)
    remaining = await fn.moveCalendarCues({
      cue_ids: rows.map(({ cue_id }) => cue_id),
      versions: rows.map(({ version }) => version),
      expected: rows.map(({ next_run }) => next_run),
      next_runs: moves.map(({ next_run }) => next_run),
      next_slots: moves.map(({ next_slot }) => next_slot),
      excluded_at: moves.map(({ excluded_at }) => excluded_at),
      ...(n === 0 && { later_than: soon })
    })
    if (remaining.length === 0) return
  }
  throw Object.assign(new Error('cues are locked by another transaction'), { code: '55P03' })
}
