/** Starts the bench's processes: each on its own CPU if possible, answering over IPC, and ended together with the bench. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, cpus as statistics } from 'node:os'
import { fileURLToPath } from 'node:url'
import manifest from '../../package.json' with { type: 'json' }
import type { Usage } from './probe.ts'

/** The tested process has a CPU for itself; processes that serve or load it share another. */
export type Place = 'tested' | 'around'

// CPUs this process may use, from the output of `taskset`: "pid 7's current affinity list: 0,2-5".
const cpus = (() => {
  const said = spawnSync('taskset', ['-cp', String(process.pid)], { encoding: 'utf8' }).stdout ?? ''
  return (said.split(': ')[1]?.trim().split(',') ?? []).flatMap(range => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
})()

export const isPinned = process.env.PIN !== '0' && availableParallelism() > 1 && cpus.length > 1
const cpuOf = (place: Place) => String(place === 'tested' ? cpus[0] : cpus[1])

/** Seconds that the CPU of a place has worked since the machine started. NaN if processes are not pinned. */
export const busySeconds = (place: Place): number => {
  if (!isPinned) return Number.NaN
  const { user, nice, sys, irq } = statistics()[Number(cpuOf(place))]!.times
  return (user + nice + sys + irq) / 1000
}

export type Child = {
  pid: number
  /** Calls a function in the process's `answers`. Rejects if the process ends or doesn't answer in time. */
  ask: <T>(name: string, argument?: unknown, limitMs?: number) => Promise<T>
  usage: () => Promise<Usage>
  stop: () => Promise<void>
}

const children = new Set<ChildProcess>()

/** Ends all started processes. */
export const endAll = () => {
  for (const child of children) child.kill('SIGKILL')
}
process.on('exit', endAll)

/** Starts a module, given relative to the project's root. The environment is empty except for paths. */
export const start = (module: string, place: Place, env: Record<string, string> = {}): Child => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  // The same flags as `npm start`.
  const flags = module === 'src/server.ts' ? manifest.scripts.start.split(' ').filter(word => word.startsWith('--')) : []
  const command = [process.execPath, ...flags, '--import', new URL('probe.ts', import.meta.url).href, module]
  if (isPinned) command.unshift('taskset', '-c', cpuOf(place))
  const { PATH, HOME, TMPDIR } = process.env
  const child = spawn(command[0]!, command.slice(1), {
    cwd: root,
    env: { PATH, HOME, TMPDIR, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    detached: true // Ctrl-C in the terminal is for the bench, which ends these processes
  })
  children.add(child)
  let said = ''
  child.stderr!.on('data', chunk => {
    said = (said + chunk).slice(-2000)
  })
  const exited = once(child, 'exit').finally(() => children.delete(child))

  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let asked = 0
  child.on('message', ({ id, answer, error }: { id: number; answer: unknown; error?: string }) => {
    const one = waiting.get(id)
    if (error === undefined) one?.resolve(answer)
    else one?.reject(new Error(`${module}: ${error}`))
  })
  child.on('exit', code => {
    for (const { reject } of waiting.values()) reject(new Error(`${module} ended with code ${code}\n${said}`))
  })

  const ask = async <T>(name: string, argument?: unknown, limitMs = 60_000): Promise<T> => {
    const id = ++asked
    const one = Promise.withResolvers<unknown>()
    waiting.set(id, one)
    const timer = setTimeout(() => one.reject(new Error(`${module}: no answer to ${name} within ${limitMs / 1000} s\n${said}`)), limitMs)
    try {
      child.send({ id, name, argument })
      return (await one.promise) as T
    } finally {
      clearTimeout(timer)
      waiting.delete(id)
    }
  }

  return {
    pid: child.pid!,
    ask,
    usage: () => ask<Usage>('usage'),
    stop: async () => {
      child.kill('SIGKILL')
      await exited
    }
  }
}

/** Moves a process and its children to their CPU; future children inherit it. */
export const place = (pid: number, where: Place) => {
  if (!isPinned) return
  for (const one of familyOf(pid)) spawnSync('taskset', ['-acp', cpuOf(where), String(one.pid)])
}

/** Returns the CPU seconds of a process and its children, including ended ones; null if the system doesn't provide them. */
export const cpuSeconds = (pid: number): number | null => {
  const family = familyOf(pid)
  return family.length > 0 ? family.reduce((sum, one) => sum + one.cpu_s, 0) : null
}

const ticksPerSecond = 100

// proc(5): after the command in parentheses come state and parent, and from the 12th field on the CPU times of the process and its ended
// children.
const familyOf = (pid: number): { pid: number; cpu_s: number }[] => {
  const family: { pid: number; cpu_s: number }[] = []
  for (const name of procs()) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number)
      const isRoot = Number(name) === pid
      if (!isRoot && fields[1] !== pid) continue
      const times = fields.slice(11, isRoot ? 15 : 13)
      family.push({ pid: Number(name), cpu_s: times.reduce((sum, ticks) => sum + ticks, 0) / ticksPerSecond })
    } catch {} // ended meanwhile
  }
  return family
}

const procs = () => (process.platform === 'linux' ? readdirSync('/proc').filter(name => /^\d+$/.test(name)) : [])
