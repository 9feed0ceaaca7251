/**
 * Requests per second of the API compared with a bare Fastify route with one indexed SELECT: the cost of authentication, limits and
 * validation.
 */
import { addAccounts, addCues, payload } from './cues.ts'
import { figuresOf } from './figures.ts'
import type { Load, LoadResult } from './load.ts'
import type { Measure, Options } from './measure.ts'
import { busySeconds, start } from './processes.ts'
import type { Stage } from './stage.ts'

/** V8 compiles for that long: in its first seconds, a replica needs half as much CPU again for each creation. */
const warmUpSeconds = 15
/** Connections of the two series, and accounts. With fewer accounts, creations would wait for each other. */
const fewer = 100
const more = 200

/** `busy`: for which share of the time the CPU that the database shares with the load generator works. */
const measure = async (stage: Stage, { runs, n }: Options) => {
  // Rate limits are on but never reached. The API gets all connections, like the bare server.
  const replica = await stage.startReplica('api', { ROLES: 'api' })
  const bare = start('scripts/bench/bare.ts', 'tested', { DATABASE_URL: replica.databaseUrl })
  const bareUrl = `http://127.0.0.1:${await bare.ask<number>('listen')}`
  const accounts = await addAccounts(replica.pool, more)
  // Created in the order of the accounts: the first account owns the second cue, and so on.
  const cueIds = await addCues(replica.pool, { accounts, count: more, callbackUrl: stage.receiver.url })
  await replica.pool.query('vacuum analyze cue.cues, cue.cue_runs')
  const { rows } = await replica.pool.query('select id, account_id from cue.cues where id = any ($1)', [cueIds])
  const cueOf = new Map(rows.map(row => [row.account_id as string, row.id as string]))
  const body = JSON.stringify({
    name: 'posted',
    schedule: { cron: '0 9 1 1 *' },
    callback: { url: `${stage.receiver.url}/hook` },
    payload: JSON.parse(payload)
  })
  const authorized = accounts.map(({ id, api_key }) => ({
    cue_id: cueOf.get(id),
    headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' }
  }))

  const loads: Record<string, Pick<Load, 'url' | 'requests'>> = {
    bare_select: { url: bareUrl, requests: cueIds.map(id => ({ method: 'GET', path: `/cues/${id}` })) },
    get_cue: {
      url: replica.url,
      requests: authorized.map(({ cue_id, headers }) => ({ method: 'GET', path: `/v1/cues/${cue_id}`, headers }))
    },
    post_cue: { url: replica.url, requests: authorized.map(({ headers }) => ({ method: 'POST', path: '/v1/cues', headers, body })) }
  }
  const generator = start('scripts/bench/load.ts', 'around')
  const run = async (name: string, seconds: number, connections = fewer) => {
    const process = name === 'bare_select' ? bare : replica.process
    const before = {
      ...(await process.usage()),
      database: stage.databaseCpu() ?? Number.NaN,
      busy: busySeconds('around'),
      at: performance.now()
    }
    const { url, requests } = loads[name]!
    const result = await generator.ask<LoadResult>('run', { url, requests: requests.slice(0, connections), connections, seconds })
    if (result.failed > 0) throw new Error(`${result.failed} requests of ${name} failed`)
    const busy = (busySeconds('around') - before.busy) / ((performance.now() - before.at) / 1000)
    const { cpu_s } = await process.usage()
    const database = (stage.databaseCpu() ?? Number.NaN) - before.database
    await replica.pool.query("delete from cue.cues where name = 'posted'")
    await replica.pool.query('vacuum analyze cue.cues, cue.cue_runs') // otherwise autovacuum would run during the next measurement
    const perRequest = (seconds: number) => (seconds / result.count) * 1e6
    return {
      ...result,
      cpu_us: perRequest(cpu_s - before.cpu_s),
      database_us: Number.isNaN(database) ? null : perRequest(database),
      busy: Number.isNaN(busy) ? null : busy
    }
  }

  for (const name of Object.keys(loads)) await run(name, warmUpSeconds)
  const rates: Record<string, number | null>[] = []
  for (let round = 0; round < runs; round++) {
    const [bareRun, get, post] = [await run('bare_select', n), await run('get_cue', n), await run('post_cue', n)]
    const [bareMore, getMore, postMore] = [await run('bare_select', n, more), await run('get_cue', n, more), await run('post_cue', n, more)]
    rates.push({
      bare_select_per_s: bareRun.per_s,
      get_cue_per_s: get.per_s,
      post_cue_per_s: post.per_s,
      get_to_bare_ratio: get.per_s / bareRun.per_s,
      post_to_bare_ratio: post.per_s / bareRun.per_s,
      bare_cpu_us: bareRun.cpu_us,
      get_cpu_us: get.cpu_us,
      post_cpu_us: post.cpu_us,
      bare_database_us: bareRun.database_us,
      get_database_us: get.database_us,
      post_database_us: post.database_us,
      get_p99_ms: get.p99_ms,
      post_p99_ms: post.p99_ms,
      bare_busy: bareRun.busy,
      get_busy: get.busy,
      post_busy: post.busy,
      [`bare_select_${more}_per_s`]: bareMore.per_s,
      [`get_cue_${more}_per_s`]: getMore.per_s,
      [`post_cue_${more}_per_s`]: postMore.per_s,
      [`post_${more}_busy`]: postMore.busy,
      [`get_to_bare_${more}_ratio`]: getMore.per_s / bareMore.per_s,
      [`post_to_bare_${more}_ratio`]: postMore.per_s / bareMore.per_s
    })
  }
  for (const process of [generator, bare, replica]) await process.stop()
  return figuresOf(rates)
}

export default {
  title: n => `the API for ${n} s a run, over ${fewer} and ${more} connections, with as many accounts`,
  runs: 3,
  n: 5,
  unit: 'seconds',
  measure
} satisfies Measure
