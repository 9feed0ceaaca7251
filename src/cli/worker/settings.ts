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
  /** Contains a directory per service. */
  stateDir: string
}

export type Flags = { config?: string; handler?: string[] } & Partial<
  Record<'concurrency' | 'timeout' | 'drain' | 'worker-id' | 'state-dir', string>
>

/** Reads a setting. @throws UsageError with its name */
type Read<T> = (value: unknown, name: string) => T

const isText = (value: unknown): value is string => typeof value === 'string'

const text: Read<string> = (value, name) => {
  if (isText(value)) return value
  throw new UsageError(`${name} is not a string`)
}

const workerId: Read<string> = value => {
  if (isText(value) && /^[^\0-\x1f]{1,255}$/.test(value)) return value
  throw new UsageError('worker-id must have 1 to 255 characters')
}

const number =
  (what: string, min: number, max: number): Read<number> =>
  (value, name) => {
    const read = isText(value) && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
    if (typeof read === 'number' && read >= min && read <= max && (what !== 'whole number' || Number.isInteger(read))) return read
    throw new UsageError(`${name} must be a ${what} from ${min} to ${max}`)
  }
const seconds = (min: number) => number('number of seconds', min, 86_400)

const mapping: Read<Record<string, unknown>> = (value, name) => {
  if (isObject(value)) return value
  throw new UsageError(`${name} is not a mapping`)
}

/** A command, or a list of a program and its arguments. */
const command: Read<string | string[]> = (value, name) => {
  if (isText(value) ? value.trim() !== '' : Array.isArray(value) && value.length > 0 && value.every(isText)) return value as string
  throw new UsageError(`${name.replace(/\.command$/, '')} needs a command: a shell command, or a list of a program and its arguments`)
}

const variables: Read<Record<string, string>> = (value, name) => {
  const entries = Object.entries(mapping(value, name))
  const odd = entries.find(([, value]) => typeof value === 'object' && value !== null)
  if (odd) throw new UsageError(`${name}.${odd[0]} is not a string`)
  return Object.fromEntries(entries.map(([key, value]) => [key, String(value ?? '')]))
}

type Shape = Record<string, Read<unknown>>
type Shaped<S extends Shape> = { [Name in keyof S]?: ReturnType<S[Name]> }

/** Reads a mapping of settings. Unknown names are refused, so that a misspelt setting is not ignored. */
const shaped = <S extends Shape>(shape: S, value: unknown, name: string, prefix = ''): Shaped<S> => {
  const entries = Object.entries(mapping(value, name)).filter(([, value]) => value !== undefined)
  const unknown = entries.find(([key]) => !Object.hasOwn(shape, key))
  if (unknown) throw new UsageError(`${name}: unknown setting ${unknown[0]}; valid settings: ${Object.keys(shape).join(', ')}`)
  return Object.fromEntries(entries.map(([key, value]) => [key, shape[key]!(value, prefix + key)])) as Shaped<S>
}

const common = {
  worker_id: workerId,
  concurrency: number('whole number', 1, 1000),
  timeout: seconds(1),
  drain: seconds(0),
  state_dir: text
}
const ofHandler = { command, timeout: seconds(1), cwd: text, env: variables }

/** @throws UsageError naming the invalid setting */
export const readSettings = ({ config, handler = [], ...flags }: Flags, env: Record<string, string | undefined>): Settings => {
  const base = config === undefined ? process.cwd() : dirname(resolve(config))
  const file = config === undefined ? {} : shaped({ ...common, handlers: mapping }, readFile(config), config)
  const { 'worker-id': worker_id, 'state-dir': state_dir, ...rest } = flags
  const settings = { timeout: 3600, concurrency: 1, drain: 25, ...file, ...shaped(common, { worker_id, state_dir, ...rest }, 'flags') }

  const handlers = new Map<string, Handler>()
  const add = (task: string, value: unknown, base: string) => {
    const name = `handlers.${task}`
    const given = shaped(ofHandler, isObject(value) ? { command: undefined, ...value } : { command: value }, name, `${name}.`)
    const { timeout = settings.timeout, cwd = '.', env = {} } = given
    handlers.set(task, { command: given.command ?? command(undefined, name), timeoutMs: timeout * 1000, cwd: resolve(base, cwd), env })
  }
  for (const [task, value] of Object.entries(file.handlers ?? {})) add(task, value, base)
  for (const pair of handler) {
    const [, task, command] = /^([^=]+)=(.+)$/s.exec(pair) ?? []
    if (!task || !command) throw new UsageError(`--handler ${pair}: must be TASK=COMMAND`)
    add(task, command, process.cwd())
  }
  if (handlers.size === 0) throw new UsageError('no handlers: give --handler TASK=COMMAND, or --config FILE')
  return {
    workerId: settings.worker_id,
    handlers,
    concurrency: settings.concurrency,
    drainMs: settings.drain * 1000,
    stateDir: resolve(base, settings.state_dir ?? defaultStateDir(env))
  }
}

const defaultStateDir = (env: Record<string, string | undefined>) =>
  join(env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local', 'state'), 'pgcue', 'workers')

const readFile = (file: string): unknown => {
  let source: string
  try {
    source = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`)
  }
  const [content, ...more] = readYaml(source, `${file} cannot be read`, { isText: names => names.at(-2) === 'env' })
  if (more.length > 0) throw new UsageError(`${file}: must be one document`)
  return content
}
