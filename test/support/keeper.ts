/**
 * Runs the tests' PostgreSQL in the background, and stops and removes it after a while without connections, so that one server serves
 * a whole run, single files run by hand, and concurrent runs, and none remains.
 * Usage: node test/keeper.ts <directory> [<bin directory>]
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { startEmbedded } from '../../src/embedded-postgres/embedded-postgres.ts'

const idleMs = 120_000
const [dir, binDir] = process.argv.slice(2) as [string, string | undefined]

const start = () =>
  startEmbedded({
    dataDir: dir,
    binDir,
    durable: false, // nothing here is worth a sync, and a damaged directory is made anew
    settings: { max_connections: '300', autovacuum: 'off', wal_level: 'minimal', max_wal_senders: '0', checkpoint_timeout: '1h' }
  })

const embedded = await start().catch(error => {
  if (/is in use/.test(error.message)) process.exit(0) // another keeper was first
  rmSync(join(dir, 'postgres'), { recursive: true, force: true })
  return start()
})
const url = embedded.url.replace(/pgcue$/, 'postgres')
const state = join(dir, 'server.json')
const publish = () => {
  writeFileSync(`${state}.new`, JSON.stringify({ url, pid: process.pid }), { mode: 0o600 })
  renameSync(`${state}.new`, state)
}
publish()

const client = new pg.Client({ connectionString: url, application_name: 'pgcue keeper' })
await client.connect()
const isUsed = async () => {
  const { rows } = await client.query(
    `select exists (select from pg_stat_activity
                     where backend_type = 'client backend' and application_name not in ('pgcue keeper', 'pgcue owner')) as is_used`
  )
  return rows[0].is_used
}
for (let quietSince = Date.now(); ; await delay(5000)) {
  if (await isUsed()) quietSince = Date.now()
  if (Date.now() - quietSince < idleMs) continue
  rmSync(state)
  await delay(100) // for a client that has just read where the server is
  if (!(await isUsed())) break
  publish()
  quietSince = Date.now()
}
await client.end()
// Renamed first: the next keeper may start before this server has stopped.
const left = join(dir, `left-${process.pid}`)
renameSync(join(dir, 'postgres'), left)
await embedded.stop()
rmSync(left, { recursive: true, force: true })
