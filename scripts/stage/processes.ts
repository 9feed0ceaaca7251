/** Starts processes that answer over IPC and end together with this one, each on a CPU of its own if pinned. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import manifest from '../../package.json' with { type: 'json' }
import type { Usage } from './probe.ts'

/** The tested process has a CPU for itself; processes that serve or load it share another. */
export type Place = 'tested' | 'around'

export const here = fileURLToPath(new URL('../..', import.meta.url))

const read = (file: string) => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // not on Linux, or the process has ended
  }
}

let cpus: Partial<Record<Place, string>> = {}

/** Pins processes that are started from now on, if this one may use two CPUs. Returns whether it may. */
export const pin = (): boolean => {
  const list = /Cpus_allowed_list:\s*(\S+)/.exec(read('/proc/self/status'))?.[1] ?? ''
  const [tested, around] = list.split(',').flatMap(range => [...new Set(range.split('-'))])
  if (tested && around) cpus = { tested, around }
  return around !== undefined
}

export type Child = {
  pid: number
  /** Calls a function in the process's `answers`. Rejects if the process ends or doesn't answer in time. */
  ask: <T>(name: string, argument?: unknown, limitMs?: number) => Promise<T>
  usage: () => Promise<Usage>
  signal: (name: NodeJS.Signals) => void
  /** Its exit code; null if a signal ended it. */
  exited: Promise<number | null>
  kill: () => Promise<unknown>
  /** Stops it gracefully. Resolves with its exit code, or null if it did not end in time. */
  stop: () => Promise<number | null>
}

type Options = {
  env?: Record<string, string>
  /** The release, if it isn't this one. */
  root?: string
  /** File of its output; otherwise only errors are shown. */
  log?: string
}

const patienceMs = 60_000
const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/** Starts a module, given relative to the root. The environment is empty except for paths. */
export const start = (module: string, place: Place, { env, root = here, log }: Options = {}): Child => {
  // The same flags as `npm start`.
  const flags = module === 'src/server.ts' ? manifest.scripts.start.split(' ').filter(word => word.startsWith('--')) : []
  const command = [process.execPath, ...flags, '--import', new URL('probe.ts', import.meta.url).href, module]
  if (cpus[place]) command.unshift('taskset', '-c', cpus[place])
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env
  const output = log ? openSync(log, 'w') : undefined
  const child = spawn(command[0]!, command.slice(1), {
    cwd: root,
    env: { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', output ?? 'ignore', output ?? 'inherit', 'ipc'],
    detached: true // Ctrl-C in the terminal is for this process, which ends its children
  })
  if (output) closeSync(output)
  children.add(child)
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  child.on('message', ({ id, answer, error }: { id: number; answer: unknown; error?: string }) => {
    if (error === undefined) pending.get(id)?.resolve(answer)
    else pending.get(id)?.reject(new Error(`${module}: ${error}`))
  })
  const exited = once(child, 'exit').then(([code]): number | null => {
    children.delete(child)
    for (const { reject } of pending.values()) reject(new Error(`${module} ended with code ${code}`))
    return code
  })

  let questions = 0
  const ask = async <T>(name: string, argument?: unknown, limitMs = patienceMs): Promise<T> => {
    const id = ++questions
    const question = Promise.withResolvers<unknown>()
    pending.set(id, question)
    const timer = setTimeout(() => question.reject(new Error(`${module}: no answer to ${name} within ${limitMs / 1000} s`)), limitMs)
    try {
      child.send({ id, name, argument }, error => error && question.reject(error))
      return (await question.promise) as T
    } finally {
      clearTimeout(timer)
      pending.delete(id)
    }
  }
  const signal = (name: NodeJS.Signals) => void child.kill(name)
  return {
    pid: child.pid!,
    ask,
    usage: () => ask<Usage>('usage'),
    signal,
    exited,
    kill: () => {
      signal('SIGKILL')
      return exited
    },
    stop: () => {
      signal('SIGTERM')
      const timer = setTimeout(() => signal('SIGKILL'), patienceMs)
      return exited.finally(() => clearTimeout(timer))
    }
  }
}

/** Moves a process and its children to their CPU; future children inherit it. */
export const place = (pid: number, place: Place) => {
  if (cpus[place]) for (const { pid: member } of familyOf(pid)) spawnSync('taskset', ['-acp', cpus[place], String(member)])
}

/** Returns the CPU seconds of a process and its children, including ended ones; NaN if the system doesn't provide them. */
export const cpuSeconds = (pid: number): number => {
  const family = familyOf(pid)
  return family.length > 0 ? family.reduce((sum, { cpu_s }) => sum + cpu_s, 0) : Number.NaN
}

/** Peak memory of a process in MB; null if the system doesn't provide it. */
export const peakMemory = (pid: number): number | null =>
  Math.round(Number(/VmHWM:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / 1024) || null

const ticksPerSecond = 100

// proc(5): after the command in parentheses come state and parent, and from the 12th field on the CPU times of the process and its ended children.
const familyOf = (pid: number): { pid: number; cpu_s: number }[] => {
  const names = process.platform === 'linux' ? readdirSync('/proc').filter(name => /^\d+$/.test(name)) : []
  return names.flatMap(name => {
    const fields = read(`/proc/${name}/stat`)
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number)
    const isRoot = Number(name) === pid
    if (!isRoot && fields[1] !== pid) return []
    const ticks = fields.slice(11, isRoot ? 15 : 13).reduce((sum, count) => sum + count, 0)
    return { pid: Number(name), cpu_s: ticks / ticksPerSecond }
  })
}
