/**
 * Cost of the sweeps beside idle accounts and finished work, in pages touched by PostgreSQL. 10,000 accounts stand for
 * many; SCALE=100 makes a million.
 */
import pg from 'pg'
import t, { type Test } from 'tap'
import { createDatabase } from '../support/database.ts'
import { scaled, spelled } from '../support/scale.ts'

const setUp = async (t: Test) => {
  const { url } = await createDatabase(t)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  // Deleted rows can be vacuumed only once their commit is flushed.
  await client.query('set synchronous_commit = on')
  const rows = async (text: string, values: unknown[] = []) => (await client.query(text, values)).rows

  /**
   * Accounts that were active once: a counter, a key, a cue with its own payload, a finished execution and one due
   * tomorrow, missed slots, and completed jobs.
   */
  const addIdle = async (count: number) => {
    await rows('set session_replication_role = replica')
    for (let added = 0; added < count; added += 10_000) await addSome(Math.min(count - added, 10_000))
    await rows('reset session_replication_role')
    await rows('vacuum analyze')
  }
  const addSome = (count: number) =>
    rows(
      `with a as (
         insert into cue.accounts (id, email, plan, webhook_secret)
         select id, id || '@example.com', 'scale', 'whsec_' || repeat('a', 64) from (select gen_random_uuid() as id from generate_series(1, $1::int)) n
         returning id),
       c as (
         insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload, payload_id)
         select 'cue_' || left(md5(id::text), 12), id, 'c', 'webhook', 'recurring', '* * * * *', 'http://127.0.0.1/', null, nextval('cue.payload_ids') from a
         returning *),
       r as (insert into cue.cue_runs (cue_id, account_id, transport) select id, account_id, transport from c),
       p as (
         insert into cue.payloads (id, account_id, cue_id, hash, body, last_used_at, created_at)
         select payload_id, account_id, id, sha256(convert_to(id, 'UTF8')), repeat('x', 100), case when random() < 0.5 then now() end, now() from c),
       u as (insert into cue.usage_counters (account_id, month, slot, executions) select id, cue.usage_month(now()), 0, 5 from a),
       k as (insert into cue.api_keys (id, account_id, key_hash, prefix, label, created_by)
             select gen_random_uuid(), id, sha256(convert_to(id::text, 'UTF8')), 'sk_', 'default', 'register' from a),
       m as (insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason)
             select id, account_id, now(), now(), 1, 'skip_missed', 'service_away' from c),
       e as (insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload_id, attempts, started_at,
                                         ended_at, created_at, updated_at)
             select cue.uuid_v7(now()), account_id, id, 'webhook', 'success', 'schedule', now(), payload_id, 1, now(), now(), now(), now() from c),
       w as (insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, attempt_due_at, payload,
                                         created_at, updated_at)
             select cue.uuid_v7(now()), account_id, id, 'webhook', 'pending', 'manual_fire', now() + interval '1 day', now() + interval '1 day', '{}',
                    now(), now() from c
             returning id, attempt_due_at),
       j as (insert into pgboss.job (id, name, start_after) select id, 'attempts', attempt_due_at from w),
       v as (insert into cue.audit_events (id, account_id, event, actor, created_at)
             select gen_random_uuid(), id, 'account.registered', 'anonymous', now() - interval '1 day' from a)
       insert into pgboss.job (name, data, state, group_id, completed_on, start_after, keep_until)
       select 'mails', jsonb_build_object('account_id', id), 'completed', id::text, now(), now(), now() + interval '7 days' from a`,
      [count]
    )
  const account = async () =>
    (
      await rows(`insert into cue.accounts (id, email, plan, webhook_secret) select id, id || '@example.com', 'scale', 'whsec_' || repeat('a', 64)
                 from gen_random_uuid() as id returning id`)
    )[0]!.id as string
  const pages = async (text: string, values: unknown[] = []) => {
    const [{ 'QUERY PLAN': plan }] = await rows(`explain (analyze, buffers, format json) ${text}`, values)
    return plan[0].Plan['Shared Hit Blocks'] + plan[0].Plan['Shared Read Blocks']
  }
  return { rows, addIdle, account, pages }
}

/** Sweeps that run every minute, hour or day, each named by its work, with the statement that creates it. */
const sweeps: Record<string, { work?: string; sweep: string; left?: string }> = {
  fold_usage: {
    work: `insert into cue.usage_counters (account_id, month, slot, executions) values ($1, cue.usage_month(now()), 7, 1)`,
    sweep: 'select cue.fold_usage()',
    left: 'select from cue.usage_counters where slot <> 0'
  },
  requeue_attempts: { sweep: 'select cue.requeue_attempts()' },
  recover_stuck: { sweep: 'select cue.recover_stuck()' },
  recover_flights: { sweep: 'select cue.recover_flights()' },
  recover_leases: { sweep: 'select cue.recover_leases()' },
  expire_outcomes: { sweep: 'select cue.expire_outcomes()' },
  miss_unclaimed: { sweep: 'select cue.miss_unclaimed()' },
  prune: {
    work: `insert into cue.usage_counters (account_id, month, slot, executions) values ($1, '2020-01-01', 0, 1)`,
    sweep: 'select cue.prune()',
    left: `select from cue.usage_counters where month = '2020-01-01'`
  },
  requeue_purges: { sweep: 'select cue.requeue_purges()' },
  prune_payloads: { sweep: `select cue.prune_payloads(now() - interval '35 days')` },
  delete_due_accounts: { sweep: 'select cue.delete_due_accounts()' },
  drop_account_jobs: {
    work: `select cue.add_job('mails', jsonb_build_object('account_id', $1::uuid), p_id => $1)`,
    sweep: 'select cue.drop_account_jobs($1)',
    left: 'select from pgboss.job where id = $1'
  },
  erase_account: { sweep: 'select cue.erase_account($1)', left: 'select from cue.accounts where id = $1' }
}

t.setTimeout(Math.max(600_000, scaled(60_000)))
t.test(`no sweep reads idle accounts, ended executions or far deadlines, with ${spelled(10_000)} as with 100`, async t => {
  const { rows, addIdle, account, pages } = await setUp(t)
  const measure = async () => {
    const least: Record<string, number> = {}
    for (const [name, { work, sweep, left }] of Object.entries(sweeps)) {
      for (let round = 0; round < 5; round++) {
        const own = await account()
        const given = (text: string) => (text.includes('$1') ? [own] : [])
        if (work) await rows(work, [own])
        least[name] = Math.min(least[name] ?? Number.POSITIVE_INFINITY, await pages(sweep, given(sweep)))
        if (left) t.same(await rows(left, given(left)), [], `${name} has done its work`)
      }
    }
    return least
  }
  await addIdle(100)
  const small = await measure()
  await addIdle(scaled(10_000))
  const large = await measure()
  t.comment(JSON.stringify({ small, large }))
  // An index may have another level, which adds a page per lookup.
  for (const name of Object.keys(sweeps))
    t.ok(large[name]! <= small[name]! * 1.5 + 30, `${name}: ${small[name]} pages, then ${large[name]}`)
})
