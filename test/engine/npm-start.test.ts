/** `npm start` and signals. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What tap sets for its children would be passed on. */
const environment = (url: string) => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  DATABASE_URL: url,
  HOST: '127.0.0.1',
  PORT: '0',
  ENCRYPTION_KEYS: Buffer.alloc(32, 1).toString('base64'),
  SESSION_SECRET: 'a secret that is only for tests, of 32 characters',
  LOG_LEVEL: 'warn'
})

const commandOf = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

const skip = process.platform === 'win32' && 'there are no signals'
for (const [signal, to] of [
  ['SIGTERM', 'npm'],
  ['SIGKILL', 'npm'],
  ['SIGINT', 'the terminal']
] as const) {
  t.test(`the service ends when ${to} gets ${signal} once`, { skip }, async t => {
    const { url, pool } = await createDatabase(t)
    // A shell that stays, whatever the system's does.
    const args = ['--script-shell', fileURLToPath(new URL('../support/staying-shell.sh', import.meta.url)), 'start']
    const npm = spawn('npm', args, { cwd: root, env: environment(url), detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    t.teardown(() => {
      try {
        process.kill(-npm.pid!, 'SIGKILL')
      } catch {} // all of it is gone
    })
    let said = ''
    for (const stream of [npm.stdout, npm.stderr]) stream.on('data', data => (said += data))
    const address = await eventually(() => /serves at (\S+)/.exec(said)?.[1], 60_000).catch(error =>
      Promise.reject(new Error(said || error))
    )
    if (process.platform === 'linux') t.notOk(commandOf(npm.pid!).includes('server.ts'), 'npm stands above the service')

    process.kill(to === 'npm' ? npm.pid! : -npm.pid!, signal)
    await eventually(async () => !(await fetch(`${address}/status`).catch(() => null)), 30_000)
    await eventually(async () => {
      const { rows } = await pool.query(
        "select from pg_stat_activity where datname = current_database() and application_name like 'pgcue %'"
      )
      return rows.length === 0
    })
  })
}
