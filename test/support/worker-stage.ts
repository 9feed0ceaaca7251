/** Setup for tests of workers: a listening service, a worker cue, and workers as processes or in this one. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { parseExactly } from '../../src/cli/io.ts'
import { createLog, runWorker, type WorkerOptions } from '../../src/cli/worker/command.ts'
import { type Flags, readSettings } from '../../src/cli/worker/settings.ts'
import { openState } from '../../src/cli/worker/state.ts'
import { type ClientOptions, createClient } from '../../src/client/index.ts'
import { build, eventually } from './setup.ts'

export const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

type Event = { event: string; [field: string]: unknown }
// biome-ignore lint/suspicious/noExplicitAny: any member of a request
type Members = any

/** A directory removed after the test. */
export const directory = (t: Test) => {
  const dir = mkdtempSync(join(tmpdir(), 'pgcue-worker-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return {
    path: (name: string) => join(dir, name),
    write: (name: string, text: string) => {
      writeFileSync(join(dir, name), text)
      return join(dir, name)
    },
    read: (name: string) => readFileSync(join(dir, name), 'utf8'),
    exists: (name: string) => existsSync(join(dir, name))
  }
}

/** The lines of a JSON log as they arrive. */
const follow = () => {
  const events: Event[] = []
  let rest = ''
  return {
    events,
    write: (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) events.push(JSON.parse(line))
    },
    /** Waits for the n-th such event, and returns it. */
    event: (name: string, n = 1): Promise<Event> => eventually(() => events.filter(({ event }) => event === name)[n - 1], 20_000)
  }
}

export const workerStage = async (t: Test) => {
  const stage = await build(t)
  const baseUrl = await stage.app.listen({ host: '127.0.0.1', port: 0 })
  const dir = directory(t)
  const connect = (options: Partial<ClientOptions> = {}) =>
    createClient({ baseUrl, apiKey: stage.account.api_key, parse: parseExactly, ...options })
  const client = connect()

  /** A worker cue's execution, claimable now. */
  const execution = async (members: Members = {}): Promise<string> => {
    const cue = await client.cues.create({ name: 'a job', cron: '@yearly', worker: true, payload: { task: 'job' }, ...members })
    return (await client.cues.fire(cue.id)).id
  }

  /** `pgcue worker` as a process of its own. */
  const start = (args: string[], env: Record<string, string> = {}) => {
    const log = follow()
    const child = spawn(process.execPath, [main, 'worker', '--json', '--state-dir', dir.path('state'), ...args], {
      env: { ...process.env, PGCUE_BASE_URL: baseUrl, PGCUE_API_KEY: stage.account.api_key, XDG_CONFIG_HOME: dir.path('config'), ...env }
    })
    let stderr = ''
    child.stdout.on('data', log.write)
    child.stderr.on('data', chunk => {
      stderr += chunk
    })
    const exited = new Promise<{ code: number | null; stderr: string }>(resolve => child.on('close', code => resolve({ code, stderr })))
    t.teardown(async () => {
      child.kill('SIGTERM')
      child.kill('SIGTERM')
      await exited
    })
    return { ...log, exited, kill: (signal: NodeJS.Signals) => child.kill(signal) }
  }

  /** A worker in this process, optionally with other intervals and another fetch. */
  const run = (flags: Flags, options: Partial<WorkerOptions> & { fetch?: typeof fetch } = {}) => {
    const log = follow()
    const stop = new AbortController()
    const settings = readSettings({ drain: '0', 'state-dir': dir.path('state'), ...flags }, {})
    const state = openState(settings.stateDir, baseUrl, settings.workerId)
    const done = runWorker({
      client: connect(options.fetch && { fetch: options.fetch }),
      settings,
      state,
      log: createLog({ write: log.write }, true),
      env: process.env,
      stopping: stop.signal,
      dying: new AbortController().signal,
      waitSeconds: 5,
      ...options
    }).finally(state.close)
    t.teardown(() => {
      stop.abort()
      return done.catch(() => {})
    })
    return { ...log, done, stop: () => stop.abort(), state }
  }
  return { ...stage, baseUrl, client, connect, dir, execution, start, run }
}

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  return !/^State:\s+Z/m.test(readStatus(pid))
}

/** An ended process stays in the process table until its parent waits for it. */
const readStatus = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}
