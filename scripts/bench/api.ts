/** Requests per second beside a bare Fastify route with one statement: the cost of authentication, limits, validation and rules. */
import { type Figures, times } from '../stage/figures.ts'
import { cpuSeconds, start } from '../stage/processes.ts'
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
  const bare = start('scripts/bench/bare.ts', { isTested: true, env: { DATABASE_URL: url } })
  const generator = start('scripts/bench/load.ts')
  const targets = { bare: { pid: bare.pid, address: `http://127.0.0.1:${await bare.ask<number>('listen')}` }, ours: replica }
  return async (target: 'bare' | 'ours', requests: Load['requests'], seconds: number) => {
    const { pid, address: url } = targets[target]
    const before = [cpuSeconds(pid), stage.databaseCpu()] as const
    const result = await generator.ask<LoadResult>('run', { url, requests, connections: accountCount, seconds })
    const perRequest = (seconds: number) => (seconds / result.count) * 1e6
    return { ...result, cpu_us: perRequest(cpuSeconds(pid) - before[0]), database_us: perRequest(stage.databaseCpu() - before[1]) }
  }
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
    const run = await startLoads(stage, service)
    const measure = async (name: keyof typeof requests, seconds: number) => {
      const result = await run(name === 'bare_select' ? 'bare' : 'ours', requests[name], seconds)
      await service.pool.query("delete from cue.cues where name = 'posted'")
      await service.pool.query('vacuum analyze cue.cues, cue.cue_runs') // otherwise autovacuum would run during the next measurement
      return result
    }
    const series = async (seconds: number) => {
      const [bare, get, post] = [
        await measure('bare_select', seconds),
        await measure('get_cue', seconds),
        await measure('post_cue', seconds)
      ]
      const rate: Figures = { bare_select_per_s: bare.per_s, get_cue_per_s: get.per_s, post_cue_per_s: post.per_s }
      for (const [name, { per_s }] of Object.entries({ get, post })) rate[`${name}_to_bare_ratio`] = per_s / bare.per_s
      for (const key of ['cpu_us', 'database_us', 'p99_ms'] as const)
        for (const [name, result] of Object.entries({ bare, get, post })) rate[`${name}_${key}`] = result[key]
      return rate
    }
    await series(warmUpSeconds)
    return times(runs, () => series(n))
  }
}
