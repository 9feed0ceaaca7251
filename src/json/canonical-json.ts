/**
 * Canonical JSON: text that Python's `json.dumps(json.loads(text), sort_keys=True)` returns unchanged. Numbers that a double cannot represent
 * keep their digits.
 */
export type JsonFault = 'malformed' | 'too_deep' | 'nul' | 'lone_surrogate' | 'number_too_large'

/** A text is not JSON, or JSON that this service doesn't accept. */
export class JsonError extends Error {
  override name = 'JsonError'
  readonly reason: JsonFault

  constructor(reason: JsonFault, message: string) {
    super(message)
    this.reason = reason
  }
}

/** Maximum nesting of a payload: `[[1]]` has two levels, `1` none. */
export const MAX_LEVELS = 64

/** A JSON value as canonical text. Response schemas with `AnyJson` insert that text; nothing else can serialize it. */
export class Json {
  /** Canonical text, printable ASCII only: its length is its size in bytes. */
  readonly text: string
  /** Size of the received JSON in UTF-8, without whitespace between tokens; of the canonical text if it came from the database. */
  readonly bytes: number
  /** The string member `task` of a received object, which is matched with workers' tasks. */
  readonly task: string | null

  constructor(text: string, bytes = text.length, task: string | null = null) {
    this.text = text
    this.bytes = bytes
    this.task = task
  }

  /** The JavaScript value, with numbers as doubles. */
  get value(): unknown {
    return JSON.parse(this.text)
  }

  toJSON(): never {
    throw new Error('free JSON is written by the serializer of responses only')
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Like `JSON.stringify`, but inserts the text of `Json` values without parsing it. */
export const splice = (value: unknown): string => {
  if (value instanceof Json) return value.text
  if (Array.isArray(value)) return `[${value.map(splice)}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${splice(member)}`)}}`
}

/** The members that `split` keeps as text. */
export type Free = {
  names: readonly string[]
  /** Maximum depth of the objects whose members are kept; 0 is the outermost object. */
  depth?: number
  /** Keeps compact text instead of the canonical text, for members that are read again later. */
  asWritten?: boolean
}

type Kept = { text: string; bytes: number; task: string | null }
/** A JSON text whose free members are replaced by strings that no accepted text contains: NUL and the index in `kept`. */
export type Split = { rest: string; kept: Kept[] }

/**
 * Takes free members out of a JSON text, so that the rest can be parsed without them.
 *
 * @param levels maximum nesting of a member
 * @throws JsonError
 */
export const split = (body: string | Uint8Array, free: Free, levels = MAX_LEVELS): Split =>
  bounded(levels, () => splitValue(parseExactly(decode(body)), free, levels))

/** Splits at most `most` elements of a list. @throws JsonError */
export const splitList = (text: string, most: number, free: Free): Split[] =>
  bounded(MAX_LEVELS, () => (parseExactly(text) as unknown[]).slice(0, most).map(element => splitValue(element, free, MAX_LEVELS)))

const splitValue = (value: unknown, { names, depth = 0, asWritten = false }: Free, levels: number): Split => {
  const kept: Kept[] = []
  const keep = (name: string, member: unknown, level: number): string | undefined => {
    if (level > depth || !names.includes(name)) return undefined
    const canonical = keptOf(member, level, levels)
    kept.push(asWritten ? { ...canonical, text: JSON.stringify(member) } : canonical)
    return `"\\u0000${kept.length - 1}"`
  }
  return { rest: write(value, isObject(value) ? 0 : 1, levels, names.length > 0 ? keep : undefined), kept }
}

const keptOf = (value: unknown, level = 0, levels = MAX_LEVELS): Kept => {
  const text = write(value, level + 1, levels)
  const { task } = (value ?? {}) as { task?: unknown }
  return { text, bytes: Buffer.byteLength(JSON.stringify(value)), task: typeof task === 'string' ? task : null }
}

/** Parses the result of `split`, with a `Json` for each free member. */
export const unite = ({ rest, kept }: Split): unknown => {
  const value: unknown = JSON.parse(rest)
  return kept.length === 0 ? value : withKept(value, kept)
}

/** Puts `kept` in its places: done by `JSON.parse`, as its reviver, it would take five times as long. */
const withKept = (value: unknown, kept: readonly Kept[]): unknown => {
  if (typeof value === 'string' && value.charCodeAt(0) === 0) {
    const { text, bytes, task } = kept[Number(value.slice(1))]!
    return new Json(text, bytes, task)
  }
  if (typeof value !== 'object' || value === null) return value
  const members = value as Record<string, unknown>
  for (const name of Object.keys(members)) members[name] = withKept(members[name], kept)
  return value
}

/** Converts a JSON text to its canonical form. @throws JsonError */
export const canonicalJson = (text: string | Uint8Array): string =>
  bounded(MAX_LEVELS, () => write(parseExactly(decode(text)), 1, MAX_LEVELS))

/** Merges two canonical objects, one level deep; `override` wins. Unless both are objects, the result is `override`. */
export const mergeJson = (base: string, override: string): Kept => {
  const above = parseExactly(override)
  return keptOf(base[0] === '{' && override[0] === '{' ? { ...(parseExactly(base) as object), ...(above as object) } : above)
}

/**
 * Parses a JSON text. Numbers whose digits JavaScript would change become raw JSON, which `JSON.stringify` writes unchanged.
 *
 * @throws JsonError
 */
export const parseExactly = (text: string): unknown => {
  try {
    // A reviver makes parsing seven times slower, and few texts contain such numbers.
    return /[\d.]{16}|\.0|\de/i.test(text) ? JSON.parse(text, keepLiteral) : JSON.parse(text)
  } catch (error) {
    throw error instanceof SyntaxError ? new JsonError('malformed', error.message) : error
  }
}

export const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON: (literal: string) => unknown
  isRawJSON?: (value: unknown) => value is { rawJSON: string }
}

/** Before Node 22, there is no context. */
const keepLiteral = (_key: string, value: unknown, context?: { source: string }): unknown =>
  typeof value === 'number' && context && String(value) !== context.source ? rawJSON(context.source) : value

/** Recursion over a text that is nested too deeply overflows the stack at some point, if not the limit. */
const bounded = <T>(levels: number, work: () => T): T => {
  try {
    return work()
  } catch (error) {
    throw error instanceof RangeError ? tooDeep(levels) : error
  }
}

const tooDeep = (levels: number) => new JsonError('too_deep', `nested deeper than ${levels} levels`)

/** Returns the text that replaces a member of an object at a level; undefined to write it as it is. */
type Keep = (name: string, member: unknown, level: number) => string | undefined

/** Writes a value in canonical form. Recursive, so the limit on levels also protects the stack. */
const write = (value: unknown, level: number, levels: number, keep?: Keep): string => {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : float(value)
  if (typeof value !== 'object' || value === null) return String(value)
  if (isRawJSON?.(value)) return literal(value.rawJSON)
  if (level > levels) throw tooDeep(levels)
  if (Array.isArray(value)) return `[${value.map(element => write(element, level + 1, levels, keep)).join(', ')}]`
  const members = value as Record<string, unknown>
  const texts = sorted(Object.keys(members)).map(
    name => `${quote(name)}: ${keep?.(name, members[name], level) ?? write(members[name], level + 1, levels, keep)}`
  )
  return `{${texts.join(', ')}}`
}

/** A number whose digits count. */
const literal = (source: string): string => {
  if (/^-?\d+$/.test(source)) return source === '-0' ? '0' : source
  const value = Number(source)
  if (!Number.isFinite(value)) throw new JsonError('number_too_large', 'a number is out of range for a double')
  return float(value)
}

const float = (value: number): string => {
  const size = Math.abs(value)
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/(?<=e[+-])\d$/, '0$&')
  if (Number.isInteger(value)) return Object.is(value, -0) ? '-0.0' : `${value}.0`
  return String(value)
}

/** Sorts keys by code point. */
const sorted = (keys: string[]): string[] => {
  if (!keys.some(key => /[\ud800-\udfff]/.test(key))) return keys.sort()
  return keys
    .map(key => ({ key, order: sortable(key) }))
    .sort((a, b) => (a.order < b.order ? -1 : 1))
    .map(({ key }) => key)
}

/**
 * Maps a key to a string that JavaScript, which compares UTF-16 units, sorts as the key sorts by code point: surrogates, which encode the highest
 * code points, change places with U+E000 to U+FFFF.
 */
const sortable = (key: string): string =>
  key.replace(/[\ud800-\uffff]/g, unit => String.fromCharCode(unit.charCodeAt(0) + (unit < '\ue000' ? 0x2000 : -0x800)))

/** A string as JSON in printable ASCII. */
const quote = (value: string): string => {
  if (value.includes('\0')) throw new JsonError('nul', 'a string contains the NUL character')
  if (!value.isWellFormed()) throw new JsonError('lone_surrogate', 'a string contains an unpaired surrogate')
  return JSON.stringify(value).replace(/[^ -~]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Skips a byte order mark. */
const decode = (body: string | Uint8Array): string => {
  if (typeof body === 'string') return body.replace(/^\ufeff/, '')
  try {
    return utf8.decode(body)
  } catch {
    throw new JsonError('malformed', 'the text is not UTF-8')
  }
}
