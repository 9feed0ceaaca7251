/** A realistic account: cues of all kinds, a year of results, failures, outcomes, workers and alerts. The same on every run. */
import type pg from 'pg'
import { readSchedule } from '../../src/schedule/parse-schedule.ts'
import { previousRun } from '../../src/schedule/runs.ts'
import { timetableOf } from '../../src/schedule/schedule.ts'

type Seed = {
  pool: pg.Pool
  call: (method: string, path: string, body?: object) => Promise<{ id: string }>
  account_id: string
  now: Date
}

const minute = 60_000
const day = 24 * 60 * minute

/** A cue, and its past: at most so many runs in a year, how often it fails, and how many of the latest failed in any case. */
type Kind = Past & Body & { runs: number }
type Past = { takesMs: number; failing?: number; streak?: number; error?: string; outcome?: string; summary?: string }
type Body = { name: string; cron?: string; timezone?: string; [member: string]: unknown }

const hook = (path: string, ...tags: string[]) => ({ callback_url: `https://hooks.example.com/${path}`, tags })
const work = (task: string, ...tags: string[]) => ({ worker: true, payload: { task }, tags })
const [timezone, reported, verified] = ['Europe/Berlin', { outcome: 'reported_success' }, { outcome: 'verified_success' }]
const sales = {
  ...{ key: 'reports/sales', cron: '30 7 * * 1-5', timezone, ...hook('sales', 'reports', 'finance') },
  payload: { task: 'report', region: 'EMEA', account_number: 12345678901234 },
  description: 'Collects the orders of the day before and mails the totals to the sales team.',
  delivery: { await_outcome: true, outcome_deadline_seconds: 900 }
}
const crm = { key: 'sync/crm', cron: '*/5 * * * *', ...hook('crm', 'sync'), payload: { since: 'last-run' } }
const backup = { key: 'ops/backup', cron: '0 2 * * *', ...work('backup', 'ops', 'critical') }
const partner = { cron: '*/15 * * * *', ...hook('partner', 'ops'), alerts: { consecutive_failures: 3 } }
const news = { cron: '0 10 * * 2', timezone: 'America/New_York', ...work('publish', 'content'), verification: { mode: 'manual' } }
const prices = { cron: '*/10 * * * *', ...hook('prices', 'sync', 'finance'), on_failure: { pause_after: 5 } }
const search = { cron: '0 * * * *', ...hook('search', 'search'), payload: { full: false } }
const tickets = { key: 'agents/support', cron: '0 */4 * * *', ...work('summarise', 'agents') }
const invoices = { key: 'billing/reminders', cron: '0 9 1,15 * *', timezone, ...hook('invoices', 'finance') }
const rotation = { key: 'ops/rotate', cron: '0 0 1 * *', ...work('rotate', 'ops', 'critical') }
const refunds = {
  ...{ key: 'agents/refunds', cron: '0 11 * * 1-5', ...hook('refunds', 'finance', 'agents') },
  payload: { order: 'A-20417', amount: '50.00', currency: 'EUR', reason: 'arrived broken' },
  approval: { expires: '24h', message: 'Refund the orders that the agent has checked?' }
}
const tax = { at: new Date(Math.ceil(Date.now() / day + 9) * day), timezone, ...hook('tax') }
const issue = { outcome: 'verification_pending', summary: 'Issue 41: “What we shipped in November”, 3 articles' }
const unavailable = 'answered 503 Service Unavailable'
const kinds: Kind[] = [
  { name: 'Daily sales report', ...sales, runs: 260, failing: 0.02, ...verified, summary: '1,204 orders, € 88,310.20', takesMs: 4200 },
  { name: 'Sync CRM contacts', ...crm, runs: 600, failing: 0.01, takesMs: 640 },
  { name: 'Nightly database backup', ...backup, runs: 364, ...verified, summary: '42.1 GB in 11 min', takesMs: 690_000 },
  { name: 'Check partner API', ...partner, runs: 200, failing: 0.04, streak: 7, error: unavailable, takesMs: 5100 },
  { name: 'Publish the newsletter', ...news, runs: 40, ...issue, takesMs: 95_000 },
  { name: 'Import price feed', ...prices, runs: 150, streak: 5, error: 'connection refused', takesMs: 900 },
  { name: 'Refresh search index', ...search, runs: 240, failing: 0.015, takesMs: 2300 },
  {
    ...{ name: 'Summarise support tickets', ...tickets, runs: 120, failing: 0.03, takesMs: 38_000 },
    ...{ error: 'the model is overloaded', ...reported, summary: '17 tickets, 3 urgent' }
  },
  { name: 'Invoice reminders', ...invoices, runs: 20, takesMs: 1800 },
  { name: 'Clean up temporary files', cron: '15 3 * * 0', ...hook('clean', 'ops'), runs: 30, takesMs: 300 },
  { name: 'Rotate credentials', ...rotation, runs: 9, ...reported, summary: '6 credentials rotated', takesMs: 12_000 },
  { name: 'Send refunds', ...refunds, runs: 0, takesMs: 1300 },
  { name: 'Quarterly tax export', ...tax, runs: 0, takesMs: 0 }
]

/** The newest runs until an instant. */
const runsOf = ({ cron, timezone = 'UTC', runs }: Kind, until: Date): Date[] => {
  if (!cron) return []
  const slots = timetableOf(readSchedule({ cron, timezone }, new Date()))
  const list: Date[] = []
  for (let run = previousRun(slots, until); run && list.length < runs; run = previousRun(slots, run)) list.push(run)
  return list
}

/** Adds executions and attempts to the past of a cue: three attempts if it failed, sometimes two if it succeeded, none if a worker missed it. */
const addRuns = async (pool: pg.Pool, id: string, { streak = 0, failing = 0, ...kind }: Past, slots: Date[]) => {
  await pool.query('select setseed(0.7)')
  await pool.query(
    `with runs as materialized (
       select cue.uuid_v7(r.at) as id, r.at, n, random() as chance, r.at + random() ^ 4 * interval '900 ms' as began,
              (0.6 + 0.9 * random()) * $5 * interval '1 ms' as took
         from unnest($2::timestamptz[]) with ordinality as r (at, n)),
     results as materialized (
       select r.*, c.account_id, c.transport, c.payload, c.task, c.transport = 'worker' as is_worker,
              case when n <= $3 or chance < $4 then 'failed' when c.transport = 'worker' and chance > 0.98 then 'missed' else 'success' end::cue.execution_status as status,
              case when n <= $3 or chance < $4 then 3 when c.transport = 'worker' and chance > 0.98 then 0 when chance > 0.94 then 2 else 1 end as attempts
         from runs r, cue.cues c where c.id = $1),
     executions as (
       insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, task, attempts, started_at, last_attempt_at,
              delivered_at, ended_at, http_status, error_message, response_body, claimed_by_worker, claimed_at, outcome_state, outcome_success,
              outcome_recorded_at, summary, result_url, external_id, created_at, updated_at)
       select id, account_id, $1, transport, status, 'schedule', at, payload, task, attempts, e.started, e.started, e.delivered,
              began + took, case when e.delivered is not null then 200 when not is_worker then substring($6 from '\\d{3}')::int end,
              case status when 'failed' then $6 when 'missed' then 'not claimed in time' end, case when e.delivered is not null then '{"ok": true, "queued": 0}' end,
              case when is_worker and attempts > 0 then 'backup-eu-1' end, case when is_worker then e.started end, e.outcome, e.outcome is not null or null,
              case when e.outcome is not null then began + took end, case when e.outcome is not null then $8 end,
              case when e.outcome is not null then 'https://files.example.com/' || n || '.pdf' end, case when e.outcome is not null then 'run-' || 4000 + n end, at, began + took
         from results cross join lateral (
           select case when attempts > 0 then began end as started, case when status = 'success' and not is_worker then began + took end as delivered,
                  case when status <> 'success' then null when $7 = 'verification_pending' and n > 2 then 'verified_success' else $7 end::cue.outcome_state as outcome) e
       returning id, account_id, status, cue.error_group(executions) as error_group),
     letters as (
       insert into cue.dead_letters select id, account_id, $1, error_group from executions where status in ('failed', 'missed'))
     insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, http_status, error, worker_id)
     select id, a, account_id, case when is_good then 'success' else 'failed' end::cue.attempt_result, b, b + took, extract(epoch from took) * 1000,
            case when is_worker then null when is_good then 200 else substring($6 from '\\d{3}')::int end, case when not is_good then $6 end,
            case when is_worker then 'backup-eu-1' end
       from results cross join lateral generate_series(1, attempts) a
       cross join lateral (select began + (a - 1) * interval '1 minute' as b, status = 'success' and a = attempts as is_good) t`,
    [id, slots, streak, failing, kind.takesMs, kind.error ?? 'answered 500 Internal Server Error', kind.outcome, kind.summary]
  )
  await pool.query('update cue.cue_runs set run_count = $2, fired_count = $2, last_run = $3 where cue_id = $1', [
    id,
    slots.length,
    slots[0]
  ])
}

/** The date of the weekday that is so many days ahead, or of the Monday after it. */
const weekday = (now: Date, ahead: number): string => {
  const date = new Date(now.getTime() + ahead * day)
  while ([0, 6].includes(date.getUTCDay())) date.setTime(date.getTime() + day)
  return date.toISOString().slice(0, 10)
}

type Chain = Pick<Seed, 'pool' | 'call'> & { newest: (where: string) => Promise<string> }
/** Cues that follow the backup: one has run after it, the other waits for two. Returns the backup's execution, and the latter. */
const addChain = async ({ pool, call, newest }: Chain, cue_id: string) => {
  const follower = (name: string, key: string, after: object, more: object = {}) =>
    call('POST', '/v1/cues', { name, key, after, ...work(key.split('/')[1]!, 'ops'), ...more })
  await follower('Restore the backup elsewhere', 'ops/restore', { cues: ['ops/backup'], when: 'verified', within: '6h' })
  const { id: reporter } = await follower('Report on backups', 'ops/report', { cues: ['ops/backup', 'ops/restore'] })
  const weekly = { cron: '0 6 * * 1', timezone }
  await follower('Archive the backup', 'ops/archive', { cues: ['ops/backup', 'ops/rotate'], wait: '2h', mode: 'any' }, weekly)
  const backup = await newest(`cue_id = '${cue_id}' and outcome_state = 'verified_success'`)
  await pool.query('select cue.send_signals(array[$1::uuid])', [backup])
  for (let n = 0; n < 2; n++) await pool.query('select cue.start_followers()')
  return { backup, follower: reporter }
}

export const seedAccount = async ({ pool, call, account_id, now }: Seed) => {
  await pool.query("select cue.maintain_partitions(14, now() - interval '1 year')")
  await pool.query("update cue.accounts set plan = 'pro', created_at = now() - interval '1 year' where id = $1", [account_id])
  const cues = new Map<string, string>()
  for (const kind of kinds.toReversed()) {
    const { runs, takesMs, failing, streak, error, outcome, summary, ...body } = kind
    const { id } = await call('POST', '/v1/cues', body)
    cues.set(kind.name, id)
    await addRuns(pool, id, kind, runsOf(kind, new Date(now.getTime() - 8 * minute)))
  }
  const cue = (name: string) => cues.get(name)!

  await call('POST', `/v1/cues/${cue('Clean up temporary files')}/pause`, { reason: 'The disks are being replaced' })
  await pool.query(
    `with paused as (
       update cue.cues set status = 'paused', paused_by = 'failures', paused_at = now() - interval '42 minutes',
              pause_reason = 'Failed 5 times in a row. Last error: connection refused' where id = $1 returning id)
     update cue.cue_runs set next_run = null where cue_id in (select id from paused)`,
    [cue('Import price feed')]
  )

  for (const [worker_id, ...handlers] of [
    ['backup-eu-1', 'backup', 'rotate'],
    ['backup-eu-2', 'backup', 'rotate'],
    ['agent-laptop', 'summarise']
  ])
    await call('POST', '/v1/worker/heartbeat', { worker_id, handlers })
  await pool.query("update cue.workers set last_heartbeat = now() - interval '50 minutes' where worker_id = 'agent-laptop'")
  for (let n = 0; n < 3; n++) await call('POST', `/v1/cues/${cue('Summarise support tickets')}/fire`, {})

  await call('POST', `/v1/cues/${cue('Send refunds')}/fire`, {})
  const larger = { order: 'A-20398', amount: '1249.00' }
  const { id: waiting } = await call('POST', `/v1/cues/${cue('Send refunds')}/fire`, { payload_override: larger })

  for (const [name, type, message, age] of [
    ['Check partner API', 'consecutive_failure', 'failed 3 times in a row', 65],
    ['Import price feed', 'cue_paused', 'was paused: it failed 5 times in a row', 42],
    ['Nightly database backup', 'missed_window', 'had no success in its expected window', 180]
  ] as const)
    await pool.query(
      `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, created_at)
       select cue.uuid_v7(at), $1, $2, $3::cue.alert_type, 'high', $4, at from (select now() - $5 * interval '1 minute' as at) a`,
      [account_id, cue(name), type, `${name} ${message}`, age]
    )

  const ids = ['Daily sales report', 'Invoice reminders', 'Import price feed'].map(cue)
  const { id: operation } = await call('POST', '/v1/operations', { type: 'fire', name: 'Fire all finance cues', ids })
  await pool.query(
    "update cue.operations set status = 'completed', succeeded = 2, failed = 1, errors = $2, ended_at = now() + interval '1 minute' where id = $1",
    [operation, JSON.stringify([{ target: ids[2], code: 'cue_not_active', message: 'Only an active cue can be fired.' }])]
  )
  await call('POST', '/v1/operations', { type: 'replay', filter: { error: '503' }, rate_per_minute: 5 })
  await call('POST', '/v1/auth/keys', { label: 'report worker', scopes: ['worker'] })
  await call('POST', '/v1/auth/keys', { label: 'deploy pipeline', scopes: ['read', 'write'] })
  await call('PUT', '/v1/channels/ops', { type: 'slack', target: 'https://hooks.slack.com/services/T0/B0/x', default: true })
  await call('PUT', '/v1/channels/on-call', { type: 'pagerduty', target: 'a'.repeat(32), types: ['execution.failed', 'task.*'] })
  await pool.query(
    `with snoozed as (update cue.alerts set snoozed_at = now(), snoozed_until = now() + interval '15 hours' where cue_id = $2)
     insert into cue.notices (id, account_id, channel_id, alert_id, kind, state, tries, error, sent_at, created_at)
     select gen_random_uuid(), a.account_id, h.id, a.id, 'raised', case when h.name = 'ops' then 'sent' else 'failed' end::cue.notice_state,
            case when h.name = 'ops' then 1 else 5 end, case when h.name <> 'ops' then 'answered 403 Forbidden' end,
            case when h.name = 'ops' then a.created_at end, a.created_at
       from cue.alerts a, cue.channels h where a.account_id = $1 and h.account_id = $1 and a.cue_id = any ($3)`,
    [account_id, cue('Check partner API'), [cue('Check partner API'), cue('Import price feed')]]
  )
  await call('PUT', '/v1/calendars/holidays%2Fde', {
    description: 'Public holidays in Germany, and our own days off',
    dates: ['01-01', '05-01', '10-03', '12-25', '12-26', weekday(now, 3)],
    ranges: [{ from: '2026-12-24T12:00', to: '2026-12-25T00:00' }]
  })
  for (const id of ids.slice(0, 2)) await call('PATCH', `/v1/cues/${id}`, { schedule: { exclude_calendars: ['holidays/de'] } })
  await call('PUT', '/v1/gates/openai', { parallel: 5, rate: 60, per: '10s', breaker: {}, description: 'The model' })
  await call('PUT', '/v1/gates/warehouse', { order: true, max_wait: '2h' })
  for (const id of ids.slice(0, 3)) await call('PATCH', `/v1/cues/${id}`, { gate: 'openai' })
  // The service was away for some days.
  await pool.query(
    `with gone as (
       delete from cue.executions where cue_id = any ($1) and scheduled_for between now() - interval '28 days' and now() - interval '24 days' returning cue_id, scheduled_for)
     insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason, recorded_at)
     select cue_id, $2, min(scheduled_for), max(scheduled_for), count(*), 'skip_missed', 'service_away', max(scheduled_for) from gone group by cue_id`,
    [[cue('Daily sales report'), cue('Nightly database backup')], account_id]
  )
  await call('POST', '/v1/support', {
    subject: 'Two deliveries arrived out of order',
    message: 'On Friday, the 09:05 run of “Sync CRM contacts” arrived before the one of 09:00. Is that expected with retries?',
    severity: 'medium'
  })
  await pool.query(
    `insert into cue.usage_counters as u (account_id, month, slot, executions, reported, succeeded)
     select $1, cue.usage_month(now()), 0, count(*), count(outcome_success), count(*) filter (where outcome_success)
       from cue.executions where account_id = $1 and triggered_by = 'schedule' and scheduled_for >= cue.usage_month(now())
         on conflict (account_id, month, slot) do update
        set executions = u.executions + excluded.executions, reported = excluded.reported, succeeded = excluded.succeeded`,
    [account_id]
  )
  const newest = async (where: string): Promise<string> =>
    (await pool.query(`select id from cue.executions where account_id = $1 and ${where} order by id desc limit 1`, [account_id])).rows[0].id
  const chain = await addChain({ pool, call, newest }, cue('Nightly database backup'))
  return {
    cues,
    ...chain,
    failed: await newest("status = 'failed' and error_message like '%503%'"),
    verified: await newest("outcome_state = 'verified_success'"),
    operation,
    waiting
  }
}
