/** A herd of webhook cues, and queries for its state. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { addAccounts, addCues, schedule } from '../stage/seed.ts'

/** A slot that must be delivered exactly once. Instants in epoch milliseconds. */
export type Slot = { cue_id: string; scheduled_for: number }
/** An attempt that a replica has begun and whose result is not recorded. */
export type Held = { execution_id: string; attempt: number }

export type Found = {
  executions: { id: string; cue_id: string; scheduled_for: number; status: string; attempts: number }[]
  attempts: { execution_id: string; attempt: number; result: 'success' | 'failed' | 'lost' }[]
  flights: number
  jobs: number
  deadlocks: number
}

/**
 * Creates `count` cues with one slot each that is due soon: four fifths at one instant, the others spread over the time after it. Receivers
 * take 100 to 500 ms; a tenth first responds with 500, and a tenth with 429.
 */
export const raiseHerd = async (pool: pg.Pool, count: number, hook: string): Promise<Slot[]> => {
  const ids = await addCues(pool, { accounts: await addAccounts(pool, 20), count, hook })
  // The following slots are after the end of the scenario.
  const away = new Date(Date.now() + 12 * 3_600_000)
  await pool.query(
    `update cue.cues c
        set callback_url = $2 || case u.n % 10 when 0 then '/500/' when 1 then '/429/' else '/200/' end || 100 + u.n * 37 % 401,
            retry_backoff_minutes = '{0.005}', cron = $3
       from unnest($1::text[]) with ordinality as u (id, n) where c.id = u.id`,
    [ids, hook, `${away.getUTCMinutes()} ${away.getUTCHours()} * * *`]
  )
  const first = Date.now() + 3000 + count / 4
  const slots = ids.map((cue_id, n) => ({ cue_id, scheduled_for: Math.round(first + (n % 5 === 4 ? n / 2 : 0)) }))
  await schedule(
    pool,
    ids,
    slots.map(slot => slot.scheduled_for)
  )
  return slots
}

/** Returns what all replicas hold at this moment. */
export const readHeld = async (pool: pg.Pool): Promise<Held[]> => {
  const { rows } = await pool.query(
    `select e.id as execution_id, e.attempts as attempt
       from cue.flights f cross join unnest(f.execution_ids) as u (id) join cue.executions e on e.id = u.id and e.flight_id = f.id`
  )
  return rows
}

/** Waits until `count` executions have ended and none is held, or for a minute. */
export const settled = async (pool: pg.Pool, count: number): Promise<void> => {
  for (const end = Date.now() + 60_000; Date.now() < end; await delay(100)) {
    const { rows } = await pool.query(
      'select (select count(*)::int from cue.executions where ended_at is not null) as ended, exists (select from cue.flights) as flying'
    )
    if (rows[0].ended >= count && !rows[0].flying) return
  }
}

export const readFound = async (pool: pg.Pool): Promise<Omit<Found, 'deadlocks'>> => {
  const executions = await pool.query(
    'select id, cue_id, floor(extract(epoch from scheduled_for) * 1000)::float8 as scheduled_for, status, attempts from cue.executions'
  )
  const attempts = await pool.query('select execution_id, attempt, result from cue.attempt_view order by execution_id, attempt')
  const { rows } = await pool.query(
    `select (select count(*)::int from cue.flights) as flights, (select count(*)::int from pgboss.job where name = 'attempts') as jobs`
  )
  return { executions: executions.rows, attempts: attempts.rows, ...rows[0] }
}

/** Returns every execution and attempt as text, to find out whether anything has changed. */
export const readRows = async (pool: pg.Pool): Promise<Set<string>> => {
  const { rows } = await pool.query('select e::text as line from cue.executions e union all select a::text from cue.attempts a')
  return new Set(rows.map(row => row.line))
}
