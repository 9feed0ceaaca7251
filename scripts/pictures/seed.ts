/** A realistic account: cues of all kinds, a year of results, failures, outcomes, workers and alerts. The same on every run. */
import type pg from 'pg'
import { readSchedule } from '../../src/schedule/parse-schedule.ts'
import { previousRun } from '../../src/schedule/runs.ts'
import { timetableOf } from '../../src/schedule/schedule.ts'
import { seedMore } from './seed-more.ts'

type Call = (method: string, path: string, body?: object) => Promise<{ id: string }>
type Seed = { pool: pg.Pool; call: Call; account_id: string; now: Date }

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Numbers from 0 to below 1, the same on every run. (mulberry32) */
const createRandom = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let x = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
  return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
}

type Kind = {
  body: Record<string, unknown> & { name: string }
  /** The most runs that it had in a year. */
  runs: number
  /** How often it fails, and how many of the latest runs failed in any case. */
  failing?: number
  streak?: number
  error?: string
  reports?: 'success' | 'verified' | 'manual'
  summaries?: string[]
  takesMs?: number
  /** How long ago its latest run began, at least. */
  idleMs?: number
}

const hook = 'https://hooks.example.com'
const kinds: Kind[] = [
  {
    body: {
      name: 'Daily sales report',
      key: 'reports/sales',
      tags: ['reports', 'finance'],
      cron: '30 7 * * 1-5',
      timezone: 'Europe/Berlin',
      callback_url: `${hook}/sales`,
      payload: { task: 'report', region: 'EMEA', account_number: 12345678901234 },
      description: 'Collects the orders of the day before and mails the totals to the sales team.',
      delivery: { await_outcome: true, outcome_deadline_seconds: 900 }
    },
    runs: 364,
    failing: 0.02,
    reports: 'verified',
    summaries: ['1,204 orders, € 88,310.20', '986 orders, € 71,020.75', '1,377 orders, € 102,904.10'],
    takesMs: 4200
  },
  {
    body: {
      name: 'Sync CRM contacts',
      key: 'sync/crm',
      tags: ['sync'],
      cron: '*/5 * * * *',
      callback_url: `${hook}/crm`,
      payload: { since: 'last-run' }
    },
    runs: 600,
    failing: 0.01,
    takesMs: 640
  },
  {
    body: {
      name: 'Nightly database backup',
      key: 'ops/backup',
      tags: ['ops', 'critical'],
      cron: '0 2 * * *',
      timezone: 'Europe/London',
      worker: true,
      payload: { task: 'backup', database: 'orders' },
      on_failure: { pause_after: 5 }
    },
    runs: 364,
    reports: 'verified',
    summaries: ['42.1 GB in 11 min', '42.3 GB in 12 min'],
    takesMs: 690_000
  },
  {
    body: {
      name: 'Check partner API',
      tags: ['ops'],
      cron: '*/15 * * * *',
      callback_url: `${hook}/partner`,
      alerts: { consecutive_failures: 3 }
    },
    runs: 200,
    failing: 0.04,
    streak: 7,
    error: 'answered 503 Service Unavailable',
    takesMs: 5100
  },
  {
    body: {
      name: 'Publish the newsletter',
      key: 'content/newsletter',
      tags: ['content'],
      cron: '0 10 * * 2',
      timezone: 'America/New_York',
      worker: true,
      payload: { task: 'publish' },
      verification: { mode: 'manual' }
    },
    runs: 40,
    reports: 'manual',
    summaries: ['Issue 41: “What we shipped in November”, 3 articles', 'Issue 40: “Fewer, better alerts”, 4 articles'],
    takesMs: 95_000
  },
  {
    body: {
      name: 'Import price feed',
      key: 'sync/prices',
      tags: ['sync', 'finance'],
      cron: '*/10 * * * *',
      callback_url: `${hook}/prices`,
      on_failure: { pause_after: 5 }
    },
    runs: 150,
    streak: 5,
    error: 'connection refused',
    idleMs: 46 * minute,
    takesMs: 900
  },
  {
    body: { name: 'Refresh search index', tags: ['search'], cron: '0 * * * *', callback_url: `${hook}/search`, payload: { full: false } },
    runs: 240,
    failing: 0.015,
    takesMs: 2300
  },
  {
    body: {
      name: 'Summarise support tickets',
      key: 'agents/support',
      tags: ['agents'],
      cron: '0 */4 * * *',
      worker: true,
      payload: { task: 'summarise', model: 'small' }
    },
    runs: 120,
    failing: 0.03,
    error: 'the model is overloaded',
    reports: 'success',
    summaries: ['17 tickets, 3 urgent', '9 tickets, none urgent'],
    takesMs: 38_000
  },
  {
    body: {
      name: 'Invoice reminders',
      key: 'billing/reminders',
      tags: ['finance'],
      cron: '0 9 1,15 * *',
      timezone: 'Europe/Berlin',
      callback_url: `${hook}/invoices`
    },
    runs: 20,
    takesMs: 1800
  },
  {
    body: { name: 'Clean up temporary files', tags: ['ops'], cron: '15 3 * * 0', callback_url: `${hook}/clean` },
    runs: 30,
    takesMs: 300
  },
  {
    body: {
      name: 'Rotate credentials',
      key: 'ops/rotate',
      tags: ['ops', 'critical'],
      cron: '0 0 1 * *',
      worker: true,
      payload: { task: 'rotate' }
    },
    runs: 9,
    reports: 'success',
    summaries: ['6 credentials rotated'],
    takesMs: 12_000
  },
  {
    body: {
      name: 'Quarterly tax export',
      tags: ['finance'],
      at: new Date(Math.ceil(Date.now() / day + 9) * day).toISOString(),
      timezone: 'Europe/Berlin',
      callback_url: `${hook}/tax`
    },
    runs: 0
  }
]

export const seedAccount = async ({
  pool,
  call,
  account_id,
  now
}: Seed): Promise<{ cues: Map<string, string>; failed: string; verified: string; operation: string }> => {
  const random = createRandom(7)
  await pool.query("select cue.maintain_partitions(14, now() - interval '1 year')")
  await pool.query("update cue.accounts set plan = 'pro', created_at = now() - interval '1 year' where id = $1", [account_id])
  const cues = new Map<string, string>()
  for (const kind of [...kinds].reverse()) {
    const { id } = await call('POST', '/v1/cues', kind.body)
    cues.set(kind.body.name, id)
    await pool.query("update cue.cues set created_at = now() - interval '1 year' * random() where id = $1", [id])
    await addRuns(pool, { kind, id, account_id, now, random })
  }
  const cue = (name: string) => cues.get(name)!
  await call('POST', `/v1/cues/${cue('Clean up temporary files')}/pause`, {
    reason: 'The disks are being replaced',
    until: new Date(Date.now() + 3 * day).toISOString()
  })
  await pool.query(
    `update cue.cues set status = 'paused', paused_by = 'failures', paused_at = now() - interval '42 minutes',
            pause_reason = 'Failed 5 times in a row. Last error: connection refused' where id = $1`,
    [cue('Import price feed')]
  )
  await pool.query('update cue.cue_runs set next_run = null where cue_id = $1', [cue('Import price feed')])

  await call('POST', '/v1/worker/heartbeat', { worker_id: 'backup-eu-1', handlers: ['backup', 'rotate'] })
  await call('POST', '/v1/worker/heartbeat', { worker_id: 'backup-eu-2', handlers: ['backup', 'rotate'] })
  await call('POST', '/v1/worker/heartbeat', { worker_id: 'agent-laptop', handlers: ['summarise'] })
  await pool.query(
    "update cue.workers set last_heartbeat = now() - interval '50 minutes', registered_since = now() - interval '8 days' where worker_id = 'agent-laptop'"
  )
  for (let n = 0; n < 3; n++) await call('POST', `/v1/cues/${cue('Summarise support tickets')}/fire`, {})
  await pool.query(
    "update cue.executions set claimable_at = now() - interval '26 minutes' * random(), claim_deadline_at = null where claimable_at is not null and cue_id = $1",
    [cue('Summarise support tickets')]
  )

  const alert = (name: string, type: string, severity: string, message: string, ageMs: number, isDone = false) =>
    pool.query(
      `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, created_at, acknowledged_at)
       values (cue.uuid_v7($6), $1, $2, $3::cue.alert_type, $4::cue.alert_severity, $5, $6, $7)`,
      [account_id, cue(name), type, severity, message, new Date(now.getTime() - ageMs), isDone ? new Date(now.getTime() - ageMs / 2) : null]
    )
  await alert('Check partner API', 'consecutive_failure', 'high', 'Check partner API failed 3 times in a row', 65 * minute)
  await alert('Import price feed', 'cue_paused', 'high', 'Import price feed was paused: it failed 5 times in a row', 42 * minute)
  await alert('Refresh search index', 'missed_window', 'high', 'Refresh search index had no success in its expected window', 5 * hour, true)
  await alert('Nightly database backup', 'missed_window', 'high', 'Nightly database backup had no success in its expected window', 3 * hour)

  const { id: operation } = await call('POST', '/v1/operations', {
    type: 'fire',
    name: 'Fire all finance cues',
    ids: [cue('Daily sales report'), cue('Invoice reminders'), cue('Import price feed')]
  })
  await pool.query(
    `update cue.operations set status = 'completed', succeeded = 2, failed = 1, errors = $2, created_at = now() - interval '4 minutes',
            ended_at = now() - interval '3 minutes' where id = $1`,
    [operation, JSON.stringify([{ target: cue('Import price feed'), code: 'cue_not_active', message: 'Only an active cue can be fired.' }])]
  )
  await call('POST', '/v1/operations', { type: 'replay', filter: { error: '503' }, rate_per_minute: 5 })

  for (const [label, scopes] of [
    ['report worker', ['worker']],
    ['read-only dashboards', ['read']],
    ['deploy pipeline', ['read', 'write']]
  ] as const)
    await call('POST', '/v1/auth/keys', { label, scopes: [...scopes] })
  await seedMore({ pool, call, account_id, cue, now })
  await pool.query(
    `insert into cue.usage_counters as u (account_id, month, slot, executions, reported, succeeded)
     select $1, cue.usage_month(now()), 0, count(*), count(outcome_success), count(*) filter (where outcome_success)
       from cue.executions where account_id = $1 and triggered_by = 'schedule' and scheduled_for >= cue.usage_month(now())
         on conflict (account_id, month, slot) do update
        set executions = u.executions + excluded.executions, reported = excluded.reported, succeeded = excluded.succeeded`,
    [account_id]
  )
  const one = async (where: string) =>
    (await pool.query(`select id from cue.executions where account_id = $1 and ${where} order by id desc limit 1`, [account_id])).rows[0]
      ?.id
  return {
    cues,
    failed: await one("status = 'failed' and attempts = 3"),
    verified: await one("outcome_state = 'verified_success'"),
    operation
  }
}

type Runs = { kind: Kind; id: string; account_id: string; now: Date; random: () => number }

/** The newest runs until an instant, earliest first. */
const newestRuns = (slots: ReturnType<typeof timetableOf>, until: Date, count: number): Date[] => {
  const found: Date[] = []
  for (let run = previousRun(slots, until); run && found.length < count; run = previousRun(slots, run)) found.unshift(run)
  return found
}

const addRuns = async (pool: pg.Pool, { kind, id, account_id, now, random }: Runs) => {
  const {
    runs,
    failing = 0,
    streak = 0,
    error = 'answered 500 Internal Server Error',
    reports,
    summaries = [],
    takesMs = 500,
    idleMs = 8 * minute
  } = kind
  const isWorker = kind.body.worker === true
  const rows: object[] = []
  const attempts: object[] = []
  const { cron, timezone = 'UTC' } = kind.body as { cron?: string; timezone?: string }
  const until = new Date(now.getTime() - idleMs)
  const failedStatus = /\d{3}/.exec(error)?.[0] ?? null
  const slots = cron ? newestRuns(timetableOf(readSchedule({ cron, timezone })), until, runs) : []
  for (const [index, slot] of slots.entries()) {
    const n = slots.length - index
    const at = slot.getTime()
    const hasFailed = n <= streak || random() < failing
    const isMissed = !hasFailed && isWorker && random() < 0.02
    const lateMs = 4 + Math.floor(random() ** 4 * 900)
    const count = hasFailed ? 3 : isMissed ? 0 : random() < 0.05 ? 2 : 1
    const execution = { n: rows.length }
    let clock = at + lateMs
    const startedAt = clock
    let took = 0
    for (let attempt = 1; attempt <= count; attempt++) {
      took = Math.round(takesMs * (0.6 + random() * 0.9))
      const isGood = !hasFailed && attempt === count
      attempts.push({
        ...execution,
        attempt,
        result: isGood ? 'success' : 'failed',
        started_at: new Date(clock),
        finished_at: new Date(clock + took),
        duration_ms: took,
        http_status: isWorker ? null : isGood ? 200 : failedStatus,
        error: isGood ? null : error,
        worker_id: isWorker ? 'backup-eu-1' : null
      })
      clock += took + (attempt < count ? attempt * minute : 0)
    }
    const isReported = reports !== undefined && !hasFailed && !isMissed
    const isPending = reports === 'manual' && n <= 2
    rows.push({
      ...execution,
      scheduled_for: new Date(at),
      status: hasFailed ? 'failed' : isMissed ? 'missed' : 'success',
      attempts: count,
      started_at: count ? new Date(startedAt) : null,
      last_attempt_at: count ? new Date(clock - took) : null,
      delivered_at: hasFailed || isMissed || isWorker ? null : new Date(clock),
      ended_at: new Date(clock),
      http_status: isWorker || isMissed ? null : hasFailed ? failedStatus : 200,
      error_message: hasFailed ? error : isMissed ? 'not claimed in time' : null,
      response_body: isWorker || isMissed ? null : hasFailed ? failedStatus && '{"error": "unavailable"}' : '{"ok": true, "queued": 0}',
      claimed_by_worker: isWorker && count ? 'backup-eu-1' : null,
      claimed_at: isWorker && count ? new Date(startedAt) : null,
      outcome_state: isReported
        ? isPending
          ? 'verification_pending'
          : reports === 'success'
            ? 'reported_success'
            : 'verified_success'
        : null,
      outcome_success: isReported ? true : null,
      outcome_recorded_at: isReported ? new Date(clock) : null,
      summary: isReported ? summaries[n % summaries.length] : null,
      result_url: isReported ? `https://files.example.com/${n}.pdf` : null,
      external_id: isReported ? `run-${4000 + n}` : null,
      artifacts:
        isReported && reports === 'manual'
          ? [
              { name: 'preview', url: 'https://files.example.com/preview.html' },
              { name: 'issue.html', bytes: 48_211 }
            ]
          : null
    })
  }
  await pool.query(
    `with given as (
       select r.*, cue.uuid_v7(r.scheduled_for) as id from jsonb_to_recordset($1::jsonb) as r (n int, scheduled_for timestamptz, status cue.execution_status,
         attempts int, started_at timestamptz, last_attempt_at timestamptz, delivered_at timestamptz, ended_at timestamptz, http_status int,
         error_message text, response_body text, claimed_by_worker text, claimed_at timestamptz, outcome_state cue.outcome_state,
         outcome_success boolean, outcome_recorded_at timestamptz, summary text, result_url text, external_id text, artifacts jsonb)),
     executions as (
       insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, task, attempts, started_at,
              last_attempt_at, delivered_at, ended_at, http_status, error_message, response_body, claimed_by_worker, claimed_at, outcome_state,
              outcome_success, outcome_recorded_at, summary, result_url, external_id, artifacts, created_at, updated_at)
       select g.id, $2, c.id, c.transport, g.status, 'schedule', g.scheduled_for, c.payload, c.task, g.attempts, g.started_at, g.last_attempt_at,
              g.delivered_at, g.ended_at, g.http_status, g.error_message, g.response_body, g.claimed_by_worker, g.claimed_at, g.outcome_state,
              g.outcome_success, g.outcome_recorded_at, g.summary, g.result_url, g.external_id, g.artifacts, g.scheduled_for, g.ended_at
         from given g, cue.cues c where c.id = $3
       returning id, status, cue.error_group(executions) as error_group),
     letters as (
       insert into cue.dead_letters select id, $2, $3, error_group from executions where status in ('failed', 'missed'))
     insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, http_status, error, worker_id)
     select g.id, a.attempt, $2, a.result, a.started_at, a.finished_at, a.duration_ms, a.http_status, a.error, a.worker_id
       from jsonb_to_recordset($4::jsonb) as a (n int, attempt int, result cue.attempt_result, started_at timestamptz, finished_at timestamptz,
              duration_ms int, http_status int, error text, worker_id text) join given g using (n)`,
    [JSON.stringify(rows), account_id, id, JSON.stringify(attempts)]
  )
  await pool.query('update cue.cue_runs set run_count = $2, fired_count = $2, last_run = $3 where cue_id = $1', [
    id,
    rows.length,
    rows.length ? (rows.at(-1) as { scheduled_for: Date }).scheduled_for : null
  ])
}
