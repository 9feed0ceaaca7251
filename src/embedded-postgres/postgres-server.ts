import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ConfigError } from '../config.ts'
import { draftIn, isAlive } from '../directories.ts'
import type { Home } from './postgres-home.ts'

export type Server = { process: ChildProcess; pid: number; exited: Promise<unknown> }

/** Name of the superuser and of the database. */
export const owner = 'pgcue'

// Excludes the caller's environment: PGPORT or a locale must not change the server.
const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
// An eighth of the machine's memory, used only as data fills it. With PostgreSQL's default of 128 MB, a few herds evict each other.
const sharedBuffersMb = Math.min(512, Math.max(128, Math.floor(totalmem() / 2 ** 23)))
const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: `${sharedBuffersMb}MB`,
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  wal_level: 'logical', // so that `pgcue-admin cells move` can move it to a server of its own
  jit: 'off' // compiling takes longer than any of our statements
}
const careless = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
const logLimit = 10e6
/** What `launch` says of a server that ended without a message. */
export const endedImmediately = 'it ended immediately'

const dataOf = (home: Home) => join(home.dir, 'data')

/**
 * Creates the database cluster unless it exists; returns whether it did. Text sorts by code point, so that the order is the same on every
 * machine.
 */
export const initialize = (home: Home, passwordFile: string, durable: boolean): boolean => {
  const draft = draftIn(home.dir)
  if (existsSync(dataOf(home))) return false
  if (home.account) chownSync(passwordFile, home.account.uid, home.account.gid)
  const locale = major(home) >= 17 ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : ['--locale=C.UTF-8']
  const args = [
    '-D',
    draft,
    '-U',
    owner,
    '-A',
    'scram-sha-256',
    `--pwfile=${passwordFile}`,
    '-E',
    'UTF8',
    ...locale,
    ...(durable ? [] : ['--no-sync'])
  ]
  const made = spawnSync(join(home.bin, 'initdb'), args, { ...home.account, cwd: '/', env, encoding: 'utf8' })
  if (made.status !== 0)
    throw new ConfigError(`PostgreSQL cannot create a database in DATA_DIR: ${lastLine(made.stderr) ?? made.error?.message}`)
  try {
    renameSync(draft, dataOf(home))
  } catch {
    rmSync(draft, { recursive: true }) // another start was faster
  }
  return true
}

/**
 * Starts the server; resolves when it accepts connections, after any recovery.
 * @throws {Error} with the server's output if it exits before
 */
export const launch = async (home: Home, port: number, durable: boolean, extra: Record<string, string>): Promise<Server> => {
  const log = join(home.dir, 'server.log')
  const start = existsSync(log) && statSync(log).size < logLimit ? statSync(log).size : 0
  const output = openSync(log, start ? 'a' : 'w', 0o600)
  const options = Object.entries({ ...settings, ...(durable ? {} : careless), ...extra }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`
  ])
  const child = spawn(join(home.bin, 'postgres'), ['-D', dataOf(home), '-p', String(port), ...options], {
    ...home.account,
    cwd: '/',
    env,
    detached: true, // own process group: Ctrl-C in the terminal reaches only us, and the server stops after its last client
    stdio: ['ignore', output, output]
  })
  closeSync(output)
  let over = false
  let failure: Error | undefined
  const exited = once(child, 'exit')
    .catch(error => {
      failure = error
    })
    .finally(() => {
      over = true
    })
  for (;;) {
    const file = postmasterFile(home)
    if (file?.ready && file.pid === child.pid) return { process: child, pid: file.pid, exited }
    if (over) break
    await Promise.race([exited, delay(20)])
  }
  if (failure) throw failure
  const lines = readFileSync(log).subarray(start).toString().split('\n')
  const said = lines.flatMap(line => /(?:FATAL|PANIC): +(.*)|(could not .*)/.exec(line)?.slice(1) ?? []).filter(Boolean)
  throw new Error(said.join('; ') || endedImmediately)
}

/** Finds the server running on this data directory, whoever started it. */
export const findServer = (home: Home) => {
  const file = postmasterFile(home)
  return file && isServer(home, file.pid) ? file : undefined
}

/**
 * Removes a pid file that would keep PostgreSQL from starting: one whose process id now belongs to another program, or an empty one left by
 * a crash. A recent file belongs to a concurrent start and is kept.
 */
export const dropStalePidFile = (home: Home) => {
  const path = join(dataOf(home), 'postmaster.pid')
  const file = postmasterFile(home)
  const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs
  if (!file || !written) return
  const stale = file.pid ? isAlive(file.pid) && !isServer(home, file.pid) : Date.now() - written > 10_000
  if (stale) rmSync(path, { force: true })
}

/** Returns the port the server last used. */
export const lastPort = (home: Home) => {
  const file = join(dataOf(home), 'postmaster.opts')
  const port = existsSync(file) && /"-p" "(\d+)"/.exec(readFileSync(file, 'utf8'))?.[1]
  return port ? Number(port) : undefined
}

/**
 * Shuts the server down, ending its sessions and writing everything to disk. After a minute, an immediate shutdown follows, and the next
 * start recovers.
 */
export const shutDown = async (home: Home, pid: number) => {
  const patience = Date.now() + 60_000
  signal(pid, 'SIGINT')
  while (isServer(home, pid)) {
    if (Date.now() > patience) signal(pid, 'SIGQUIT')
    await delay(20)
  }
}

export const signal = (pid: number, name: NodeJS.Signals) => {
  try {
    process.kill(pid, name)
  } catch {} // it has ended
}

// The command line distinguishes a server from a program that reuses its process id, and from a zombie, which has none.
const isServer = (home: Home, pid: number) => isAlive(pid) && commandOf(pid).includes(dataOf(home))

// Its lines are: pid, data directory, start time, port, socket directory, address, shared memory, status.
const postmasterFile = (home: Home) => {
  try {
    const lines = readFileSync(join(dataOf(home), 'postmaster.pid'), 'utf8').split('\n')
    return { pid: Number(lines[0]), port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' }
  } catch {
    return undefined
  }
}

const commandOf = (pid: number) => {
  try {
    return process.platform === 'linux'
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      : execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

const major = (home: Home) => {
  const { stdout } = spawnSync(join(home.bin, 'postgres'), ['--version'], { ...home.account, cwd: '/', encoding: 'utf8' })
  return Number.parseInt(stdout.replace(/^\D+/, ''), 10)
}

/** The major version of PostgreSQL that has made the database. */
export const majorOf = (home: Home): string => readFileSync(join(dataOf(home), 'PG_VERSION'), 'utf8').trim()

const lastLine = (text: string | null) => text?.trim().split('\n').at(-1)
