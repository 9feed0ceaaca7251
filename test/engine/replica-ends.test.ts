/** The end of a replica with two threads. */
import type { Pool } from 'pg'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { patienceMs, startFaultyReplica } from '../support/faulty-replica.ts'
import { startReplica } from '../support/replica.ts'

const livingEngines = async (pool: Pool) => (await pool.query('select id from cue.engines where stopped_at is null')).rows

t.test('the replica ends with its engine and logs why', async t => {
  const { call, signal, ended, lines } = await startFaultyReplica(t)
  signal('SIGUSR2')
  t.equal((await ended).code, 1)
  exactly(t, lines().at(-1), { level: 60, msg: 'unhandled error: replica exits', err: { message: 'a fault of the engine' } })
  await t.rejects(call('/status'), { cause: { code: 'ECONNREFUSED' } })
})

t.test('stops gracefully although a request blocks the API', async t => {
  const { block, signal, lines, ended, pool, stderr } = await startFaultyReplica(t)
  await block()
  signal('SIGTERM')
  await eventually(async () => (await livingEngines(pool)).length === 0, patienceMs)
  t.equal((await ended).code, 0)
  t.same(
    lines()
      .slice(-3)
      .map(({ msg }) => msg),
    ['stopping', 'API did not stop in time', 'stopped']
  )
  exactly(t, lines().at(-1), { attempts_given_back: 0, ms: Number })
  const loaded = [...stderr().matchAll(/^(\w+) loads (\S+) for \S+\/node_modules\/([^/]+)/gm)].map(([, ...names]) => names.join(' '))
  t.same(
    loaded.sort(),
    ['api @opentelemetry/api prom-client', 'engine @opentelemetry/api prom-client'],
    'OpenTelemetry is not loaded by us'
  )
  t.notMatch(stderr(), /^engine loads (?!@opentelemetry)/m, "the engine does not load the API's packages")
})

t.test('stops gracefully while the engine is starting', async t => {
  const { url, pool } = await createDatabase(t)
  const { signal, ended } = startReplica(t, { DATABASE_URL: url })
  await eventually(async () => (await livingEngines(pool)).length, patienceMs)
  signal('SIGINT')
  const { code, err } = await ended
  t.equal(code, 0)
  t.notMatch(err, /pgcue: /)
  t.same(await livingEngines(pool), [], 'no engine leaves cues to this one')
})
