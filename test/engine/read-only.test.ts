/** A database that temporarily refuses what engines do: read-only, like a standby until it is promoted, or with errors for all cues. */
import t from 'tap'
import { createPool } from '../../src/database/pool.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, error, eventually, receiver } from '../support/setup.ts'

t.test('treats a read-only database as an outage: requests get 503, and due cues fire once it is writable', async t => {
  const { call, post, config, pool } = await build(t)
  const { url, requests } = await receiver(t)
  const admin = createPool({ databaseUrl: config.databaseUrl, pgPoolMax: 1 })
  t.teardown(() => admin.end())
  const name = config.databaseUrl.split('/').at(-1)
  const switchTo = (mode: 'on' | 'off') =>
    admin.query(`begin read write; alter database ${name} set default_transaction_read_only = ${mode}; commit;
      select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
  await startEngine(t, config)

  const at = new Date(Date.now() + 6000) // time enough to switch before it
  const { id } = await post('/v1/cues', { name: 'job', at: at.toISOString(), callback: { url } })
  await switchTo('on')
  await eventually(async () => (await pool.query('show transaction_read_only')).rows[0].transaction_read_only === 'on')

  const refused = await call('POST', '/v1/cues', { name: 'other', cron: '@daily', callback: { url } })
  exactly(t, refused, error('unavailable', 503))
  t.match(refused.body.error.message, /Nothing was changed/)
  await eventually(async () => (await call('GET', '/status')).status === 503)
  exactly(t, (await call('GET', '/health')).body, { status: 'down', reason: 'the database is unreachable or read-only' })
  await eventually(() => Date.now() > at.getTime() + 1000)
  t.equal(requests.length, 0)

  await switchTo('off')
  await eventually(() => requests.length === 1, 20_000)
  await eventually(async () => (await call('GET', '/status')).status === 200)
  const executions = async () => (await pool.query('select status, attempts from cue.executions where cue_id = $1', [id])).rows
  await eventually(async () => (await executions())[0]?.status !== 'delivering')
  t.same(await executions(), [{ status: 'success', attempts: 1 }])
})

t.test('errors of all cues are not the fault of one: nothing is passed over', async t => {
  const { post, config, pool } = await build(t)
  const { url, requests } = await receiver(t)
  const engine = await startEngine(t, config)
  const cue = async (name: string, at: number) =>
    (await post('/v1/cues', { name, at: new Date(at).toISOString(), callback: { url: `${url}${name}` } })).id
  const at = Date.now() + 2000
  const ids = await Promise.all(['a', 'b', 'c', 'damaged'].map(name => cue(name, at)))
  const failing = (others: string) =>
    pool.query(`create or replace function public.fail() returns trigger language plpgsql as $$
      begin if new.cue_id = '${ids[3]}' then raise 'no' using errcode = 'XX001'; end if; ${others} return new; end $$`)
  const codes = ['42501', '58030', 'XX000']
  for (const [n, code] of codes.entries()) {
    await failing(`raise 'no' using errcode = '${code}';`)
    if (n === 0) await pool.query('create trigger fail before insert on cue.executions for each row execute function public.fail()')
    await eventually(() => Date.now() > at + (n + 1) * 1000)
  }
  t.equal(requests.length, 0)
  await failing('')
  await eventually(() => requests.length === 3, 20_000)
  t.same(requests.map(({ path }) => path).sort(), ['/a', '/b', '/c'])
  await engine.stop() // it could be in a deadlock with the next statement
  await pool.query('drop trigger fail on cue.executions')
})
