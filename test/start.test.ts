/** Starts that cannot succeed, and stops, as whoever ran `npm start` sees them. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConfigError } from '../src/config.ts'
import { refuseToListen } from '../src/startup/port.ts'
import { createDatabase } from './database.ts'
import { eventually } from './eventually.ts'
import { exactly } from './exactly.ts'
import { startReplica } from './replica.ts'

/** Fails unless the start ends at once, with this one line. */
const refused = async (t: Test, env: Record<string, string>, line: RegExp) => {
  const { code, err } = await startReplica(t, env).ended
  t.equal(code, 1)
  exactly(t, err, line)
  t.equal(err.split('\n').length, 2, err)
}

t.test('a port that is taken is told in one line, and no engine was there', async t => {
  const { url, pool } = await createDatabase(t)
  const other = createServer().listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  await refused(t, { DATABASE_URL: url, PORT: String(port) }, /^pgcue: PORT \d+ is already in use; .* set another PORT\n$/)
  t.same((await pool.query('select from cue.engines')).rows, [])
})

t.test('a host of somewhere else is told in one line', async t => {
  const { url } = await createDatabase(t)
  for (const HOST of ['192.0.2.1', 'nowhere.invalid'])
    await refused(t, { DATABASE_URL: url, HOST }, /^pgcue: HOST is not an address of this/)
})

t.test('a port of the system is told, and what is no fault of HOST and PORT stays what it is', async t => {
  const refuse = (code: string) => () => refuseToListen(Object.assign(new Error(code), { code }), { port: 80 })
  t.throws(refuse('EACCES'), new ConfigError('PORT 80 is reserved for privileged users; set another PORT, such as 8080'))
  t.throws(refuse('EMFILE'), { name: 'Error', message: 'EMFILE' })
})

t.test('with MIGRATE=off a database that was not migrated is told in one line', async t => {
  const { url, pool } = await createDatabase(t, { migrated: false })
  const line = /^pgcue: MIGRATE is off, .*: run `npm run migrate`\n$/
  await refused(t, { DATABASE_URL: url, MIGRATE: 'off' }, line)
  await pool.query('create schema cue')
  await refused(t, { DATABASE_URL: url, MIGRATE: 'off' }, line)
})

t.test('a database that is away is told in the same line whether or not the start would migrate it', async t => {
  for (const MIGRATE of ['on', 'off'])
    await refused(
      t,
      { DATABASE_URL: 'postgres://nobody:secretword@127.0.0.1:1/none', MIGRATE },
      /^pgcue: Cannot connect to the server of DATABASE_URL or LISTEN_URL: .*ECONNREFUSED.*\n$/
    )
})

t.test('a read-only database is told in one line', async t => {
  const { url, name, pool } = await createDatabase(t)
  await pool.query(`alter database ${name} set default_transaction_read_only = on`)
  await refused(t, { DATABASE_URL: url }, /^pgcue: Cannot connect to the server of DATABASE_URL or LISTEN_URL: .*read-only transaction\n$/)
})

t.test('a DATA_DIR in which nothing can be made is told in one line', async t => {
  const file = join(t.testdir({ file: '' }), 'file')
  for (const DATA_DIR of [file, join(file, 'deeper'), ...(existsSync('/proc') ? ['/proc/nope'] : [])]) {
    await refused(t, { DATA_DIR }, /^pgcue: DATA_DIR cannot be used: /)
    await refused(t, { DATA_DIR, ENCRYPTION_KEYS: '' }, /^pgcue: DATA_DIR cannot be used: /)
  }
})

t.test('a signal and the stop that it brings are in the log', async t => {
  const { url } = await createDatabase(t)
  for (const ROLES of ['api,engine', 'api']) {
    const replica = startReplica(t, { DATABASE_URL: url, ROLES })
    await eventually(() => replica.told().includes('serves at'), 60_000)
    replica.signal('SIGTERM')
    t.equal((await replica.ended).code, 0)
    const [stopping, stopped] = replica.lines().slice(-2)
    exactly(t, stopping, { msg: 'stopping', signal: 'SIGTERM' })
    exactly(t, stopped, { msg: 'stopped', ms: Number, ...(ROLES !== 'api' && { attempts_given_back: 0 }) })
  }
})
