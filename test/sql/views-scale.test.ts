/**
 * Cost of the queries in sql/README.md, in pages touched by PostgreSQL. 20,000 cues stand for many; SCALE=50 makes a
 * million, with an execution each.
 */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { scaled, spelled } from '../support/scale.ts'

const readme = readFileSync(new URL('../../sql/README.md', import.meta.url), 'utf8')
const [, shown] = /```sql\n([^`]*)```/.exec(readme)!
const queries = [...shown!.matchAll(/^select \* from cue\.(\w+).*;/gm)].map(([text, view]) => ({ text, view: view! }))

t.setTimeout(600_000)
t.test(`the queries in sql/README.md read as much among ${spelled(20_000)} cues as among a thousand`, async t => {
  const { url } = await createDatabase(t)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  const rows = async (text: string, values: unknown[] = []) => (await client.query(text, values)).rows
  await rows('set session_replication_role = replica; set jit = off')
  const addAccounts = async (count: number): Promise<string[]> =>
    (
      await rows(
        `with a as (
           insert into cue.accounts (id, email, plan, webhook_secret)
           select id, id || '@example.com', 'scale', 'whsec_' || repeat('a', 64)
             from (select gen_random_uuid() as id from generate_series(1, $1::int)) n returning id)
         insert into cue.usage_counters (account_id, month, slot, executions) select id, cue.usage_month(now()), 0, random() * 1000 from a
         returning account_id`,
        [count]
      )
    ).map(row => row.account_id)
  /** Daily cues, each with an execution of the last day, of which one in fifty failed. */
  const addCues = async (account_ids: string[], count: number) => {
    await rows(
      `with c as (
         insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload)
         select 'cue_' || left(md5(random()::text), 12), ($1::uuid[])[1 + g % cardinality($1)], 'c', 'webhook', 'recurring', '0 9 * * *',
                'http://127.0.0.1/', '{}' from generate_series(1, $2::int) g
         returning id, account_id),
       r as (insert into cue.cue_runs (cue_id, account_id, transport, next_run)
             select id, account_id, 'webhook', date_trunc('hour', now()) + interval '5 hours' from c)
       insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                   created_at, updated_at)
       select cue.uuid_v7(now()), account_id, id, 'webhook', (array['success', 'failed'])[1 + (row_number() over () % 50 = 0)::int]::cue.execution_status,
              'schedule', now(), '{}', 1, now(), now(), now(), now() from c`,
      [account_ids, count]
    )
    await rows('vacuum analyze')
  }
  const measure = async () => {
    const pages: Record<string, number> = {}
    for (const { text, view } of queries) {
      const asked = text.replace('<account id>', account)
      await rows(asked) // the first time the catalog is read, too
      const since = performance.now()
      const [{ 'QUERY PLAN': plan }] = await rows(`explain (analyze, buffers, format json) ${asked}`)
      pages[view] = plan[0].Plan['Shared Hit Blocks'] + plan[0].Plan['Shared Read Blocks']
      t.comment(`${view}: ${pages[view]} pages, ${Math.round(performance.now() - since)} ms`)
    }
    return pages
  }
  t.same(
    queries.map(({ view }) => view),
    ['due_cues', 'queue_depth', 'recent_failures', 'stuck_executions', 'cue_health', 'account_usage']
  )
  const [account] = (await addAccounts(1)) as [string]
  await addCues([account], 100)
  await addCues(await addAccounts(25), 900)
  const small = await measure()
  await addCues(await addAccounts(scaled(500)), scaled(20_000))
  const large = await measure()
  // Indexes are one level higher. Usage is summed for all accounts, and cues are counted only for those shown.
  for (const { view } of queries) {
    const most = small[view]! * 2 + 100 + (view === 'account_usage' ? scaled(500) * 10 : 0)
    t.ok(large[view]! <= most, `${view}: ${small[view]} pages, then ${large[view]}`)
  }
})
