// What a dry run, the targets of an operation and lists of dead letters cost beside many executions, in pages touched by PostgreSQL. 60,000 executions
// stand for a million: SCALE=17 makes those.
import { randomUUID } from 'node:crypto'
import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import t from 'tap'
import { createFunctions } from '../../src/database/functions.ts'
import type { DB } from '../../src/db.types.ts'
import { listExecutions } from '../../src/executions/queries.ts'
import { countTargets, listTargets, sampleTargets, targetsOf } from '../../src/operations/targets.ts'
import { createDatabase } from '../support/database.ts'
import { scaled, spelled } from '../support/scale.ts'

const now = new Date('2030-01-15T09:00:00Z')
const ago = (hours: number) => new Date(+now - hours * 3_600_000).toISOString()

t.setTimeout(600_000)

t.test(`a window of ${spelled(60_000)} executions`, async t => {
  const { pool, url } = await createDatabase(t)
  const queries: CompiledQuery[] = []
  const dialect = new PostgresDialect({ pool })
  const db = new Kysely<DB>({ dialect, log: event => void queries.push(event.query) }).withSchema('cue')
  const loader = new pg.Client({ connectionString: url })
  await loader.connect()
  t.teardown(() => loader.end())
  await loader.query('set session_replication_role = replica; set jit = off; set synchronous_commit = on')
  await createFunctions(pool, () => now).maintainPartitions({})
  const account = randomUUID()
  await loader.query(
    `insert into cue.accounts (id, email, plan, webhook_secret) values ($1::uuid, $1, 'scale', 'whsec_' || repeat('a', 64))`,
    [account]
  )
  await loader.query(
    `insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload)
     select 'cue_' || lpad(n::text, 12, '0'), $1, 'c', 'webhook', 'recurring', '* * * * *', 'http://127.0.0.1/', '{}' from generate_series(0, 99) n`,
    [account]
  )
  /** Executions of these hours ago, one a second; every tenth failed, and every hundredth is a dead letter. */
  const load = async (count: number, hours: number) => {
    await loader.query(
      `with e as (
         insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                     error_message, created_at, updated_at)
         select cue.uuid_v7(q.at), $1, 'cue_' || lpad((g % 100)::text, 12, '0'), 'webhook',
                (case when g % 10 = 0 then 'failed' else 'success' end)::cue.execution_status, 'schedule', q.at, '{}', 1, q.at, q.at,
                case when g % 10 = 0 then 'boom' end, q.at, q.at
           from generate_series(1, $2::int) g cross join lateral (select $3::timestamptz + g * interval '1 second' as at) q
         returning id, account_id, cue_id, extract(epoch from created_at)::bigint % 100 as n)
       insert into cue.dead_letters (execution_id, account_id, cue_id, error_group) select id, account_id, cue_id, gen_random_uuid() from e where n = 0`,
      [account, count, ago(hours)]
    )
    await loader.query('vacuum analyze cue.executions')
    await loader.query('vacuum analyze cue.dead_letters')
  }

  /** The pages that the queries of a call touch, and its result. */
  const touched = async <T>(call: () => Promise<T>): Promise<{ pages: number; result: T }> => {
    queries.length = 0
    const result = await call()
    let pages = 0
    for (const { sql, parameters } of [...queries]) {
      const { rows } = await loader.query({ text: `explain (analyze, buffers, format json) ${sql}`, values: [...parameters] })
      const { Plan: plan } = rows[0]['QUERY PLAN'][0]
      pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    }
    return { pages, result }
  }
  const targets = (filter: object) => targetsOf(db, account, { type: 'replay', filter } as never, now)
  const dryRun = (filter: object) =>
    touched(async () => [await countTargets(targets(filter)), (await sampleTargets(targets(filter))).length])
  const lists = (filter: object) =>
    touched(async () => (await listExecutions(db, account, { limit: 20, offset: 0, ...filter } as never, now)).total)

  const hour = { status: 'failed', from: ago(2), to: ago(1) }
  const measure = async () => ({
    dryRun: await dryRun(hour),
    cue: await dryRun({ ...hour, cue_id: 'cue_000000000010' }),
    targets: await touched(async () => JSON.parse((await listTargets(db, 'replay', targets(hour))).targets).length),
    dead: await dryRun({ dead: true, from: ago(2), to: ago(1) }),
    listed: await lists({ dead: true, from: ago(2), to: ago(1) }),
    first: await lists({ dead: true, limit: 20 }),
    ofCue: await lists({ dead: true, cue_id: 'cue_000000000010', from: ago(2) })
  })
  await load(20_000, 6)
  const small = await measure()
  await load(scaled(60_000), 160)
  const large = await measure()

  t.same(small.dryRun.result, [360, 10])
  t.same(small.targets.result, 360)
  for (const [name, { pages, result }] of Object.entries(large)) {
    const before = small[name as keyof typeof small]
    t.comment(`${name}: ${before.pages} pages, then ${pages}`)
    if (name !== 'first') t.same(result, before.result, name)
    // Few matches have their cues looked up one by one, with two to four pages each.
    t.ok(pages <= before.pages * 1.25 + (name === 'targets' ? 1600 : 800), `${name}: ${before.pages} pages, then ${pages}`)
  }
  const week = await dryRun({ status: 'failed', from: ago(168) })
  t.same(week.result, [2000 + scaled(60_000) / 10, 10])
  t.ok(week.pages > large.dryRun.pages * 5, `${week.pages} pages: the test sees what a wide window costs`)
})
