/** The cost of what dashboards read, in pages touched by PostgreSQL, for one account with many cues and executions. */
import pg from 'pg'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { scaled, spelled } from '../support/scale.ts'

t.test(`a dashboard reads a bounded number of pages among ${spelled(40_000)} executions`, async t => {
  const { url } = await createDatabase(t)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  const rows = async (text: string, values: unknown[] = []) => (await client.query(text, values)).rows
  // As in the service's own sessions.
  await rows('set session_replication_role = replica; set jit = off; set enable_seqscan = off')
  const account = '00000000-0000-0000-0000-000000000001'
  await rows(
    "insert into cue.accounts (id, email, plan, webhook_secret) values ($1, 'ada@example.com', 'scale', 'whsec_' || repeat('a', 64))",
    [account]
  )
  /** Hourly cues with ten executions of the last hours each, one of which failed. */
  const addCues = async (count: number) => {
    await rows(
      `with c as (
         insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload, created_at)
         select 'cue_' || left(md5(random()::text), 12), $1, 'cue ' || g, 'webhook', 'recurring', '0 * * * *', 'http://127.0.0.1/', '{}',
                now() - interval '1 year' + g * interval '1 minute' from generate_series(1, $2::int) g
         returning id, account_id),
       r as (insert into cue.cue_runs (cue_id, account_id, transport, next_run)
             select id, account_id, 'webhook', date_trunc('hour', now()) + interval '1 hour' from c)
       insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                   created_at, updated_at)
       select cue.uuid_v7(at), account_id, id, 'webhook', case when n = 1 then 'failed' else 'success' end::cue.execution_status, 'schedule', at, '{}',
              1, at, at, at, at
         from c cross join generate_series(1, 10) n cross join lateral (select now() - n * interval '10 minutes' * (0.5 + random()) as at) x`,
      [account, count]
    )
    await rows('vacuum analyze')
  }
  /** Gives the newest cue this many executions, one a minute. */
  const addRuns = async (count: number) => {
    await rows(
      `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                   created_at, updated_at)
       select cue.uuid_v7(at), $1, (select id from cue.cues order by created_at desc limit 1), 'webhook', 'success', 'schedule', at, '{}', 1, at, at, at, at
         from generate_series(now() - $2 * interval '1 minute', now(), interval '1 minute') at`,
      [account, count]
    )
    await rows('vacuum analyze')
  }
  const ids = async () => (await rows('select id from cue.cues order by created_at desc limit 50')).map(({ id }) => id)
  const measure = async () => {
    const queries: [string, string, unknown[]][] = [
      ['overview', 'select * from cue.read_overview($1)', [account]],
      ['overview of a week', "select * from cue.read_overview($1, now() - interval '7 days')", [account]],
      ['search', "select * from cue.find_cues($1, 'no such text')", [account]],
      ['latest results', 'select * from cue.latest_results($1)', [await ids()]],
      [
        'history',
        "select * from cue.read_history($1, $2, array(select generate_series(now() - interval '92 days', now() + interval '1 day', '1 day')))",
        [account, (await ids())[0]]
      ]
    ]
    const pages: Record<string, number> = {}
    for (const [name, text, values] of queries) {
      await rows(text, values) // the first time the catalog is read, too
      const [{ 'QUERY PLAN': plan }] = await rows(`explain (analyze, buffers, format json) ${text}`, values)
      pages[name] = plan[0].Plan['Shared Hit Blocks'] + plan[0].Plan['Shared Read Blocks']
      t.comment(`${name}: ${pages[name]} pages`)
    }
    return pages
  }
  await addCues(400)
  const small = await measure()
  await addCues(scaled(4000))
  const large = await measure()
  await addRuns(12_000)
  large.history = (await measure()).history!
  // The overview reads 2,000 executions and 1,000 cues at most, a search 10,000 cues, a history 5,000 executions.
  const most: Record<string, number> = {
    overview: 12_000,
    'overview of a week': 12_000,
    search: 30_000,
    history: 12_000,
    'latest results': small['latest results']! * 2 + 100
  }
  for (const [name, pages] of Object.entries(large)) t.ok(pages <= most[name]!, `${name}: ${small[name]} pages, then ${pages}`)
})
