/** Commands and their options, most of which are members of an API request with the help, values and bounds of its schema. */
import type { CallOptions, Client } from '../client/index.ts'
import { instantAfter, isLength, lengthOf } from '../schedule/offset.ts'
import { UsageError } from './exit-codes.ts'
import { type Field, fields } from './fields.generated.ts'
import { type Io, isObject, readJson } from './io.ts'
import type { Column, Output } from './output.ts'

type Body = Record<string, unknown>

export type Option = {
  type: 'string' | 'boolean'
  short?: string
  multiple?: true
  /** Whether --no-NAME sets it to false. */
  negatable?: true
  /** Stands for the value in help. */
  value?: string
  help: string
  /** Heading in help. */
  group?: string
  /** The members of the API request that it sets, as they are named in errors. */
  members?: readonly string[]
  /** Returns its part of the request, of which `body` are the parts before it. */
  part?: (value: never, name: string, context: Context, body: Body) => Body | Promise<Body>
}
export type Options = Record<string, Option>
type Values<O extends Options> = {
  [Name in keyof O]?: O[Name] extends { multiple: true } ? string[] : O[Name] extends { type: 'boolean' } ? boolean : string
}

export type Context<O extends Options = Options> = {
  /** Arguments after the command, in order. */
  args: string[]
  options: Values<O>
  /** Returns the request that the options describe, and a client for it. @throws UsageError naming the invalid option */
  ready: <B = Body>() => Promise<{ body: B; call: CallOptions; client: Client }>
  /** Creates a client with the key from the environment or the stored one. @throws CliError if there is neither */
  connect: () => Client
  /** Creates a client with another key, or without one. */
  clientWith: (baseUrl: string, apiKey?: string) => Client
  /** Runs another command with the same key, and returns its exit code. */
  another: (argv: string[]) => Promise<number>
  /** Returns the address of the service. */
  baseUrl: () => string
  out: Output
  io: Io
}

export type Command<O extends Options = Options, A = unknown> = {
  /** Additional help below the options. */
  notes?: string
  options?: O
  /** Arguments by the members of the API request that they set, as they are named in errors. */
  names?: Readonly<Record<string, string>>
  /** Handles interruption itself; other commands end immediately. */
  longRunning?: true
  /** Returns the answer that is shown, or an exit code. */
  run: (context: Context<O>) => A | Promise<A>
  /** Prints the answer as text, or returns a line; with --json, the answer itself is printed. */
  text?: (answer: A, out: Output, args: string[]) => unknown
}

/** Types a command's options and answer. */
export const command = <const O extends Options, A>(definition: Command<O, A>): Command => definition as unknown as Command

type Definition = Omit<Command, 'run' | 'text'>

/** A command that calls the API with its first argument and the request that its options describe, and prints the answer. */
export const acting = <A, B = object>(
  act: (client: Client, id: string, body: B, call: CallOptions) => Promise<A>,
  text: (answer: A, out: Output) => unknown,
  definition: Definition = {}
): Command =>
  command({
    ...definition,
    run: async ({ args: [id], ready }) => {
      const { client, body, call } = await ready<B>()
      return act(client, id!, body, call)
    },
    text
  })

/** A command that prints a page of a list, or the text for an empty one. */
export const listing = <A extends object, T>(
  read: (client: Client, query: never) => Promise<A>,
  rowsOf: (answer: A) => T[],
  columns: readonly Column<T>[] | ((rows: T[]) => readonly Column<T>[]),
  { empty, ...definition }: Definition & { empty: string }
): Command =>
  acting(
    async (client, _, query: { offset?: number }) => ({ offset: query.offset, ...(await read(client, query as never)) }),
    (answer, out) => {
      const rows = rowsOf(answer)
      out.list(answer, rows, typeof columns === 'function' ? columns(rows) : columns, empty)
    },
    definition
  )

/** Returns the options of a command by the members that they set. */
export const namesOf = ({ options = {}, names }: Command): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(options).flatMap(([name, { members = [] }]) => members.map(member => [member, `--${name}`]))),
  ...names
})

/** Merges the parts of all options in their order; an object is merged with that of a previous part. */
export const bodyOf = async (context: Context, definitions: Options = {}): Promise<Body> => {
  const values = context.options as Body
  const present = Object.entries(definitions).filter(([name]) => values[name] !== undefined)
  const readers = present.flatMap(([name, { value }]) => (values[name] === '-' && value === 'JSON' ? [`--${name}`] : []))
  if (readers.length > 1) throw new UsageError(`only one of ${readers.join(' and ')} can read standard input`)
  const body: Body = {}
  const setters = new Map<string, string>()
  for (const [name, { part = () => ({}), members = [] }] of present) {
    for (const member of members) {
      if (setters.has(member)) throw new UsageError(`give either --${setters.get(member)} or --${name}, not both`)
      setters.set(member, name)
    }
    merge(body, await part(values[name] as never, name, context, body))
  }
  return body
}

const merge = (body: Body, part: Body) => {
  for (const [name, value] of Object.entries(part)) {
    const previous = body[name]
    body[name] = isObject(previous) && isObject(value) && name !== 'payload' ? { ...previous, ...value } : value
  }
}

const inObjects = (member: string, value: unknown): Body => {
  const [first = member, second] = member.split('.')
  return { [first]: second === undefined ? value : { [second]: value } }
}

/** An option that is a member of a request: its name in the request, or that and what differs from the schema. */
export type Member = string | (Partial<Option> & { member: string; read?: (value: never, name: string, context: Context) => unknown })

/** Options for members of an operation's request, below a heading of help. */
export const fromApi = <const M extends Record<string, Member>>(operation: string, members: M, group?: string) =>
  Object.fromEntries(
    Object.entries(members).map(([name, entry]) => {
      const { member, read, ...rest } = typeof entry === 'string' ? { member: entry, read: undefined } : entry
      const field = fields[operation]?.[member]
      if (!field) throw new Error(`${operation} has no member ${member}`)
      const reader = read ?? readerOf(field, member)
      const part: Option['part'] = async (value, name, context) => inObjects(member, await reader(value, name, context))
      return [name, { ...optionOf(field, name), ...(group && { group }), members: [member], part, ...rest }]
    })
  ) as { [Name in keyof M]: Option }

/** Options for all members of a list's query: those that `changes` renames, without those that it sets to null. */
export const filtersOf = (operation: string, changes: Record<string, Member | null> = {}): Options => {
  const renamed = Object.values(changes).map(entry => (typeof entry === 'string' ? entry : entry?.member))
  const plain = Object.keys(fields[operation]!).filter(member => !renamed.includes(member))
  const members = { ...Object.fromEntries(plain.map(member => [member.replaceAll('_', '-'), member])), ...changes }
  return fromApi(operation, Object.fromEntries(Object.entries(members).filter(([, entry]) => entry !== null)) as Record<string, Member>)
}

const placeholders: Record<string, string> = { integer: 'N', time: 'TIME' }

const optionOf = (field: Field, name: string): Option => {
  const { type = 'object', values, help = values ? '' : name.replaceAll('-', ' '), min, max = 0, default: byDefault } = field
  // Bounds beyond what anybody would try explain nothing.
  const bounds = min !== undefined && max < 2 ** 31 - 1 && `${min} to ${max}`
  const details = [values?.join(', '), bounds, byDefault !== undefined && `default: ${byDefault}`].filter(Boolean).join('; ')
  const text = [help.replace(/^[A-Z](?=[a-z]| )/, letter => letter.toLowerCase()), details && `(${details})`]
  return {
    type: type === 'boolean' ? 'boolean' : 'string',
    help: text.filter(Boolean).join(' '),
    ...(type !== 'boolean' && { value: placeholders[type] ?? name.split('-').at(-1)!.toUpperCase() }),
    ...(type === 'array' && { multiple: true as const })
  }
}

type Read = (value: never, name: string, context: Context) => unknown

const readerOf = ({ type, min = 0, max = 2 ** 31 - 1 }: Field, member: string): Read => {
  if (type === 'time') return (text: string) => instantOf(text)
  if (type !== 'integer') return value => value
  return (text: string, name) => integer(member.endsWith('_seconds') ? secondsOf(text) : text, name, min, max)
}

/** Parses an integer within bounds; undefined if not given. */
export const integer = (value: string | undefined, name: string, min: number, max: number): number | undefined => {
  if (value === undefined) return undefined
  if (!/^\d+$/.test(value) || Number(value) < min || Number(value) > max)
    throw new UsageError(`--${name} must be a whole number from ${min} to ${max}`)
  return Number(value)
}

const secondsOf = (text: string) => (isLength(text) ? String(lengthOf(text) / 1000) : text)

/** A time as the API takes it: itself, or so far from now: `+10m`. */
const instantOf = (text: string): string => (text.startsWith('+') && instantAfter(new Date(), text.slice(1))?.toISOString()) || text

/** The same for times in the past: `2h` is so long ago. */
export const pastOf = (text: string): string => (isLength(text) ? new Date(Date.now() - lengthOf(text)).toISOString() : instantOf(text))

export const jsonOf = (text: string, name: string, { io }: Context) => readJson(text, name, io)

const dataOf = async (...option: Parameters<typeof jsonOf>): Promise<Body> => {
  const data = await jsonOf(...option)
  if (isObject(data)) return data
  throw new UsageError('--data must be a JSON object')
}
/** The whole request, which other options override. Comes first. */
export const data = {
  data: {
    type: 'string',
    value: 'JSON',
    members: ['data'],
    part: dataOf,
    help: 'other fields of the API request, as a JSON object, @FILE or -'
  }
} as const

/** Options of the call rather than of its request. */
export const ifVersion = { 'if-version': { type: 'string', value: 'N', help: 'only if the cue still has this version' } } as const
export const idempotency = {
  'idempotency-key': { type: 'string', value: 'KEY', help: 'idempotency key: repeating the command within 24 hours has no further effect' }
} as const
