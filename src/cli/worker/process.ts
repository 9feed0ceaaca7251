/** A handler's process group: starts it, watches it and ends all its processes. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { isAlive } from '../../directories.ts'
import type { Handler } from './settings.ts'

/** Identifies a process even if its number is reused later. `started` is null if the system doesn't provide it. */
export type ProcessMark = { pid: number; started: string | null }

type Env = Record<string, string | undefined>

export type Ending = {
  /** Null if a signal ended it or it did not start. */
  code: number | null
  signal: string | null
  /** Why it did not start. */
  failure: string | null
  /** The end of its output. */
  stdout: string
  stderr: string
}

/** Time from SIGTERM to SIGKILL for a process group, also for processes that a handler left behind. */
const graceMs = 5000
const stragglerMs = 1000
const pollMs = 25
/** Bytes kept of each stream: enough for 2,000 characters of any kind. */
const keptBytes = 16_384

/**
 * Runs a command in its own process group. When the command ends, its background processes are killed. `stop` ends it early, with SIGTERM
 * first.
 */
export const startHandler = ({ command, cwd }: Pick<Handler, 'command' | 'cwd'>, env: Env, input: string) => {
  const [program, ...args] = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
  let child: ChildProcessWithoutNullStreams
  try {
    child = spawn(program!, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    // For example, the environment is too large.
    const ending: Ending = { code: null, signal: null, failure: (error as Error).message, stdout: '', stderr: '' }
    return { mark: undefined, ended: Promise.resolve(ending), stop: () => false }
  }
  const [stdout, stderr] = [tailOf(child.stdout), tailOf(child.stderr)]
  child.stdin.on('error', () => {}) // a handler may ignore its input
  child.stdin.end(input)
  const { pid } = child
  let stopped = false
  let hasExited = false

  const closed = once(child, 'close').catch(() => {}) // rejects if it can't be started
  const run = async (): Promise<Ending> => {
    const how = await once(child, 'exit').then(
      ([code, signal]) => ({ code, signal, failure: null }),
      error => ({ code: null, signal: null, failure: existsSync(cwd) ? (error as Error).message : `directory ${cwd} not found` })
    )
    hasExited = true
    if (pid !== undefined) await endGroup(pid, stopped ? graceMs : stragglerMs)
    // A process that has left the group may keep the pipes open.
    await Promise.race([closed, delay(stragglerMs)])
    for (const stream of [child.stdout, child.stderr]) stream.destroy()
    return { ...how, stdout: stdout(), stderr: stderr() }
  }
  return {
    mark: pid === undefined ? undefined : markOf(pid),
    ended: run(),
    /** Ends the group immediately (`hard`) or with time to exit. Returns false if it has ended already. */
    stop: (hard = false): boolean => {
      if (pid === undefined || hasExited) return false
      if (stopped && !hard) return true
      stopped = true
      signalGroup(pid, hard ? 'SIGKILL' : 'SIGTERM')
      if (!hard) setTimeout(() => hasExited || signalGroup(pid, 'SIGKILL'), graceMs).unref()
      return true
    }
  }
}

/** Returns whether there was a group to signal. */
const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Waits for a group to end, then kills what is left of it. */
const endGroup = async (pid: number, ms: number) => {
  for (const end = Date.now() + ms; signalGroup(pid, 0) && Date.now() < end; ) await delay(pollMs)
  signalGroup(pid, 'SIGKILL')
}

export const markOf = (pid: number): ProcessMark => ({ pid, started: startOf(pid) })

/** Whether this very process is still running. */
export const isRunning = (mark: ProcessMark | undefined): boolean =>
  mark !== undefined && isAlive(mark.pid) && startOf(mark.pid) === mark.started

/** Ends the process group of a handler whose worker is gone, if this very process still leads it. */
export const endLeftover = async (mark: ProcessMark | undefined): Promise<boolean> => {
  if (!mark || mark.started === null || !isRunning(mark)) return false
  signalGroup(mark.pid, 'SIGTERM')
  await endGroup(mark.pid, graceMs)
  return true
}

/** On Linux: the boot id and the ticks since boot. */
const startOf = (pid: number): string | null => {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return `${boot} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`
  } catch {
    return null
  }
}

/** Keeps the end of a stream; the returned function decodes it. */
const tailOf = (stream: NodeJS.ReadableStream) => {
  let tail: Buffer = Buffer.alloc(0)
  stream.on('error', () => {})
  stream.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk.subarray(-keptBytes)]).subarray(-keptBytes)
  })
  return () => tail.toString().trim()
}
