/** A worker's settings, from flags and a YAML file: which command handles which task, and more. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../exit-codes.ts'
import { isObject } from '../io.ts'
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

type Members = Record<string, unknown>

const isText = (value: unknown): value is string => typeof value === 'string'
const isCommand = (value: unknown): value is Handler['command'] =>
  isText(value) ? value.trim() !== '' : Array.isArray(value) && value.length > 0 && value.every(isText)
const isWorkerId = (value: unknown): value is string => isText(value) && /^[^\0-\x1f]{1,255}$/.test(value)

/** @throws UsageError unless the value is of a type */
const checked = <T>(value: unknown, isValid: (value: unknown) => value is T, rule: string): T => {
  if (isValid(value)) return value
  throw new UsageError(rule)
}
const text = (value: unknown, name: string) => checked(value, isText, `${name} is not a string`)
const mapping = (value: unknown, name: string) => checked(value, isObject, `${name} is not a mapping`)

const number = (value: unknown, name: string, what: string, min: number, max: number): number => {
  const read = isText(value) && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
  if (typeof read === 'number' && read >= min && read <= max && (what !== 'whole number' || Number.isInteger(read))) return read
  throw new UsageError(`${name} must be a ${what} from ${min} to ${max}`)
}
const msOf = (value: unknown, name: string, min = 1) => number(value, name, 'number of seconds', min, 86_400) * 1000

const variables = (value: unknown, name: string): Record<string, string> => {
  const entries = Object.entries(mapping(value, name))
  const odd = entries.find(([, value]) => typeof value === 'object' && value !== null)
  if (odd) throw new UsageError(`${name}.${odd[0]} is not a string`)
  return Object.fromEntries(entries.map(([key, value]) => [key, String(value ?? '')]))
}

/** The members of a mapping. Unknown names are refused, so that a misspelt setting is not ignored. */
const membersOf = (value: unknown, name: string, names: string[]): Members => {
  const members = mapping(value, name)
  const unknown = Object.keys(members).find(member => !names.includes(member))
  if (unknown) throw new UsageError(`${name}: unknown setting ${unknown}; valid settings: ${names.join(', ')}`)
  return members
}

const settingsOf = 'worker_id concurrency timeout drain state_dir handlers'.split(' ')
const defaults = { concurrency: 1, timeout: 3600, drain: 25 }

/** @throws UsageError naming the invalid setting */
export const readSettings = ({ config, handler = [], ...flags }: Flags, env: Record<string, string | undefined>): Settings => {
  const file = config === undefined ? {} : membersOf(readFile(config), config, settingsOf)
  const base = config === undefined ? process.cwd() : dirname(resolve(config))
  const flagged = Object.entries(flags).map(([name, value]) => [name.replace('-', '_'), value])
  const settings: Members = { ...defaults, ...file, ...Object.fromEntries(flagged) }
  const timeoutMs = msOf(settings.timeout, 'timeout')

  const handlers = new Map<string, Handler>()
  const add = (task: string, value: unknown, base: string) => {
    const name = `handlers.${task}`
    const members = isObject(value) ? membersOf(value, name, ['command', 'timeout', 'cwd', 'env']) : { command: value }
    const rule = `${name} needs a command: a shell command, or a list of a program and its arguments`
    handlers.set(task, {
      command: checked(members.command, isCommand, rule),
      timeoutMs: members.timeout === undefined ? timeoutMs : msOf(members.timeout, `${name}.timeout`),
      cwd: resolve(base, text(members.cwd ?? '.', `${name}.cwd`)),
      env: variables(members.env ?? {}, `${name}.env`)
    })
  }
  for (const [task, value] of Object.entries(mapping(file.handlers ?? {}, 'handlers'))) add(task, value, base)
  for (const pair of handler) {
    const [, task, command] = /^([^=]+)=(.+)$/s.exec(pair) ?? []
    if (!task || !command) throw new UsageError(`--handler ${pair}: must be TASK=COMMAND`)
    add(task, command, process.cwd())
  }
  if (handlers.size === 0) throw new UsageError('no handlers: give --handler TASK=COMMAND, or --config FILE')
  const { worker_id } = settings
  const stateHome = env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local', 'state')
  return {
    workerId: worker_id === undefined ? undefined : checked(worker_id, isWorkerId, 'worker-id must have 1 to 255 characters'),
    handlers,
    concurrency: number(settings.concurrency, 'concurrency', 'whole number', 1, 1000),
    drainMs: msOf(settings.drain, 'drain', 0),
    stateDir: resolve(base, text(settings.state_dir ?? join(stateHome, 'pgcue', 'workers'), 'state-dir'))
  }
}

const readFile = (file: string): unknown => {
  const [content, ...more] = readYaml(sourceOf(file), `${file} cannot be read`, { isText: names => names.at(-2) === 'env' })
  if (more.length > 0) throw new UsageError(`${file}: must be one document`)
  return content
}

const sourceOf = (file: string) => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`)
  }
}
