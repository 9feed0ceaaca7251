/** Setup for tests of the SQL functions: a database with accounts, cues and a live engine, and a stopped clock. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Test } from 'tap'
import { type BegunAttempt, createFunctions, type Functions } from '../../src/database/functions.ts'
import { createTestClock } from './clock.ts'
import { createDatabase } from './database.ts'
import { eventually } from './eventually.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of any shape
export type Row = any
export type Stage = Awaited<ReturnType<typeof stage>>

/** The result of an attempt. By default, a 200 after 5 ms. */
export type Result = Partial<{
  http_status: number | null
  body: string | null
  headers: Record<string, string>
  error: string | null
  retry_after_ms: number | null
  gone: boolean
  /** The report in the response. */
  report: { success: boolean; [member: string]: unknown } | null
  omitted: string | null
}>

export const refused: Result = { http_status: 500, body: 'no', headers: { server: 'test' }, error: 'the callback answered 500' }

export const cueDefaults = {
  name: 'a cue',
  description: null,
  transport: 'webhook',
  schedule_type: 'recurring',
  cron: '* * * * *',
  at: null,
  timezone: 'UTC',
  callback_url: 'http://127.0.0.1/hook',
  callback_method: 'POST',
  callback_headers: {},
  payload: '{"n": 1}',
  task: null,
  retry_max_attempts: 3,
  retry_backoff_minutes: [1, 2, 4],
  on_failure_email: false,
  on_failure_webhook: null,
  on_failure_pause: false,
  timeout_seconds: null,
  outcome_deadline_seconds: null,
  claim_timeout_seconds: null,
  await_outcome: null,
  alert_consecutive_failures: null,
  alert_missed_window_multiplier: null,
  catch_up: 'run_once_if_missed',
  verification_mode: null
}
export const once = { schedule_type: 'once', cron: null, at: '2030-01-15T09:00:00Z' }
export const awaiting = { timeout_seconds: 30, outcome_deadline_seconds: 300, claim_timeout_seconds: 900, await_outcome: true }

/** Prevents outages in tests that move the clock by hours. */
const never = '100 years'
const hourMs = 3_600_000

/** A database whose functions use a stopped clock, with an account and a live engine. */
export const stage = async (t: Test, start = '2030-01-15T09:00:00Z') => {
  const { pool, url } = await createDatabase(t)
  const clock = createTestClock(start)
  const fn = createFunctions(pool, clock.now)
  await fn.maintainPartitions({ months: 2 })

  const rows = async (text: string, values: unknown[] = []): Promise<Row[]> => (await pool.query(text, values)).rows
  const row = async (text: string, values: unknown[] = []): Promise<Row> => (await rows(text, values))[0]

  /** A second connection, for races; its functions use the same clock. */
  const connect = async () => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    t.teardown(() => client.end())
    const { rows: own } = await client.query('select pg_backend_pid() as pid')
    /** Resolves once this connection waits for another's lock. */
    const blocked = () => eventually(async () => (await row('select pg_blocking_pids($1) as pids', [own[0].pid])).pids.length > 0)
    return { client, fn: createFunctions(client, clock.now), blocked }
  }

  const account = async (columns: object = {}): Promise<string> => {
    const id = randomUUID()
    const values = { id, email: `${id}@example.com`, plan: 'scale', webhook_secret: `whsec_${'a'.repeat(64)}`, ...columns }
    const names = Object.keys(values)
    await rows(`insert into cue.accounts (${names}) values (${names.map((_, i) => `$${i + 1}`)})`, Object.values(values))
    return id
  }

  const beat = (missed_after = never, engine_id = '00000000-0000-0000-0000-000000000001') =>
    fn.beatEngine({ engine_id, version: 'test', lateness_ms: null, open_deliveries: 0, missed_after })

  const own = await account()
  await beat()

  /** A cue due now. */
  const cue = (columns: object = {}, { next_run = clock.now(), account_id = own }: { next_run?: Date | null; account_id?: string } = {}) =>
    fn.createCue({ account_id, cue: { ...cueDefaults, ...columns }, next_run })

  /** Takes cues as an engine does, with the version and slot that it read, on the connection `by`. */
  const take = async (cue_ids: string[], { by = fn, next, missed_after = never }: TakeOptions = {}): Promise<BegunAttempt[]> => {
    const runs = await rows('select * from cue.cue_runs where cue_id = any ($1) order by array_position($1, cue_id)', [cue_ids])
    return by.takeDueCues({ ...dueCues(runs, next === undefined ? new Date(clock.now().getTime() + hourMs) : next), missed_after })
  }

  const settle = (attempts: BegunAttempt[], result: Result = {}, by: Functions = fn) =>
    by.settleAttempts(resultsOf(attempts, result, clock.now()))

  return {
    pool,
    url,
    fn,
    clock,
    rows,
    row,
    connect,
    account,
    account_id: own,
    beat,
    cue,
    take,
    settle,
    finish: (attempts: BegunAttempt[], by: Functions = fn) => by.finishAttempts(columnsOf(attempts, {}, clock.now())),
    /** Creates a webhook cue and takes its execution. */
    begun: async (columns: object = {}) => {
      const [attempt] = await take([await cue(columns)], columns === once || 'at' in columns ? { next: null } : {})
      return attempt!
    },
    execution: (id: string) => row('select * from cue.executions where id = $1', [id]),
    attempts: (id: string) => rows('select * from cue.attempt_view where execution_id = $1 order by attempt', [id]),
    run: (cue_id: string) =>
      row('select r.*, c.status, c.completed_reason, c.deleted_at from cue.cue_runs r join cue.cues c on c.id = r.cue_id where c.id = $1', [
        cue_id
      ]),
    jobs: (name = 'attempts') =>
      rows('select id, data, start_after, state from pgboss.job where name = $1 order by start_after, id', [name]),
    used: (account_id = own) => value(row('select cue.executions_used($1, $2) as value', [account_id, clock.now()]))
  }
}

type TakeOptions = { by?: Functions; next?: Date | null; missed_after?: string }

const value = async (found: Promise<Row>) => (await found).value

/** The arguments of take_due_cues for runs that an engine has read. */
export const dueCues = (runs: Row[], next: Date | null) => ({
  cue_ids: runs.map(run => run.cue_id),
  versions: runs.map(run => run.version),
  expected: runs.map(run => run.next_run),
  next: runs.map(() => next)
})

/** The arguments of settle_attempts for attempts that all ended with this result. */
export const resultsOf = (attempts: BegunAttempt[], result: Result, now: Date) => ({
  ...columnsOf(attempts, result, now),
  ...furtherColumns(attempts, result)
})

const columnsOf = (attempts: BegunAttempt[], { http_status = 200, body = 'ok' }: Result, now: Date) => ({
  execution_ids: attempts.map(attempt => attempt.execution_id),
  attempts: attempts.map(attempt => attempt.attempt),
  cue_ids: attempts.map(attempt => attempt.cue_id),
  started_at: attempts.map(() => now),
  duration_ms: attempts.map(() => 5),
  http_status: attempts.map(() => http_status),
  bodies: attempts.map(() => body)
})

const furtherColumns = (attempts: BegunAttempt[], result: Result) => ({
  headers: attempts.map(() => (result.headers ? JSON.stringify(result.headers) : null)),
  errors: attempts.map(() => result.error ?? null),
  retry_after_ms: attempts.map(() => result.retry_after_ms ?? null),
  gone: attempts.map(() => result.gone ?? false),
  reports: attempts.map(() => (result.report ? JSON.stringify(result.report) : null)),
  omitted: attempts.map(() => result.omitted ?? null)
})
