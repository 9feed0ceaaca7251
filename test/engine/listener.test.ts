import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { assertDirect, createListener, type ListenerOptions } from '../../src/database/listener.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startPooler } from '../support/pooler.ts'
import { connectAdmin } from '../support/template.ts'

const { config, pool, name } = await createDatabase(t, { migrated: false })

const listen = async (t: Test, options: Partial<ListenerOptions> = {}) => {
  const heard: string[] = []
  const events: string[] = []
  const listener = await createListener(config, {
    channels: ['cue_test'],
    onNotification: (channel, payload) => heard.push(`${channel} ${payload}`),
    onConnected: () => events.push('connected'),
    onLost: () => events.push('lost'),
    ...options
  })
  t.teardown(() => listener.close())
  return { listener, heard, events }
}
const notify = (payload: string, channel = 'cue_test') => pool.query('select pg_notify($1, $2)', [channel, payload])
const terminate = () =>
  pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pgcue listener' and datname = current_database()"
  )

t.test('receives notifications with channel and payload', async t => {
  const { heard } = await listen(t, { channels: ['cue_test', 'With "Quotes"'] })
  await notify('one')
  await notify('two', 'With "Quotes"')
  await notify('not for us', 'other')
  await notify('')
  await eventually(() => heard.length === 3)
  t.same(heard, ['cue_test one', 'With "Quotes" two', 'cue_test '])
})

t.test('reports and replaces a lost connection', async t => {
  const { listener, heard, events } = await listen(t)
  const first = listener.connectedAt
  t.type(first, 'number')
  await terminate()
  await eventually(() => events.includes('lost'))
  t.equal(listener.connectedAt, null)
  await eventually(() => events.length === 3)
  t.same(events, ['connected', 'lost', 'connected'])
  t.ok(listener.connectedAt! > first!)
  await notify('after')
  await eventually(() => heard.length)
  t.same(heard, ['cue_test after'])
})

t.test('keeps reconnecting while the server refuses', async t => {
  const { events } = await listen(t)
  const admin = await connectAdmin()
  t.teardown(() => admin.end())
  await admin.client.query(`alter database ${name} with allow_connections false`)
  await terminate()
  await eventually(() => events.includes('lost'))
  await delay(1200) // two attempts
  t.same(events, ['connected', 'lost'])
  await admin.client.query(`alter database ${name} with allow_connections true`)
  await eventually(() => events.length === 3)
  t.equal(events[2], 'connected')
})

t.test('closing ends the connection, even a lost one', async t => {
  const open = async () =>
    (await pool.query("select from pg_stat_activity where application_name = 'pgcue listener' and datname = current_database()")).rowCount
  const { listener } = await listen(t)
  await listener.close()
  await eventually(async () => (await open()) === 0)
  const { listener: lost, events } = await listen(t)
  await terminate()
  await eventually(() => events.includes('lost'))
  await lost.close()
  await delay(700) // longer than a retry
  t.equal(await open(), 0)
})

t.test('rejects a pooler in transaction mode in one line that names LISTEN_URL', async t => {
  const url = await startPooler(t, config.databaseUrl, 'transaction')
  const options = { channels: ['cue_test'], onNotification: () => {} }
  await t.rejects(createListener({ databaseUrl: url, listenUrl: url }, options), {
    name: 'ConfigError',
    message: 'LISTEN_URL must connect directly to PostgreSQL: DATABASE_URL is a pooler in transaction mode'
  })
  await t.rejects(createListener({ databaseUrl: config.databaseUrl, listenUrl: url }, options), {
    message: 'LISTEN_URL must connect directly to PostgreSQL: it is a pooler in transaction mode'
  })
})

t.test('accepts a direct LISTEN_URL beside a pooler, and a pooler in session mode', async t => {
  const url = await startPooler(t, config.databaseUrl, 'transaction')
  await t.resolves(assertDirect({ databaseUrl: url, listenUrl: config.listenUrl }))
  const session = await startPooler(t, config.databaseUrl, 'session')
  await t.resolves(assertDirect({ databaseUrl: session, listenUrl: session }))
})

t.test('fails at once if the server does not exist', async t => {
  const nowhere = 'postgres://nobody@127.0.0.1:1/none'
  await t.rejects(createListener({ databaseUrl: nowhere, listenUrl: nowhere }, { channels: ['x'], onNotification: () => {} }), {
    code: 'ECONNREFUSED'
  })
})
