/** The cost of firing as the number of cues grows: pages read and time needed to find and take 500 due cues. */
import pg from 'pg'
import { addAccounts, addCues } from './cues.ts'
import { type Figure, figuresOf } from './figures.ts'
import type { Measure, Options } from './measure.ts'
import type { Stage } from './stage.ts'

const batchSize = 500
const accountCount = 100

/** PostgreSQL may switch to a generic plan after five executions. */
const warmUps = 6

const measure = async (stage: Stage, { runs, n }: Options) => {
  const { url, pool } = await stage.createOurs('firing')
  const accounts = await addAccounts(pool, accountCount)
  await pool.query("select from cue.beat_engine(gen_random_uuid(), 'bench')") // nothing fires while no engine is alive

  // A single connection, as in an engine, so that plans made for small tables are still used when they have grown.
  const client = new pg.Client({ connectionString: url, application_name: 'bench' }).on('error', () => {})
  await client.connect()
  let registered = 0
  const fire = async () => {
    const due = await pickDue(pool, registered)
    await pool.query('update cue.engines set last_seen_at = now()')
    const look = await explain(client, 'cue.look_ahead(now(), $1)', [batchSize])
    const take = await explain(client, 'cue.take_due_cues($1, $2, $3, $4)', due)
    if (take.rows !== batchSize) throw new Error(`${take.rows} of ${batchSize} due cues were taken`)
    return { look_buffers: look.buffers, look_ms: look.ms, take_buffers: take.buffers, take_ms: take.ms }
  }

  const figures: Figure[] = []
  for (const count of [1000, n / 10, n]) {
    while (registered < count) {
      const more = Math.min(count - registered, 100_000)
      await addCues(pool, { accounts, count: more, callbackUrl: stage.receiver.url })
      registered += more
    }
    await pool.query(
      "update cue.cue_runs set next_run = date_trunc('milliseconds', now() + interval '1 hour' + random() * interval '30 days') where next_run is null"
    )
    await pool.query('vacuum analyze cue.cues, cue.cue_runs')
    await pool.query('checkpoint')
    for (let run = 0; run < warmUps; run++) await fire()
    const fired: Awaited<ReturnType<typeof fire>>[] = []
    for (let run = 0; run < runs; run++) fired.push(await fire())
    figures.push(...figuresOf(fired, `${count} cues: `))
  }
  await client.end()
  return figures
}

/** Makes cues from all over the table due, and returns the arguments for taking them. Their next slots are far away. */
const pickDue = async (pool: pg.Pool, registered: number) => {
  const { rows } = await pool.query(
    `update cue.cue_runs set next_run = date_trunc('milliseconds', now())
      where cue_id in (select cue_id from cue.cue_runs tablesample bernoulli ($1) order by random() limit $2)
    returning cue_id, version, next_run::text`,
    [Math.min(100, (200 * batchSize) / registered), batchSize]
  )
  return [
    rows.map(row => row.cue_id),
    rows.map(row => row.version),
    rows.map(row => row.next_run),
    rows.map(() => new Date(Date.now() + 20 * 86_400_000).toISOString())
  ]
}

/**
 * Calls a function, and returns the number of rows, the pages read (cached or not) by it and everything it calls, and its duration in ms.
 */
const explain = async (client: pg.Client, call: string, values: unknown[]) => {
  const { rows } = await client.query(`explain (analyze, buffers, timing off, format json) select * from ${call}`, values)
  const [{ Plan: plan, 'Execution Time': ms }] = rows[0]['QUERY PLAN']
  return { rows: plan['Actual Rows'] as number, buffers: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'], ms: ms as number }
}

export default {
  title: n => `finding and taking ${batchSize} due cues among 1000 … ${n} registered ones`,
  runs: 5,
  n: 1_000_000,
  measure
} satisfies Measure
