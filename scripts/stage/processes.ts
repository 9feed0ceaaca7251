/** Starts processes that answer over IPC and end together with this one. Pinned, the tested ones have a CPU for themselves. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import manifest from '../../package.json' with { type: 'json' }

export const here = fileURLToPath(new URL('../..', import.meta.url))

const read = (file: string) => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // not on Linux, or the process has ended
  }
}

let testedCpu: string | undefined

/** Moves this process, and what it starts from now on, to one CPU, and tested ones to another. Returns whether there are two. */
export const pin = (): boolean => {
  const list = /Cpus_allowed_list:\s*(\S+)/.exec(read('/proc/self/status'))?.[1] ?? ''
  const [tested, around] = list.split(',').flatMap(range => [...new Set(range.split('-'))])
  if (around === undefined) return false
  testedCpu = tested
  spawnSync('taskset', ['-acp', around, String(process.pid)])
  return true
}

const ends: ((keepsLogs: boolean) => unknown)[] = []
export const atEnd = (end: (keepsLogs: boolean) => unknown) => void ends.push(end)
export const startedSoFar = () => ends.length

/** Ends everything that was started, or what was started later, whatever its state. */
export const endStage = async (keepsLogs = false, since = 0) => {
  for (const end of ends.splice(since).reverse()) await Promise.resolve(end(keepsLogs)).catch(() => {})
}

export type Child = {
  pid: number
  /** Calls a function in the process's `answers`. Rejects if the process ends or doesn't answer in time. */
  ask: <T>(name: string, argument?: unknown, limitMs?: number) => Promise<T>
  signal: (name: NodeJS.Signals) => void
  /** Its exit code; null if a signal ended it. */
  exited: Promise<number | null>
  kill: () => Promise<unknown>
  /** Stops it gracefully. Resolves with its exit code, or null if it did not end in time. */
  stop: () => Promise<number | null>
}

type Options = {
  env?: Record<string, string>
  isTested?: boolean
  /** The release, if it isn't this one. */
  root?: string
  /** File of its output; otherwise only errors are shown. */
  log?: string
}

const patienceMs = 60_000

/** Starts a module, given relative to the root. The environment is empty except for paths. */
export const start = (module: string, { env, isTested, root = here, log }: Options = {}): Child => {
  // The same flags as `npm start`.
  const flags = module === 'src/server.ts' ? manifest.scripts.start.split(' ').filter(word => word.startsWith('--')) : []
  const command = [process.execPath, ...flags, '--import', new URL('probe.ts', import.meta.url).href, module]
  if (isTested && testedCpu) command.unshift('taskset', '-c', testedCpu)
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env
  const output = log ? openSync(log, 'w') : undefined
  const child = spawn(command[0]!, command.slice(1), {
    cwd: root,
    env: { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', output ?? 'ignore', output ?? 'inherit', 'ipc'],
    detached: true // Ctrl-C in the terminal is for this process, which ends its children
  })
  if (output) closeSync(output)
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  child.on('message', ({ id, answer, error }: { id: number; answer: unknown; error?: string }) => {
    if (error === undefined) pending.get(id)?.resolve(answer)
    else pending.get(id)?.reject(new Error(`${module}: ${error}`))
  })
  const exited = once(child, 'exit').then(([code]): number | null => {
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
  const kill = () => {
    signal('SIGKILL')
    return exited
  }
  const stop = () => {
    signal('SIGTERM')
    const timer = setTimeout(kill, patienceMs)
    return exited.finally(() => clearTimeout(timer))
  }
  atEnd(kill)
  return { pid: child.pid!, ask, signal, exited, kill, stop }
}

/** Memory of a process in MB, at its peak or now; NaN if the system doesn't provide it. */
export const memory = (pid: number, of: 'VmHWM' | 'VmRSS'): number =>
  Number(new RegExp(`${of}:\\s+(\\d+)`).exec(read(`/proc/${pid}/status`))?.[1]) / 1024

const ticksPerSecond = 100

/** CPU seconds of a process and its children, including ended ones; NaN if the system doesn't provide them. */
export const cpuSeconds = (pid: number): number => {
  const names = process.platform === 'linux' ? readdirSync('/proc').filter(name => /^\d+$/.test(name)) : []
  // proc(5): after the command in parentheses come state and parent, and from the 12th field on the CPU times of the process and its ended children.
  const ticks = names.flatMap(name => {
    const fields = read(`/proc/${name}/stat`)
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number)
    const isRoot = Number(name) === pid
    return isRoot || fields[1] === pid ? fields.slice(11, isRoot ? 15 : 13) : []
  })
  return ticks.length > 0 ? ticks.reduce((sum, count) => sum + count, 0) / ticksPerSecond : Number.NaN
}
