// A database whose primary is away, silent or waits for a standby, as callers of the API see it. The long form is `npm run chaos -- standby`.

import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import t from 'tap'
import { type Caller, createCallers } from '../../scripts/chaos/callers.ts'
import { playFailover } from '../../scripts/chaos/standby.ts'
import { startTicks } from '../../scripts/chaos/ticks.ts'
import { call as callAt } from '../../scripts/stage/client.ts'
import { endStage } from '../../scripts/stage/processes.ts'
import { openStage } from '../../scripts/stage/stage.ts'
import { layWire } from '../../scripts/stage/wire.ts'
import { createPool } from '../../src/database/pool.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { memoryDir } from '../support/memory-dir.ts'

t.setTimeout(300_000)
t.teardown(() => endStage(!t.passing()))
const stage = await openStage({ parent: memoryDir() })

/** A replica behind a wire, and calls to it. */
const serve = async (name: string) => {
  const { url, pool } = await stage.createDatabase(name)
  const wire = await layWire(url)
  t.teardown(() => wire.close())
  const replica = await stage.startReplica(name, { DATABASE_URL: wire.url })
  t.teardown(() => replica.signal('SIGKILL'))
  const call = (method: string, path: string, api_key?: string, body?: object, more: Record<string, string> = {}) =>
    callAt(replica.address, method, path, api_key, body, more)
  const register = async (email: string): Promise<string> => (await call('POST', '/v1/auth/register', undefined, { email })).body.api_key
  return { pool, wire, call, register }
}

/** With a standby that is not there, no commit ends. */
const requireStandby = async (pool: pg.Pool, name: string) => {
  await pool.query(`alter system set synchronous_standby_names = '${name}'`)
  await pool.query('select pg_reload_conf()')
  await eventually(async () => (await pool.query('show synchronous_standby_names')).rows[0].synchronous_standby_names === name)
}

/** A few callers and cues show what many would. */
const few: { callers: Caller[]; cues: number } = { callers: ['create', 'list', 'register'], cues: 5 }

const cue = (name: string) => ({ name, cron: '@yearly', worker: true })

t.test('of a commit that hangs, callers learn that its effect is unknown; with the same key, it happens once', async t => {
  const { pool, call, register } = await serve('hanging')
  const [one, two] = [await register('one@example.com'), await register('two@example.com')]
  await requireStandby(pool, 'nobody')
  const keyed = () => call('POST', '/v1/cues', one, cue('keyed'), { 'idempotency-key': 'k' })
  const plain = () => call('POST', '/v1/cues', two, cue('plain'))
  for (const { status, body, ms } of await Promise.all([keyed(), plain()])) {
    t.equal(status, 503)
    t.match(body.error.message, / It is unknown whether this took effect\. Repeat it with the same Idempotency-Key, or read first\.$/)
    t.ok(ms < 10_000, `${ms} ms`)
  }
  await requireStandby(pool, '')
  await eventually(async () => (await keyed()).status === 201)
  t.equal((await keyed()).headers.get('idempotency-replayed'), 'true')
  const { rows } = await pool.query('select name from cue.cues order by 1')
  t.same(rows, [{ name: 'keyed' }, { name: 'plain' }])
})

t.test('commits that hang take a limited number of sessions, and reads go on', async t => {
  const { url, pool: admin } = await stage.createDatabase('sessions')
  await admin.query('create table public.numbers (n int)')
  const pool = createPool({ databaseUrl: url, pgPoolMax: 2 }, { name: 'limited', answerMs: 300 })
  t.teardown(() => pool.end())
  await requireStandby(admin, 'nobody')
  const write = () => pool.query('insert into public.numbers values (1)')
  for (let n = 0; n < 8; n++) await t.rejects(write())
  t.same((await pool.query('select 1 as n')).rows, [{ n: 1 }])
  await t.rejects(write(), { code: '25006' }, 'surely without effect')
  const { rows } = await admin.query("select count(*)::int as count from pg_stat_activity where application_name = 'limited'")
  t.ok(rows[0].count <= 4, `${rows[0].count} sessions`)
  await requireStandby(admin, '')
  await eventually(() => write().then(() => true))
  t.same((await admin.query('select count(*)::int as count from public.numbers')).rows, [{ count: 3 }])
})

t.test('while the database is silent, no request takes longer than ten seconds', async t => {
  const { wire, call, register } = await serve('silent')
  const api_key = await register('someone@example.com')
  const { id } = (await call('POST', '/v1/cues', api_key, cue('job'))).body
  const silence = wire.stall(15_000)
  const requests = (n: number) => [
    call('GET', `/v1/cues/${id}`, api_key),
    call('GET', '/v1/executions', api_key),
    call('GET', '/v1/usage', api_key),
    call('PATCH', `/v1/cues/${id}`, api_key, { name: `job ${n}` }),
    call('POST', '/v1/cues', api_key, cue('other')),
    call('POST', '/v1/cues', api_key, cue('other'), { 'idempotency-key': `k${n}` }),
    call('POST', '/v1/executions/claim', api_key, { worker_id: 'w' }),
    call('POST', '/v1/auth/register', undefined, { email: `late-${n}@example.com` })
  ]
  const answers = []
  for (let n = 0; n < 4; n++) {
    answers.push(...requests(n))
    await delay(500)
  }
  for (const { status, ms, body } of await Promise.all(answers)) {
    exactly(t, { status, code: body.error?.code }, { status: 503, code: 'unavailable' })
    t.ok(ms < 10_000, `${Math.round(ms)} ms`)
  }
  await silence
  await eventually(async () => (await call('GET', `/v1/cues/${id}`, api_key)).status === 200)
})

t.test('the password of the database is replaced without a gap, by a second role that acts as the first', async t => {
  const { name, url, pool } = await stage.createDatabase('passwords', { isEmpty: true })
  const urlOf = (username: string) => Object.assign(new URL(url), { username, password: username }).href
  const startAs = (role: string) => stage.startReplica(role, { DATABASE_URL: urlOf(role) })
  await pool.query("create role cue_one login password 'cue_one'")
  await pool.query(`alter database ${name} owner to cue_one`)
  await migrate({ connectionString: urlOf('cue_one') })
  await stage.receiver.reset()
  const first = await startAs('cue_one')
  const callers = await createCallers(first.address, few.callers)
  const ticks = await startTicks({ address: first.address, api_keys: [callers.api_key], count: few.cues, hook: stage.receiver.url })
  callers.enter(first.address)
  await delay(1500)

  await pool.query("create role cue_two login password 'cue_two' in role cue_one; alter role cue_two set role = 'cue_one'")
  await migrate({ connectionString: urlOf('cue_two') })
  const second = await startAs('cue_two')
  await callers.leave(first.address)
  callers.enter(second.address)
  t.equal(await first.stop(), 0)
  await pool.query('alter role cue_one nologin')
  await delay(1500)
  const { figures, faults } = await callers.stop(url)
  const slots = await ticks.stop(url, stage.receiver.sends)
  t.same([...faults, ...slots.faults], [])
  exactly(t, { ...figures, ...slots.figures }, { lost: 0, doubled: 0, unavailable: 0 })
  t.same([...first.errors(), ...second.errors()], [])
  t.same((await pool.query("select relname from pg_class where relowner = 'cue_two'::regrole")).rows, [])
  await second.stop()
})

for (const name of ['demoted', 'vanished-synchronous'])
  t.test(`${name}: nothing is lost or doubled`, async t => {
    const { figures, faults } = await playFailover(stage, name, { ...few, replicas: 1, demotedMs: 4000, steadyMs: 1000, timed: false })
    t.comment(JSON.stringify(figures))
    t.same(faults, [])
  })
