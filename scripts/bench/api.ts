/** Requests per second beside a bare Fastify route with one statement: the cost of authentication, limits, validation and rules. */
import type pg from 'pg'
import { figuresOf } from '../stage/figures.ts'
import { start } from '../stage/processes.ts'
import { type Account, addAccounts, addCues, payload } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import type { Load, LoadResult } from './load.ts'
import { type Measure, type Service, startService } from './service.ts'

/** V8 compiles for that long: in its first seconds, a replica needs half as much CPU again for each creation. */
const warmUpSeconds = 15
const accountCount = 100
const json = { 'content-type': 'application/json' }
const keyOf = ({ api_key }: Account) => ({ ...json, authorization: `Bearer ${api_key}` })

/** Starts the bare server beside a replica, and returns a function that measures requests to one of them. */
const startLoads = async (stage: Stage, { replica, url }: Service) => {
  const bare = start('scripts/bench/bare.ts', 'tested', { env: { DATABASE_URL: url } })
  const generator = start('scripts/bench/load.ts', 'around')
  const addresses = { bare: `http://127.0.0.1:${await bare.ask<number>('listen')}`, ours: replica.address }
  const run = async (target: 'bare' | 'ours', load: Pick<Load, 'requests' | 'connections' | 'seconds'>) => {
    const { usage } = target === 'bare' ? bare : replica
    const before = [(await usage()).cpu_s, stage.databaseCpu()] as const
    const result = await generator.ask<LoadResult>('run', { url: addresses[target], ...load })
    const perRequest = (seconds: number) => (seconds / result.count) * 1e6
    return { ...result, cpu_us: perRequest((await usage()).cpu_s - before[0]), database_us: perRequest(stage.databaseCpu() - before[1]) }
  }
  const end = () => Promise.all([generator, bare, replica].map(child => child.kill()))
  return { run, end }
}

export const api: Measure = {
  title: n => `the API for ${n} s a run, over ${accountCount} connections, with as many accounts`,
  runs: 3,
  n: 5,
  unit: 'seconds',
  measure: async (stage, { runs, n }) => {
    // Rate limits are on but never reached. The API gets all connections, like the bare server.
    const service = await startService(stage, 'api', { ROLES: 'api' })
    const accounts = await addAccounts(service.pool, accountCount)
    for (const account of accounts) await addCues(service.pool, { accounts: [account], count: 1, hook: stage.receiver.url })
    await service.pool.query('vacuum analyze')
    const { rows } = await service.pool.query('select account_id, id from cue.cues')
    const cueOf = new Map(rows.map(({ account_id, id }) => [account_id, id]))
    const cue = {
      name: 'posted',
      schedule: { cron: '0 9 1 1 *' },
      callback: { url: `${stage.receiver.url}/hook` },
      payload: JSON.parse(payload)
    }
    const requests = {
      bare_select: accounts.map(({ id }) => ({ method: 'GET', path: `/cues/${cueOf.get(id)}` })),
      get_cue: accounts.map(account => ({ method: 'GET', path: `/v1/cues/${cueOf.get(account.id)}`, headers: keyOf(account) })),
      post_cue: accounts.map(account => ({ method: 'POST', path: '/v1/cues', headers: keyOf(account), body: JSON.stringify(cue) }))
    }
    const { run, end } = await startLoads(stage, service)
    const measure = async (name: keyof typeof requests, seconds: number) => {
      const result = await run(name === 'bare_select' ? 'bare' : 'ours', { requests: requests[name], connections: accountCount, seconds })
      await service.pool.query("delete from cue.cues where name = 'posted'")
      await service.pool.query('vacuum analyze cue.cues, cue.cue_runs') // otherwise autovacuum would run during the next measurement
      return result
    }
    const series = async (seconds: number) =>
      [await measure('bare_select', seconds), await measure('get_cue', seconds), await measure('post_cue', seconds)] as const
    await series(warmUpSeconds)
    const rates: Record<string, number>[] = []
    while (rates.length < runs) {
      const [bare, get, post] = await series(n)
      const each = { bare, get, post }
      const rate: Record<string, number> = { bare_select_per_s: bare.per_s, get_cue_per_s: get.per_s, post_cue_per_s: post.per_s }
      for (const [name, { per_s }] of Object.entries({ get, post })) rate[`${name}_to_bare_ratio`] = per_s / bare.per_s
      for (const key of ['cpu_us', 'database_us', 'p99_ms'] as const)
        for (const [name, result] of Object.entries(each)) rate[`${name}_${key}`] = result[key]
      rates.push(rate)
    }
    await end()
    return figuresOf(rates)
  }
}

export const claims: Measure = {
  title: n => `claims of the next execution for ${n} s a run, over 50 connections, beside a bare queue`,
  runs: 3,
  n: 5,
  unit: 'seconds',
  measure: async (stage, { runs, n }) => {
    const service = await startService(stage, 'claims', { ROLES: 'api' })
    const accounts = await addAccounts(service.pool, accountCount)
    await addCues(service.pool, { accounts, count: accountCount })
    const { run, end } = await startLoads(stage, service)
    const body = JSON.stringify({ worker_id: 'w' })
    const requests = {
      bare: accounts.map(({ id }) => ({ method: 'POST', path: `/claims/${id}`, headers: json, body })),
      ours: accounts.map(account => ({ method: 'POST', path: '/v1/executions/claim', headers: keyOf(account), body }))
    }
    const measure = async (target: 'bare' | 'ours') => {
      await fillQueues(service.pool)
      const load = { requests: requests[target], connections: 50 }
      await run(target, { ...load, seconds: 2 }) // a warm-up excludes planning
      return run(target, { ...load, seconds: n })
    }
    const rates: Record<string, number>[] = []
    while (rates.length < runs) {
      const [bare, ours] = [await measure('bare'), await measure('ours')]
      rates.push({
        bare_per_s: bare.per_s,
        claims_per_s: ours.per_s,
        claims_to_bare_ratio: ours.per_s / bare.per_s,
        bare_cpu_us: bare.cpu_us,
        claim_cpu_us: ours.cpu_us,
        claim_p99_ms: ours.p99_ms
      })
    }
    await end()
    return figuresOf(rates)
  }
}

/** Makes 1,000 executions per cue claimable, and as many bare jobs. Fresh tables exclude the cost of earlier claims. */
const fillQueues = async (pool: pg.Pool) => {
  await pool.query('truncate cue.executions, cue.attempts')
  await pool.query(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, claimable_at,
                                 claim_deadline_at, created_at, updated_at)
     select cue.uuid_v7(now()), c.account_id, c.id, 'worker', 'pending', 'schedule', now(), c.payload, now() - g * interval '1 millisecond',
            now() + interval '7 days', now(), now()
       from cue.cues c cross join generate_series(1, 1000) g`
  )
  await pool.query('drop table if exists public.bench_jobs')
  await pool.query(
    `create table public.bench_jobs (
       id uuid primary key default gen_random_uuid(), account_id uuid not null, status text not null default 'pending', payload text not null,
       worker text, claimed_at timestamptz, claimable_at timestamptz) with (fillfactor = 50)`
  )
  await pool.query('create index on public.bench_jobs (account_id, claimable_at) where claimable_at is not null')
  await pool.query(
    'insert into public.bench_jobs (account_id, payload, claimable_at) select account_id, payload, claimable_at from cue.executions'
  )
  await pool.query('vacuum analyze')
}
