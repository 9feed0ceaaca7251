/** The environment of every scenario: a durable PostgreSQL in a temporary directory, replicas of the service, and a receiver. */
import { execFile, spawn } from 'node:child_process'
import { type KeyObject, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { deriveKey } from '../../src/deliveries/signature.ts'
import { freePort, startEmbedded } from '../../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { endAll, start } from '../bench/processes.ts'
import { secrets } from '../bench/stage.ts'
import type { Send } from './receiver.ts'

export type Stage = Awaited<ReturnType<ReturnType<typeof openStage>['open']>>

export type Replica = {
  /** URL of its API. */
  address: string
  /** Verifies execution tokens made by this replica, which has its own session secret. */
  tokenKey: KeyObject
  signal: (name: NodeJS.Signals) => void
  /** Its exit code; null if a signal ended it. */
  exited: Promise<number | null>
  /** Stops it gracefully. Resolves with its exit code, or null if it did not end in time. */
  stop: () => Promise<number | null>
  /** Errors it logged, except for database outages. */
  errors: () => string[]
}

const patienceMs = 60_000
const unlimited = { requests_per_minute: 1_000_000, cues: 1_000_000, executions_per_month: 1_000_000_000 }

const run = promisify(execFile)
const here = fileURLToPath(new URL('../..', import.meta.url))

/** `open` starts database and receiver, in a new directory of `parent`; `close` ends everything started, at any time. */
export const openStage = (parent = tmpdir()) => {
  const dir = mkdtempSync(join(parent, 'pgcue-chaos-'))
  chmodSync(dir, 0o755) // accessible to the server's system user
  const running = new Set<(name: NodeJS.Signals) => void>()
  const endReplicas = () => {
    for (const signal of running) signal('SIGKILL')
  }
  process.on('exit', endReplicas)
  // Not awaited yet, so that Ctrl-C during startup can end it.
  const starting = startEmbedded({ dataDir: dir })

  const connect = (connectionString: string) => new pg.Pool({ connectionString, application_name: 'chaos', max: 4 }).on('error', () => {})

  const open = async () => {
    const server = await starting
    const admin = connect(server.url)
    await admin.query('create database pristine')
    const urlOf = (database: string) => Object.assign(new URL(server.url), { pathname: database }).href
    await migrate({ connectionString: urlOf('pristine') })
    const receiver = start('scripts/chaos/receiver.ts', 'around')
    const hook = `http://127.0.0.1:${await receiver.ask<number>('listen')}`
    let databases = 0

    return {
      /** Directory of the logs. */
      dir,
      version: (await admin.query('show server_version')).rows[0].server_version as string,
      receiver: {
        url: hook,
        reset: () => receiver.ask<void>('reset'),
        /** Resolves with the number of delivered slots when there are `count`, or at the time limit. */
        wait: (count: number, limitMs = patienceMs) => receiver.ask<number>('wait', { count, limitMs }, limitMs + 10_000),
        sends: () => receiver.ask<Send[]>('sends')
      },

      /**
       * Checks out another release to a directory of its own: that of a commit, or that before the last commit that changed sql/.
       * @throws {Error} if git or the history is missing
       */
      checkOut: async (commit?: string): Promise<string> => {
        const git = async (...args: string[]) => (await run('git', args, { cwd: here })).stdout.trim()
        const [first, second] = (await git('log', '-2', '--format=%H', '--', 'sql')).split('\n')
        const ref = commit ?? ((await git('status', '--porcelain', 'sql')) ? first : second)
        if (!ref) throw new Error('the history has no former release')
        const root = join(dir, `release-${ref}`)
        mkdirSync(root, { recursive: true })
        await run('git', ['archive', '--output', join(root, 'release.tar'), ref, 'src', 'sql', 'scripts', 'package.json'], { cwd: here })
        await run('tar', ['-xf', 'release.tar'], { cwd: root })
        if (!existsSync(join(root, 'node_modules'))) symlinkSync(join(here, 'node_modules'), join(root, 'node_modules'))
        return root
      },

      /** Migrates a database to the release in a directory, by default to this one. */
      migrate: (databaseUrl: string, root = here) =>
        run(process.execPath, migrationOf(root), { cwd: root, env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl } }),

      /** Creates a database, with our tables and functions unless `isEmpty`. */
      createDatabase: async (scenario: string, isEmpty = false) => {
        const name = `${scenario}_${++databases}`
        await admin.query(`create database ${name} template ${isEmpty ? 'template0' : 'pristine'}`)
        const pool = connect(urlOf(name))
        const drop = async () => {
          await pool.end()
          await admin.query(`drop database ${name} with (force)`)
        }
        return { name, url: urlOf(name), pool, drop }
      },

      /** Crashes PostgreSQL by an immediate restart. Resolves when it accepts connections again. */
      crash: async () => {
        const { pid } = server
        process.kill(pid, 'SIGQUIT')
        for (const end = Date.now() + patienceMs; server.pid === pid; await delay(5)) {
          if (Date.now() > end) throw new Error('PostgreSQL does not come back')
        }
      },

      /** Starts a replica as `npm start` does, without rate limits, of the release in a directory, by default of this one. */
      startReplica: async (name: string, databaseUrl: string, root = here): Promise<Replica> => {
        const sessionSecret = randomBytes(32).toString('base64')
        const port = await freePort()
        const log = join(dir, `${name}.log`)
        const output = openSync(log, 'w')
        const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env
        // Imported first, so that it ends the process if chaos has ended.
        const child = spawn(process.execPath, ['--import', new URL('../bench/probe.ts', import.meta.url).href, 'src/server.ts'], {
          cwd: root,
          env: {
            PATH,
            HOME,
            TMPDIR,
            NODE_COMPILE_CACHE,
            DATABASE_URL: databaseUrl,
            MIGRATE: root === here ? 'off' : 'on',
            HOST: '127.0.0.1',
            PORT: String(port),
            CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
            CALLBACK_ALLOW_HTTP: 'on',
            PLANS: JSON.stringify({ free: unlimited }),
            LOG_LEVEL: 'warn',
            ...secrets,
            SESSION_SECRET: sessionSecret,
            SECRETS_CHANGED: 'on'
          },
          stdio: ['ignore', output, output, 'ipc'],
          detached: true // Ctrl-C in the terminal is for chaos, which ends these processes
        })
        closeSync(output)
        const signal = (name: NodeJS.Signals) => void child.kill(name)
        running.add(signal)
        const exited = once(child, 'exit').then(([code]) => {
          running.delete(signal)
          return code as number | null
        })
        await isUp(`http://127.0.0.1:${port}/status`, exited, log)
        return {
          address: `http://127.0.0.1:${port}`,
          tokenKey: deriveKey(sessionSecret, 'execution-token'),
          signal,
          exited,
          stop: async () => {
            signal('SIGTERM')
            const timer = setTimeout(() => signal('SIGKILL'), patienceMs)
            return exited.finally(() => clearTimeout(timer))
          },
          errors: () => linesOf(log).filter(isError)
        }
      }
    }
  }

  /** Ends everything, whatever its state. With `keep`, the logs are kept. */
  const close = async (keep = false) => {
    endReplicas()
    process.off('exit', endReplicas)
    endAll()
    const server = await starting.catch(() => undefined)
    await server?.stop()
    rmSync(keep ? join(dir, 'postgres', 'data') : dir, { recursive: true, force: true })
  }
  return { open, close }
}

const isUp = async (url: string, exited: Promise<number | null>, log: string) => {
  let over = false
  void exited.then(() => {
    over = true
  })
  for (const end = Date.now() + patienceMs; ; await delay(50)) {
    const up = await fetch(url).catch(() => undefined)
    if (up?.ok) return
    if (over || Date.now() > end) throw new Error(`a replica does not start:\n${linesOf(log).slice(-20).join('\n')}`)
  }
}

const linesOf = (file: string) => readFileSync(file, 'utf8').split('\n')

/** Log lines are JSON; lines of a crash are not. */
const isError = (line: string) => {
  try {
    const { level, code, msg } = JSON.parse(line)
    return level >= 50 && code !== 'unavailable' && msg !== 'rate limits skipped'
  } catch {
    return /Error\b/.test(line)
  }
}

/** Command-line arguments of a release's migration. */
const migrationOf = (root: string): string[] =>
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    .scripts.migrate.split(' ')
    .slice(1)
