/** A worker's settings, from flags and a YAML file: which command handles which task, and more. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../exit-codes.ts'
import { isObject } from '../json.ts'
import { readYaml } from '../yaml.ts'

export type Handler = {
  /** A string is run by the shell; a list is a program and its arguments. */
  command: string | string[]
  timeoutMs: number
  cwd: string
  env: Record<string, string>
}

export type Settings = {
  /** Undefined: the host's name, with a number if several workers run on the host. */
  workerId: string | undefined
  /** By task; `*` handles all other tasks. */
  handlers: ReadonlyMap<string, Handler>
  concurrency: number
  /** Time for running handlers to end when the worker is stopped. */
  drainMs: number
  /** Contains a directory per service, with one directory per worker. */
  stateDir: string
}

export type Flags = {
  config?: string
  handler?: string[]
  concurrency?: string
  timeout?: string
  drain?: string
  'worker-id'?: string
  'state-dir'?: string
}

type Raw = { command: unknown; timeout?: unknown; cwd?: unknown; env?: unknown }

/** Top-level names allowed in the file. */
const names = ['worker_id', 'concurrency', 'timeout', 'drain', 'state_dir', 'handlers']
const handlerNames = ['command', 'timeout', 'cwd', 'env']
const mostHandlers = 100
const longest = 86_400

/** @throws UsageError naming the invalid setting */
export const readSettings = (flags: Flags, env: Record<string, string | undefined>): Settings => {
  const file = flags.config === undefined ? {} : readFile(flags.config)
  const base = flags.config === undefined ? process.cwd() : dirname(resolve(flags.config))
  const timeout = seconds(flags.timeout ?? file.timeout ?? 3600, 'timeout', 1)
  const handlers = new Map<string, Handler>()
  for (const [task, given] of Object.entries(objectOf(file.handlers ?? {}, 'handlers'))) {
    handlers.set(task, handlerOf(task, isObject(given) ? (given as Raw) : { command: given }, base, timeout))
  }
  for (const given of flags.handler ?? []) {
    const [, task, command] = /^([^=]+)=(.+)$/s.exec(given) ?? []
    if (!task || !command) throw new UsageError(`--handler ${given}: must be TASK=COMMAND`)
    handlers.set(task, handlerOf(task, { command }, process.cwd(), timeout))
  }
  if (handlers.size === 0) throw new UsageError('no handlers: give --handler TASK=COMMAND, or --config FILE')
  if (handlers.size > mostHandlers) throw new UsageError(`a worker has at most ${mostHandlers} handlers`)
  const tooLong = [...handlers.keys()].find(task => task.length > 255)
  if (tooLong) throw new UsageError(`the task ${tooLong.slice(0, 40)}… has more than 255 characters`)

  const workerId = flags['worker-id'] ?? file.worker_id
  if (workerId !== undefined && (typeof workerId !== 'string' || !/^(?!\.{1,2}$)[^\0-\x1f]{1,255}$/.test(workerId))) {
    throw new UsageError("worker-id must have 1 to 255 characters, and not be '.' or '..'")
  }
  return {
    workerId,
    handlers,
    concurrency: whole(flags.concurrency ?? file.concurrency ?? 1, 'concurrency', 1, 1000),
    drainMs: seconds(flags.drain ?? file.drain ?? 25, 'drain', 0),
    stateDir: resolve(base, text(flags['state-dir'] ?? file.state_dir, 'state_dir') ?? defaultStateDir(env))
  }
}

const defaultStateDir = (env: Record<string, string | undefined>) =>
  join(env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local', 'state'), 'pgcue', 'workers')

const readFile = (file: string): Record<string, unknown> => {
  let source: string
  try {
    source = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`)
  }
  const [content, ...more] = readYaml(source, `${file} cannot be read`, { isText: names => names.at(-2) === 'env' })
  if (more.length > 0) throw new UsageError(`${file}: must be one document`)
  return known(objectOf(content, file), names, file)
}

const handlerOf = (task: string, given: Raw, base: string, timeout: number): Handler => {
  const name = `handlers.${task}`
  known(given, handlerNames, name)
  const { command } = given
  const good = typeof command === 'string' ? command.trim() !== '' : Array.isArray(command) && command.length > 0 && command.every(isText)
  if (!good) throw new UsageError(`${name} needs a command: a shell command, or a list of a program and its arguments`)
  const env = Object.entries(objectOf(given.env ?? {}, `${name}.env`))
  const odd = env.find(([, value]) => typeof value === 'object' && value !== null)
  if (odd) throw new UsageError(`${name}.env.${odd[0]} is not a string`)
  return {
    command: command as string | string[],
    timeoutMs: given.timeout === undefined ? timeout : seconds(given.timeout, `${name}.timeout`, 1),
    cwd: resolve(base, text(given.cwd, `${name}.cwd`) ?? '.'),
    env: Object.fromEntries(env.map(([key, value]) => [key, String(value ?? '')]))
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

const text = (value: unknown, name: string): string | undefined => {
  if (value === undefined || isText(value)) return value
  throw new UsageError(`${name} is not a string`)
}

const objectOf = (value: unknown, name: string): Record<string, unknown> => {
  if (isObject(value)) return value
  throw new UsageError(`${name} is not a mapping`)
}

/** Rejects unknown names, so that a misspelt setting is not ignored. */
const known = <T extends object>(object: T, names: string[], where: string): T => {
  const unknown = Object.keys(object).find(name => !names.includes(name))
  if (unknown !== undefined) throw new UsageError(`${where}: unknown setting ${unknown}; valid settings: ${names.join(', ')}`)
  return object
}

const whole = (value: unknown, name: string, min: number, max: number): number => {
  const number = isText(value) && /^\d+$/.test(value) ? Number(value) : value
  if (Number.isInteger(number) && (number as number) >= min && (number as number) <= max) return number as number
  throw new UsageError(`${name} must be a whole number from ${min} to ${max}`)
}

/** Parses seconds, with or without a fraction, into milliseconds. */
const seconds = (value: unknown, name: string, min: number): number => {
  const number = isText(value) && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
  if (typeof number === 'number' && number >= min && number <= longest) return number * 1000
  throw new UsageError(`${name} must be a number of seconds from ${min} to ${longest}`)
}
