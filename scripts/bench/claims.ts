/** Workers: double claims, claims over HTTP compared with a bare queue, and the time from a fire to its claim by a waiting worker. */
import type pg from 'pg'
import { fightForClaims } from './claimers.ts'
import { type Account, addAccounts, payload } from './cues.ts'
import { type Figure, figuresOf, quantile } from './figures.ts'
import type { Load, LoadResult } from './load.ts'
import type { Measure, Options } from './measure.ts'
import { start } from './processes.ts'
import type { Replica, Stage } from './stage.ts'

const accountCount = 100
const warmUpSeconds = 2
const loadSeconds = 5
const connections = 50
const firedCount = 300
/** The limit is ten fires per cue per hour. */
const firesPerCue = 10

const measure = async (stage: Stage, { runs, n }: Options): Promise<Figure[]> => {
  const first = await stage.startReplica('claims', { ROLES: 'api' })
  const [fought, ...accounts] = await addAccounts(first.pool, accountCount + 1)
  const cues = await addWorkerCues(first.pool, accounts)
  const rates = await compare(first, accounts, cues, runs)
  const latency = await waitForFires(first, accounts[0]!)

  const others = [await stage.startReplica('', { ROLES: 'api' }, first), await stage.startReplica('', { ROLES: 'api' }, first)]
  const ids = await addWaiting(first.pool, await addWorkerCues(first.pool, [fought!]), Math.ceil(n / 10))
  const urls = [first, ...others].map(({ url }) => url)
  const fight = await fightForClaims({ pool: first.pool, account: fought!, urls, ids, attempts: n })
  for (const replica of [first, ...others]) await replica.stop()
  return [...figuresOf([fight]), ...figuresOf(rates), ...figuresOf([latency])]
}

/** Compares claims of the next execution over fifty connections with the same on the bare queue. */
const compare = async (replica: Replica, accounts: Account[], cues: string[], runs: number) => {
  const bare = start('scripts/bench/bare-claims.ts', 'tested', { DATABASE_URL: replica.databaseUrl })
  const bareUrl = `http://127.0.0.1:${await bare.ask<number>('listen')}`
  const generator = start('scripts/bench/load.ts', 'around')
  const body = JSON.stringify({ worker_id: 'w' })
  const json = { 'content-type': 'application/json' }
  const loads: Record<string, Pick<Load, 'url' | 'requests'>> = {
    bare: { url: bareUrl, requests: accounts.map(({ id }) => ({ method: 'POST', path: `/claims/${id}`, headers: json, body })) },
    claim: {
      url: replica.url,
      requests: accounts.map(({ api_key }) => {
        return { method: 'POST', path: '/v1/executions/claim', headers: { ...json, authorization: `Bearer ${api_key}` }, body }
      })
    }
  }
  const perAccount = 1000
  const run = async (name: string, seconds: number) => {
    // Fresh tables exclude the cost of earlier claims. A warm-up excludes planning.
    await replica.pool.query('truncate cue.executions, cue.attempts')
    await addWaiting(replica.pool, cues, perAccount)
    await replica.pool.query('drop table if exists public.bench_jobs')
    await bare.ask('fill', { accounts: accounts.map(({ id }) => id), count: perAccount, payload })
    await replica.pool.query('vacuum analyze')
    await generator.ask('run', { ...loads[name]!, connections, seconds: warmUpSeconds })
    const process = name === 'bare' ? bare : replica.process
    const before = await process.usage()
    const result = await generator.ask<LoadResult>('run', { ...loads[name]!, connections, seconds })
    if (result.failed > 0) throw new Error(`${result.failed} requests of ${name} failed`)
    const { cpu_s } = await process.usage()
    return { ...result, cpu_us: ((cpu_s - before.cpu_s) / result.count) * 1e6 }
  }
  const rates: Record<string, number>[] = []
  for (let round = 0; round < runs; round++) {
    const [bareRun, claims] = [await run('bare', loadSeconds), await run('claim', loadSeconds)]
    rates.push({
      bare_per_s: bareRun.per_s,
      claims_per_s: claims.per_s,
      claims_to_bare_ratio: claims.per_s / bareRun.per_s,
      bare_cpu_us: bareRun.cpu_us,
      claim_cpu_us: claims.cpu_us,
      claim_p99_ms: claims.p99_ms
    })
  }
  for (const process of [generator, bare]) await process.stop()
  return rates
}

/** Measures from the request of a fire until the response to a waiting worker. */
const waitForFires = async (replica: Replica, account: Account) => {
  await replica.pool.query('truncate cue.executions')
  const cues = await addWorkerCues(replica.pool, Array<Account>(firedCount / firesPerCue).fill(account))
  const headers = { authorization: `Bearer ${account.api_key}`, 'content-type': 'application/json' }
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${replica.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}`)
    return (await answer.json()) as { id: string; execution_id: string }
  }
  const latencies: number[] = []
  for (let n = 0; n < firedCount; n++) {
    const waiting = post('/v1/executions/claim', { worker_id: 'w', wait: 30 }).then(claim => ({ claim, at: performance.now() }))
    await new Promise(resolve => setTimeout(resolve, 20)) // long enough for the worker to be waiting
    const firedAt = performance.now()
    const { id } = await post(`/v1/cues/${cues[n % cues.length]}/fire`, {})
    const { claim, at } = await waiting
    if (claim.execution_id !== id) throw new Error('another execution was claimed than was fired')
    latencies.push(at - firedAt)
  }
  latencies.sort((a, b) => a - b)
  return { fire_to_claim_p50_ms: quantile(latencies, 0.5), fire_to_claim_p99_ms: quantile(latencies, 0.99) }
}

/** Adds one worker cue per account that never comes due. */
const addWorkerCues = async (pool: pg.Pool, accounts: Account[]): Promise<string[]> => {
  const { rows } = await pool.query(
    `with made as (
       insert into cue.cues (id, account_id, name, transport, schedule_type, cron, payload)
       select cue.new_cue_id(), a, 'bench', 'worker', 'recurring', '0 9 * * *', $2 from unnest($1::uuid[]) as a returning id, account_id)
     insert into cue.cue_runs (cue_id, account_id, transport) select id, account_id, 'worker' from made returning cue_id`,
    [accounts.map(({ id }) => id), payload]
  )
  return rows.map(row => row.cue_id)
}

/** Adds claimable executions, `count` per cue, a millisecond apart. */
const addWaiting = async (pool: pg.Pool, cueIds: string[], count: number): Promise<string[]> => {
  const { rows } = await pool.query(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, claimable_at,
                                 claim_deadline_at, created_at, updated_at)
     select cue.uuid_v7(now()), c.account_id, c.id, 'worker', 'pending', 'schedule', now(), c.payload, now() - ($2 - g) * interval '1 millisecond',
            now() + interval '7 days', now(), now()
       from cue.cues c cross join generate_series(1, $2) g where c.id = any ($1)
     returning id`,
    [cueIds, count]
  )
  return rows.map(row => row.id)
}

export default {
  title: n =>
    `${n} attempts of 50 workers over three replicas, claims under ${connections} connections, and ${firedCount} fires to one who waits`,
  runs: 3,
  n: 1_000_000,
  measure
} satisfies Measure
