/** What the faults happen to: a durable PostgreSQL in a temporary folder and replicas of the service on it; besides, a receiver. */
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
  /** Where it answers requests. */
  address: string
  /** Recognises the execution tokens that it makes, since its session secret is its own. */
  tokenKey: KeyObject
  signal: (name: NodeJS.Signals) => void
  /** Its exit code; null when a signal ended it. */
  exited: Promise<number | null>
  /** Stops it in order. Its exit code; null when it did not end in time. */
  stop: () => Promise<number | null>
  /** What it logged as its own fault. An outage is none. */
  errors: () => string[]
}

const patienceMs = 60_000
const unlimited = { requests_per_minute: 1_000_000, cues: 1_000_000, executions_per_month: 1_000_000_000 }

const run = promisify(execFile)
const here = fileURLToPath(new URL('../..', import.meta.url))

/** `open` starts the database and the receiver, `close` ends them with all that runs on them, at any time. */
export const openStage = () => {
  const dir = mkdtempSync(join(tmpdir(), 'pgcue-chaos-'))
  chmodSync(dir, 0o755) // the server's system user must get in
  const running = new Set<(name: NodeJS.Signals) => void>()
  const endReplicas = () => {
    for (const signal of running) signal('SIGKILL')
  }
  process.on('exit', endReplicas)
  // Not awaited yet: a Ctrl-C while it starts must find it.
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
      /** Where the logs are. */
      dir,
      version: (await admin.query('show server_version')).rows[0].server_version as string,
      receiver: {
        url: hook,
        reset: () => receiver.ask<void>('reset'),
        /** Waits until so many slots have been delivered, or for a time, and tells how many have. */
        wait: (count: number, limitMs = patienceMs) => receiver.ask<number>('wait', { count, limitMs }, limitMs + 10_000),
        sends: () => receiver.ask<Send[]>('sends')
      },

      /**
       * Another release beside this one, in a folder of its own: that of a commit, or else of the commit that last changed sql/ before the
       * present files.
       * @throws {Error} where git, or the history, is missing
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

      /** Brings a database to what the release in a folder, or this one, needs. */
      migrate: (databaseUrl: string, root = here) =>
        run(process.execPath, migrationOf(root), { cwd: root, env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl } }),

      /** A new database with our tables and functions, or an empty one. */
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

      /** Crashes PostgreSQL, as an immediate restart does. Resolves when it takes connections again. */
      crash: async () => {
        const { pid } = server
        process.kill(pid, 'SIGQUIT')
        for (const end = Date.now() + patienceMs; server.pid === pid; await delay(5)) {
          if (Date.now() > end) throw new Error('PostgreSQL does not come back')
        }
      },

      /** A replica as `npm start` runs it, without limits; of the release in a folder, or of this one. */
      startReplica: async (name: string, databaseUrl: string, root = here): Promise<Replica> => {
        const sessionSecret = randomBytes(32).toString('base64')
        const port = await freePort()
        const log = join(dir, `${name}.log`)
        const output = openSync(log, 'w')
        const { PATH, HOME, TMPDIR } = process.env
        // Loaded first is what ends it when chaos itself is gone.
        const child = spawn(process.execPath, ['--import', new URL('../bench/probe.ts', import.meta.url).href, 'src/server.ts'], {
          cwd: root,
          env: {
            PATH,
            HOME,
            TMPDIR,
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
          detached: true // Ctrl-C in the terminal is for chaos, which ends these itself
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

  /** Ends everything, in whatever state it is. With `keep`, the logs stay. */
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

/** Lines of the log are JSON, those of a crash are not. */
const isError = (line: string) => {
  try {
    return JSON.parse(line).level >= 50
  } catch {
    return /Error\b/.test(line)
  }
}

/** What `npm run migrate` runs in a release. */
const migrationOf = (root: string): string[] =>
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    .scripts.migrate.split(' ')
    .slice(1)
