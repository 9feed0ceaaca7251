/** Failing starts, and stops, as seen by whoever runs `npm start`. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConfigError } from '../../src/config.ts'
import { refuseToListen } from '../../src/startup/port.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { startReplica } from '../support/replica.ts'

/** Passes if the start ends at once with this one line. */
const refused = async (t: Test, env: Record<string, string>, line: RegExp) => {
  const { code, err } = await startReplica(t, env).ended
  t.equal(code, 1)
  exactly(t, err, line)
  t.equal(err.split('\n').length, 2, err)
}

t.test('reports a port in use in one line, before any engine is registered', async t => {
  const { url, pool } = await createDatabase(t)
  const other = createServer().listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  await refused(t, { DATABASE_URL: url, PORT: String(port) }, /^pgcue: PORT \d+ is already in use; .* set another PORT\n$/)
  t.same((await pool.query('select from cue.engines')).rows, [])
})

t.test('reports a foreign HOST in one line', async t => {
  const { url } = await createDatabase(t)
  for (const HOST of ['192.0.2.1', 'nowhere.invalid'])
    await refused(t, { DATABASE_URL: url, HOST }, /^pgcue: HOST is not an address of this/)
})

t.test('a name of a loopback address is a loopback listener, whatever the replica does', async t => {
  const { url } = await createDatabase(t)
  for (const ROLES of ['api,engine', 'engine']) {
    const { stderr } = startReplica(t, { DATABASE_URL: url, HOST: '127.1', ROLES, CALLBACK_ALLOW_CIDRS: '' })
    const [, port] = await eventually(() => / at http:\/\/localhost:(\d+)/.exec(stderr()), 60_000)
    for (const [host, status] of [
      ['localhost', 200],
      ['evil.example', 421]
    ] as const) {
      const sent = request({ host: '127.0.0.1', port, path: '/metrics', headers: { host } }).end()
      const [answer] = await once(sent, 'response')
      answer.resume()
      t.equal(answer.statusCode, status, `${ROLES} ${host}`)
    }
  }
})

t.test('reports a privileged port, and rethrows errors not caused by HOST or PORT', async t => {
  const refuse = (code: string) => () => refuseToListen(Object.assign(new Error(code), { code }), { port: 80 })
  t.throws(refuse('EACCES'), new ConfigError('PORT 80 is reserved for privileged users; set another PORT, such as 8080'))
  t.throws(refuse('EMFILE'), { name: 'Error', message: 'EMFILE' })
})

t.test('with MIGRATE=off, reports an unmigrated database in one line', async t => {
  const { url, pool } = await createDatabase(t, { migrated: false })
  const line = /^pgcue: MIGRATE is off, .*: run `npm run migrate`\n$/
  await refused(t, { DATABASE_URL: url, MIGRATE: 'off' }, line)
  await pool.query('create schema cue')
  await refused(t, { DATABASE_URL: url, MIGRATE: 'off' }, line)
})

t.test('reports an unreachable database in the same line with and without migrating', async t => {
  for (const MIGRATE of ['on', 'off'])
    await refused(
      t,
      { DATABASE_URL: 'postgres://nobody:secretword@127.0.0.1:1/none', MIGRATE },
      /^pgcue: Cannot connect to the server of DATABASE_URL or LISTEN_URL: .*ECONNREFUSED.*\n$/
    )
})

t.test('reports a read-only database in one line', async t => {
  const { url, name, pool } = await createDatabase(t)
  await pool.query(`alter database ${name} set default_transaction_read_only = on`)
  await refused(t, { DATABASE_URL: url }, /^pgcue: Cannot connect to the server of DATABASE_URL or LISTEN_URL: .*read-only transaction\n$/)
})

t.test('reports an unusable DATA_DIR in one line', async t => {
  const file = join(t.testdir({ file: '' }), 'file')
  for (const DATA_DIR of [file, join(file, 'deeper'), ...(existsSync('/proc') ? ['/proc/nope'] : [])]) {
    await refused(t, { DATA_DIR }, /^pgcue: DATA_DIR cannot be used: /)
    await refused(t, { DATA_DIR, ENCRYPTION_KEYS: '' }, /^pgcue: DATA_DIR cannot be used: /)
  }
})

t.test('logs a signal and the stop that follows', async t => {
  const { url } = await createDatabase(t)
  for (const ROLES of ['api,engine', 'api']) {
    const replica = startReplica(t, { DATABASE_URL: url, ROLES })
    await eventually(() => replica.stderr().includes('serves at'), 60_000)
    replica.signal('SIGTERM')
    t.equal((await replica.ended).code, 0)
    const [stopping, stopped] = replica.lines().slice(-2)
    exactly(t, stopping, { msg: 'stopping', signal: 'SIGTERM' })
    exactly(t, stopped, { msg: 'stopped', ms: Number, ...(ROLES !== 'api' && { attempts_given_back: 0 }) })
  }
})

t.test('a replica is known by its name: in the log, to operators, in health and metrics', async t => {
  const { url, pool } = await createDatabase(t)
  const names: string[] = []
  for (const REPLICA_NAME of ['blue-1', '']) {
    const replica = startReplica(t, { DATABASE_URL: url, REPLICA_NAME, OPERATOR_TOKEN: 'a-token-of-an-operator' })
    await eventually(() => replica.stderr().includes('serves at'), 60_000)
    const [, base = ''] = /serves at (\S+)/.exec(replica.stderr())!
    const name = REPLICA_NAME || `${hostname()}:${replica.pid}`
    names.push(name)
    exactly(t, replica.lines()[0], { msg: 'starting', replica: name })
    exactly(t, await (await fetch(`${base}/health`)).json(), { replica: name })
    t.ok((await (await fetch(`${base}/metrics`)).text()).includes(`,replica="${name}"} 1\n`))
    const figures = await fetch(`${base}/v1/operator`, { headers: { authorization: 'Bearer a-token-of-an-operator' } })
    const { cells } = (await figures.json()) as { cells: { figures: { engines: { name: string }[] } }[] }
    t.ok(cells[0]!.figures.engines.some(engine => engine.name === name))
  }
  t.same(
    (await pool.query('select name from cue.engines order by started_at')).rows,
    names.map(name => ({ name }))
  )
})
