// Costs on large tables, in pages touched by PostgreSQL, which do not depend on the speed of the machine. 200,000
// executions and 30,000 cues stand for millions, so that the test takes seconds; SCALE multiplies them.
import { randomUUID } from 'node:crypto'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import root, { type Test } from 'tap'
import { type BegunAttempt, createFunctions } from '../../src/database/functions.ts'
import type { DB } from '../../src/db.types.ts'
import { pageQuery, totalQuery } from '../../src/executions/queries.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { lookAhead } from '../support/firing-stage.ts'
import { scaled, spelled } from '../support/scale.ts'
import { dueCues, type Row, refused, resultsOf } from '../support/stage.ts'

const start = '2030-01-15T09:00:00Z'
const now = new Date(start)
const clock = () => now

/** A plan as returned by EXPLAIN. */
type Plan = { 'Shared Hit Blocks': number; 'Shared Read Blocks': number; 'Node Type': string; Plans?: Plan[] }

const setUp = async (t: Test) => {
  const { pool, url } = await createDatabase(t)
  // One connection for everything: its plans are made while the tables are small, and stay cached.
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  // Rows deleted by commits not yet flushed to disk could not be vacuumed.
  await client.query('set jit = off; set synchronous_commit = on')
  // Loads rows without checking foreign keys, which would take most of the time.
  const loader = new pg.Client({ connectionString: url })
  await loader.connect()
  t.teardown(() => loader.end())
  // Synchronously, or the following vacuum could not mark the pages as all-visible yet.
  await loader.query('set session_replication_role = replica; set synchronous_commit = on')
  const load = async (text: string, values: unknown[]): Promise<Row[]> => (await loader.query(text, values)).rows
  const rows = async (text: string, values: unknown[] = []): Promise<Row[]> => (await client.query(text, values)).rows
  const explain = async (text: string, values: readonly unknown[] = []): Promise<Plan> => {
    const { rows } = await client.query({ text: `explain (analyze, buffers, format json) ${text}`, values: [...values] })
    return rows[0]['QUERY PLAN'][0].Plan
  }
  /** Pages touched, from memory or disk. */
  const pages = async (text: string, values: readonly unknown[] = []) => {
    const plan = await explain(text, values)
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  }
  /** Pages touched by one function call, all its statements included. */
  const fn = createFunctions({ query: query => client.query(query) }, clock)
  const counted = async <T>(call: (on: typeof fn) => Promise<T>): Promise<{ pages: number; result: T }> => {
    let touched = 0
    const on = createFunctions(
      {
        query: async query => {
          const { text, values = [] } = query
          await client.query(`create temporary table if not exists answer (row jsonb)`)
          await client.query('truncate answer')
          const { rows } = await client.query({
            text: `explain (analyze, buffers, format json) insert into answer select to_jsonb(a) from (${text}) a`,
            values
          })
          const scan = find(rows[0]['QUERY PLAN'][0].Plan, 'Function Scan')
          touched += scan['Shared Hit Blocks'] + scan['Shared Read Blocks']
          return {
            ...rows,
            rows: (await client.query('select row from answer')).rows.map(answer => answer.row)
          } as unknown as pg.QueryResult
        }
      },
      clock
    )
    const result = await call(on)
    return { pages: touched, result }
  }
  const account = async () => {
    const id = randomUUID()
    await rows(`insert into cue.accounts (id, email, plan, webhook_secret) values ($1::uuid, $1, 'scale', $2)`, [
      id,
      `whsec_${'a'.repeat(64)}`
    ])
    return id
  }
  /** Adds cues, due at this instant or never. */
  const addCues = (account_id: string, count: number, next_run: Date | null) =>
    load(
      `with c as (
         insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload)
         select 'cue_' || left(md5(random()::text), 12), $1, 'c', 'webhook', 'recurring', '* * * * *', 'http://127.0.0.1/', '{"n": 1}' from generate_series(1, $2::int)
         returning id, account_id, transport, cue.schedule_key(cues) as schedule_key)
       insert into cue.cue_runs (cue_id, account_id, transport, schedule_key, next_run)
       select id, account_id, transport, schedule_key, $3 from c returning cue_id`,
      [account_id, count, next_run]
    )
  /** Adds finished executions of these cues, a tenth of a second apart. */
  const addExecutions = (account_id: string, cue_ids: string[], count: number) =>
    load(
      `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                   created_at, updated_at)
       select cue.uuid_v7(q.at), $1, ($2::text[])[1 + g % cardinality($2::text[])], 'webhook', (array['success', 'failed'])[1 + (g % 50 = 0)::int]::cue.execution_status,
              'schedule', q.at, '{"n": 1}', 1, q.at, q.at, q.at, q.at
         from generate_series(1, $3::int) g cross join lateral (select $4::timestamptz - ($3 - g) * interval '0.1 s' as at) q`,
      [account_id, cue_ids, count, start]
    )
  await fn.maintainPartitions({})
  await fn.beatEngine({ engine_id: randomUUID(), version: 'x', lateness_ms: null, open_deliveries: 0, missed_after: '1 day' })
  return { pool, client, rows, fn, counted, pages, explain, account, addCues, addExecutions }
}

const find = (plan: Plan, type: string): Plan => {
  if (plan['Node Type'] === type) return plan
  for (const inner of plan.Plans ?? []) {
    const found = find(inner, type)
    if (found['Node Type'] === type) return found
  }
  return plan
}

root.test('costs on small and on large tables', async t => {
  const near = (t: Test, large: number, small: number, share: number, title: string) =>
    t.ok(large <= small * (1 + share) + 30, `${title}: ${small} pages, then ${large}`)

  const scene = await setUp(t)
  const { rows, fn, counted, pages, explain, account, addCues, addExecutions } = scene

  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool: scene.pool }) }).withSchema('cue')

  const take = async (limit: number) => {
    const due = await rows('select * from cue.cue_runs where next_run <= $1 limit $2', [now, limit])
    return counted(on => on.takeDueCues({ ...dueCues(due, new Date(now.getTime() + 3_600_000)), missed_after: '1 day' }))
  }
  const finish = (attempts: BegunAttempt[]) => counted(on => on.finishAttempts(resultsOf(attempts, {}, now)))
  const settle = (attempts: BegunAttempt[]) => counted(on => on.settleAttempts(resultsOf(attempts, refused, now)))
  const begin = async (limit: number) => {
    await rows('update cue.executions set attempt_due_at = $1 where attempt_due_at is not null', [now])
    return counted(on => beginWaiting(on, { limit }))
  }

  /**
   * Everything one delivery and one retry take, for a hundred at a time. The minimum of several rounds: plans are made in the first, and
   * activity of other sessions can make this one read its catalogs again.
   */
  const deliver = async (account_id: string) => {
    const cost: Record<string, number> = {}
    for (let round = 0; round < 7; round++) {
      await addCues(account_id, 200, now)
      const first = await take(100)
      const second = await take(100)
      const finished = await finish(first.result)
      const settled = await settle(second.result)
      const begun = await begin(100)
      const last = await finish(begun.result)
      t.same(
        [first.result.length, second.result.length, finished.result, settled.result, begun.result.length, last.result],
        Array(6).fill(100)
      )
      const these = { take: second.pages, finish: finished.pages, settle: settled.pages, begin: begun.pages }
      for (const [name, pages] of Object.entries(these)) cost[name] = Math.min(cost[name] ?? Number.POSITIVE_INFINITY, pages)
    }
    return cost
  }

  const sweeps: Record<string, (on: typeof fn) => Promise<unknown>> = {
    recover_flights: on => on.recoverFlights({}),
    recover_stuck: on => on.recoverStuck({}),
    expire_outcomes: on => on.expireOutcomes({}),
    requeue_attempts: on => on.requeueAttempts({}),
    begin_attempts: on => beginWaiting(on, { limit: 100 }),
    next_wakes: on => on.nextWakes({}),
    recover_leases: on => on.recoverLeases({}),
    miss_unclaimed: on => on.missUnclaimed({}),
    ended_pauses: on => on.endedPauses({}),
    passed_windows: on => on.passedWindows({}),
    extend_flights: on => on.extendFlights({ flight_ids: [1, 2, 3] })
  }
  const sweep = async () => {
    const cost: Record<string, number> = {}
    for (const [name, run] of Object.entries(sweeps)) {
      for (let round = 0; round < 7; round++) cost[name] = Math.min(cost[name] ?? Number.POSITIVE_INFINITY, (await counted(run)).pages)
    }
    return cost
  }

  const mine = await account()
  const others = await account()
  const own = (await addCues(mine, 100, null)).map(row => row.cue_id as string)
  const small = { delivery: await deliver(others), sweeps: await sweep() }

  await t.test(`firing touches as many pages among ${spelled(30_000)} cues as among a thousand`, async t => {
    await rows('delete from cue.executions')
    // The minimum of three, since an index occasionally splits or cleans up a page.
    const least = async () => {
      const costs: number[] = []
      for (let batch = 0; batch < 3; batch++) {
        await addCues(others, 500, now)
        const taken = await take(500)
        t.equal(taken.result.length, 500)
        costs.push(taken.pages)
      }
      return Math.min(...costs)
    }
    const among = await least()
    await addCues(others, scaled(30_000), new Date(now.getTime() + 86_400_000))
    const amongMany = await least()
    // From 100,000 cues on, the four indexes that are descended for each cue have one more level. Before PostgreSQL 17 an index is descended once
    // per element of a list, not once per page.
    const { version } = (await rows(`select current_setting('server_version_num')::int as version`))[0]
    near(t, amongMany, among, version < 170_000 ? 0.4 : 0.25, 'take_due_cues of 500')
  })

  await t.test('looking ahead reads due cues, not all cues', async t => {
    const look = (until: Date) => counted(on => lookAhead(on, { until }))
    // Entries fired above are skipped once no connection of the server, even one of another test file, can still see them.
    const idle = await eventually(async () => {
      const { result, pages } = await look(now)
      return pages < 200 ? result : undefined
    })
    t.equal(idle.length, 1, 'no due cue, and the first later one')
    await addCues(others, 1000, now)
    const busy = await look(now)
    t.equal(busy.result.length, 1001)
    t.ok(busy.pages < 1000 * 20, `${busy.pages} pages for a thousand`)
  })

  const many = scaled(200_000)
  await addExecutions(mine, own, many)
  await rows('vacuum analyze cue.executions')
  await rows('vacuum analyze cue.cues')

  // Lists -------------------------------------------------------------------------------------------------------------------------------

  const page = async (filters: object) => {
    const { sql, parameters } = pageQuery(db, mine, { limit: 20, offset: 0, ...filters }, now).compile()
    const { rows } = await scene.client.query(sql, [...parameters])
    return { pages: await pages(sql, parameters), shown: rows.length, found: Number(rows[0]?.found ?? 0) }
  }
  const total = async (filters: object) => {
    const { sql, parameters } = totalQuery(db, mine, { limit: 20, offset: 0, ...filters }, now).compile()
    const [found] = await rows(sql, [...parameters])
    return { pages: await pages(sql, parameters), found: Number(found.total) }
  }
  const cue_id = own[7]!

  for (const [what, filters, most] of [
    ['the first page', {}, 400],
    ['a page of one cue', { cue_id }, 400],
    ['the second page', { offset: 20 }, 500],
    ['a page at 100,000', { offset: 100_000 }, 400 + 100_000 / 50],
    ['a page of one cue at 1,500', { cue_id, offset: 1500 }, 400 + 1500 / 20],
    ['a page of an early period', { since: '2030-01-15T08:00:00Z', until: '2030-01-15T08:01:00Z' }, 1500],
    ['a page of a common status, behind thousands of others', { status: 'success' }, 10_000]
  ] as const) {
    await t.test(`${what} reads its own rows and the index entries before them`, async t => {
      const { pages, shown, found } = await page(filters)
      t.same([shown, found], [20, 21])
      t.ok(pages <= most, `${pages} pages, at most ${most}`)
    })
  }

  for (const [what, filters, expected] of [
    ['an account', {}, 10_001],
    ['a cue', { cue_id }, Math.min(many / 100, 10_001)]
  ] as const) {
    await t.test(`the total of ${what} is counted in an index, up to 10,000`, async t => {
      const { pages, found } = await total(filters)
      t.equal(found, expected)
      t.ok(pages <= 700, `${pages} pages`)
    })
  }

  await t.test('an empty list reads no rows of other accounts', async t => {
    const { sql, parameters } = pageQuery(db, randomUUID(), { limit: 20, offset: 0 }, now).compile()
    t.ok((await pages(sql, parameters)) < 60)
  })

  await t.test('finds one execution in the partition of its month', async t => {
    const [{ id }] = await rows('select id from cue.executions where account_id = $1 order by id limit 1 offset 1000', [mine])
    t.ok((await pages('select * from cue.execution_view where id = $1 and account_id = $2', [id, mine])) <= 12)
  })

  await t.test('a list skips entries of a deleted cue cheaply', async t => {
    await fn.deleteCue({ account_id: mine, cue_id: own[0]! })
    const { pages, found } = await page({})
    t.equal(found, 21)
    t.ok(pages <= 400, `${pages} pages`)
    t.equal((await page({ cue_id: own[0]! })).found, 0)
  })

  // Sweeps and deliveries ----------------------------------------------------------------------------------------------------------------

  await t.test('sweeps read no finished executions, however many there are', async t => {
    await rows('vacuum full cue.flights')
    // As before: none is due. Of due cues, the oldest are read for their windows.
    await rows('update cue.cue_runs set next_run = null where next_run <= $1', [now])
    await rows('vacuum cue.cue_runs')
    const large = await sweep()
    for (const name of Object.keys(sweeps)) near(t, large[name]!, small.sweeps[name]!, 0.1, name)
  })

  await t.test('delivering reads as many pages as on empty tables, plus the height of the indexes', async t => {
    const large = await deliver(others)
    for (const name of ['take', 'finish', 'settle', 'begin']) near(t, large[name]!, small.delivery[name]!, 0.7, `${name} of 100`)
  })

  await t.test('the test detects a plan that reads a whole table', async t => {
    const plan = await explain('select count(*) from cue.executions where error_message is not null')
    t.ok(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] > 2000)
  })
})
