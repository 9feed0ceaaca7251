import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { type EmbeddedOptions, freePort, startEmbedded } from '../../src/embedded-postgres/embedded-postgres.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { memoryDir } from '../support/memory-dir.ts'

const query = async (connectionString: string, text: string) => {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

// As root the server runs as another user, who has to come by.
const emptyDir = (t: Test, mode = 0o755) => {
  const dir = mkdtempSync(join(memoryDir(), 'pgcue-embedded-'))
  chmodSync(dir, mode)
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A directory that a first start has been through, which takes a second: most tests are about what comes after. */
const usedDir = async (t: Test) => {
  used ??= makeUsed()
  const dir = emptyDir(t)
  execFileSync('cp', ['-a', join(await used, 'postgres'), dir])
  return dir
}
let used: Promise<string> | undefined
const makeUsed = async () => {
  const dir = emptyDir(t)
  const { stop } = await startEmbedded({ dataDir: dir, durable: false })
  await stop()
  rmSync(join(dir, 'postgres', 'data', 'postmaster.opts')) // the port
  return dir
}

const start = async (t: Test, options: EmbeddedOptions) => {
  const embedded = await startEmbedded({ durable: false, ...options })
  t.teardown(() => embedded.stop())
  return embedded
}

const starting = (dataDir: string) => {
  const module = JSON.stringify(new URL('../../src/embedded-postgres/embedded-postgres.ts', import.meta.url).href)
  return `const { startEmbedded } = await import(${module})
    const { url, pid } = await startEmbedded({ dataDir: ${JSON.stringify(dataDir)} })
    console.log(JSON.stringify({ url, pid }))`
}

/** A process of its own that owns the server of `dataDir`, to be killed. */
const startElsewhere = async (t: Test, dataDir: string) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', starting(dataDir)], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  const { url, pid }: { url: string; pid: number } = JSON.parse(String(line))
  const kill = async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return { url, pid, kill }
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

t.test('data survives a restart on the same port', async t => {
  const dataDir = emptyDir(t)
  const first = await startEmbedded({ dataDir })
  await query(first.url, 'create table kept as select 7 as n')
  await first.stop()
  const second = await start(t, { dataDir, durable: true })
  t.equal(second.url, first.url)
  t.same(await query(second.url, 'select n from kept'), [{ n: 7 }])
})

t.test('is durable, uses UTC and UTF-8, and sorts by code point', async t => {
  const { url } = await start(t, { dataDir: await usedDir(t), durable: true })
  const [settings] = await query(
    url,
    `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
            current_setting('timezone') as timezone, current_setting('server_encoding') as encoding,
            (select string_agg(x, '' order by x) from unnest(array['b', 'a', 'B', 'é', 'Z']) x) as sorted, lower('É') as lower`
  )
  t.same(settings, { fsync: 'on', synchronous_commit: 'on', timezone: 'UTC', encoding: 'UTF8', sorted: 'BZabé', lower: 'é' })
})

t.test('requires the password', async t => {
  const { url } = await start(t, { dataDir: await usedDir(t) })
  await t.rejects(query(url.replace(/:[^:@]+@/, ':guess@'), 'select 1'), { code: '28P01' })
})

t.test('rejects a second start on a directory in use in one line', async t => {
  const dataDir = await usedDir(t)
  const { url } = await start(t, { dataDir })
  await t.rejects(startEmbedded({ dataDir }), { name: 'ConfigError', message: /^DATA_DIR \S+ is in use by another pgcue[^\n]*$/ })
  t.same(await query(url, 'select 1 as n'), [{ n: 1 }], 'the first keeps running')
})

t.test('of two simultaneous starts, one gets the directory', async t => {
  const dataDir = emptyDir(t)
  const results = await Promise.allSettled([startEmbedded({ dataDir, durable: false }), startEmbedded({ dataDir, durable: false })])
  const started = results.filter(result => result.status === 'fulfilled')
  for (const { value } of started) t.teardown(() => value.stop())
  t.equal(started.length, 1)
  exactly(t, results.find(result => result.status === 'rejected')?.reason, { name: 'ConfigError', message: /is in use/ })
  t.same(await query(started[0]!.value.url, 'select 1 as n'), [{ n: 1 }])
})

t.test('runs several instances side by side', async t => {
  const [a, b] = await Promise.all([start(t, { dataDir: await usedDir(t) }), start(t, { dataDir: await usedDir(t) })])
  t.not(a.port, b.port)
  await query(a.url, 'create table only_here ()')
  await t.rejects(query(b.url, 'select from only_here'), { code: '42P01' })
})

t.test('a start after SIGKILL takes over the running server', async t => {
  const dataDir = await usedDir(t)
  const elsewhere = await startElsewhere(t, dataDir)
  await query(elsewhere.url, 'create table kept as select 7 as n')
  await t.rejects(startEmbedded({ dataDir }), { message: /is in use/ }, 'its owner lives')
  await elsewhere.kill()
  const { url, pid } = await start(t, { dataDir })
  t.not(pid, elsewhere.pid)
  t.same(await query(url, 'select n from kept'), [{ n: 7 }])
})

t.test('a start after SIGKILL of process and server recovers', async t => {
  const dataDir = await usedDir(t)
  const elsewhere = await startElsewhere(t, dataDir)
  await query(elsewhere.url, 'create table kept as select 7 as n')
  await elsewhere.kill()
  process.kill(elsewhere.pid, 'SIGKILL')
  const { url } = await start(t, { dataDir })
  t.same(await query(url, 'select n from kept'), [{ n: 7 }])
})

t.test('a start ignores a pid file whose process id belongs to another program', async t => {
  const dataDir = await usedDir(t)
  const first = await startEmbedded({ dataDir, durable: false })
  const pidFile = join(dataDir, 'postgres', 'data', 'postmaster.pid')
  const content = readFileSync(pidFile, 'utf8')
  await first.stop()
  const other = spawn('sleep', ['60'])
  t.teardown(() => other.kill())
  writeFileSync(pidFile, content.replace(/^\d+/, String(other.pid)))
  const { url } = await start(t, { dataDir })
  t.same(await query(url, 'select 1 as n'), [{ n: 1 }])
  t.ok(other.exitCode === null && other.signalCode === null, 'the other program was left alone')
})

t.test('a start after one that was killed while it created the database leaves nothing of that behind', async t => {
  const dataDir = emptyDir(t)
  const TMPDIR = emptyDir(t, 0o777)
  const home = join(dataDir, 'postgres')
  const child = spawn(process.execPath, ['--input-type=module', '-e', starting(dataDir)], { env: { PATH: process.env.PATH, TMPDIR } })
  t.teardown(() => child.kill('SIGKILL'))
  const drafts = () => readdirSync(home).filter(name => name.startsWith('draft-'))
  await eventually(() => drafts().length > 0 && readdirSync(join(home, drafts()[0]!)).length > 0)
  child.kill('SIGKILL')
  await once(child, 'exit')
  mkdirSync(join(home, `draft-${process.pid}`, 'base'), { recursive: true }) // of a process with the same id, in a former container
  t.same(readdirSync(TMPDIR), [])
  const { url } = await start(t, { dataDir })
  t.same(await query(url, 'select 1 as n'), [{ n: 1 }])
  t.same(readdirSync(home).sort(), ['data', 'password', 'server.log'])
})

t.test('names the major version of a database that it cannot open, and how to move it', async t => {
  const dataDir = await usedDir(t)
  writeFileSync(join(dataDir, 'postgres', 'data', 'PG_VERSION'), '14\n')
  await t.rejects(startEmbedded({ dataDir }), {
    name: 'ConfigError',
    message:
      /^DATA_DIR \S+ holds a database of PostgreSQL 14: start the pgcue release whose embedded PostgreSQL is 14, and move it with [^\n]*$/
  })
})

t.test('uses another port if its own is taken', async t => {
  const dataDir = await usedDir(t)
  const first = await startEmbedded({ dataDir, durable: false })
  await first.stop()
  const other = createServer().listen(first.port, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const second = await start(t, { dataDir })
  t.not(second.port, first.port)
  t.same(await query(second.url, 'select 1 as n'), [{ n: 1 }])
})

t.test('restarts a crashed server on its port and keeps owning it', async t => {
  const dataDir = await usedDir(t)
  const embedded = await start(t, { dataDir })
  const { pid } = embedded
  process.kill(pid, 'SIGKILL')
  await eventually(() => embedded.pid !== pid)
  t.same(await eventually(() => query(embedded.url, 'select 1 as n')), [{ n: 1 }])
  const owned = "select from pg_stat_activity where application_name = 'pgcue owner'"
  await eventually(async () => (await query(embedded.url, owned)).length)
  await t.rejects(startEmbedded({ dataDir }), { message: /is in use/ })
})

t.test('the server stops when its process exits without stopping it', async t => {
  const dataDir = await usedDir(t)
  const module = JSON.stringify(new URL('../../src/embedded-postgres/embedded-postgres.ts', import.meta.url).href)
  const script = `const { startEmbedded } = await import(${module})
    console.log((await startEmbedded({ dataDir: ${JSON.stringify(dataDir)}, durable: false })).pid); process.exit(3)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(child.stdout, 'data')
  await eventually(() => !isAlive(Number(line)))
})

t.test('reports a server that cannot start in one line', async t => {
  const dataDir = await usedDir(t)
  await t.rejects(startEmbedded({ dataDir, durable: false, settings: { shared_buffers: 'plenty' } }), {
    name: 'ConfigError',
    message: /^PostgreSQL in DATA_DIR \S+ failed to start: [^\n]*shared_buffers[^\n]*$/
  })
})

t.test(
  'root keeps the data elsewhere if its system user cannot access DATA_DIR',
  { skip: process.getuid?.() !== 0 && 'needs root' },
  async t => {
    const dataDir = join(emptyDir(t, 0o700), 'data')
    mkdirSync(dataDir)
    const first = await startEmbedded({ dataDir, durable: false })
    const place = realpathSync(join(dataDir, 'postgres'))
    t.teardown(() => rmSync(place, { recursive: true }))
    await query(first.url, 'create table kept as select 7 as n')
    await first.stop()
    t.ok(lstatSync(join(dataDir, 'postgres')).isSymbolicLink())
    t.notOk(place.startsWith(dataDir))
    const second = await start(t, { dataDir })
    t.same(await query(second.url, 'select n from kept'), [{ n: 7 }])
  }
)

t.test('finds a free port', async t => {
  const server = createServer().listen(await freePort(), '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
})
