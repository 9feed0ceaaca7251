/**
 * Canonical JSON: text that Python's `json.dumps(json.loads(text), sort_keys=True)` returns unchanged. It is made from text directly, because
 * JavaScript numbers cannot represent long integers or the difference between 1 and 1.0.
 */
import { isUtf8 } from 'node:buffer'
import { JsonError, join, lastOfEach, type Member, Scanner } from './json-scanner.ts'

export { JsonError, type JsonFault } from './json-scanner.ts'

/** Maximum nesting of a payload: `[[1]]` has two levels, `1` none. */
export const MAX_LEVELS = 64
/** The maximum size of a payload. Beyond it, the size is computed exactly, without needless escapes. */
const LARGE = 1024 * 1024

/** A JSON value as canonical text. Response schemas with `AnyJson` insert that text; nothing else can serialize it. */
export class Json {
  /** Canonical text, printable ASCII only: its length is its size in bytes. */
  readonly text: string
  /** Size of the received JSON in UTF-8, without whitespace between tokens; of the canonical text if it came from the database. */
  readonly bytes: number
  #task: string | null | undefined

  constructor(text: string, bytes = text.length, task?: string | null) {
    this.text = text
    this.bytes = bytes
    this.#task = task
  }

  /** The JavaScript value, with numbers as doubles. */
  get value(): unknown {
    return JSON.parse(this.text)
  }

  /** See `taskOf`. */
  get task(): string | null {
    if (this.#task === undefined) this.#task = taskOf(this.text)
    return this.#task
  }

  toJSON(): never {
    throw new Error('free JSON is written by the serializer of responses only')
  }
}

/** The members that `split` keeps as text. */
export type Free = {
  /** In plain characters: none that JSON escapes. */
  names: readonly string[]
  /** Maximum depth of the objects whose members are kept; 0 is the outermost object. */
  depth?: number
  /** Keeps the source text instead of the canonical text, for members that are read again later. */
  asWritten?: boolean
}

type Kept = { text: string; bytes: number; task: string | null }
/** A JSON text whose free members are replaced by strings that no accepted text contains: NUL and the index in `kept`. */
export type Split = { rest: string; kept: Kept[] }

/**
 * Takes free members out of a JSON text, so that only the rest is ever parsed.
 *
 * @throws JsonError
 */
export const split = (body: string | Uint8Array, { names, depth = 0, asWritten = false }: Free, levels = MAX_LEVELS): Split => {
  const kept: Kept[] = []
  const keep = (member: Member, scanner: Scanner): string => {
    if (!names.includes(member.name.slice(1, -1))) return member.value
    const source = scanner.source(member)
    kept.push(
      asWritten ? { text: source, bytes: source.length, task: null } : keptOf(member.value, Buffer.byteLength(source) - member.blanks)
    )
    return `"\\u0000${kept.length - 1}"`
  }
  const scanner = new Scanner(decode(body), levels, names.length > 0 ? { depth, member: keep } : undefined)
  return { rest: scanner.startsObject() ? join(scanner.outermost()) : scanner.whole(), kept }
}

/** Splits at most `most` elements of a list. @throws JsonError */
export const splitList = (text: string, most: number, free: Free): Split[] =>
  new Scanner(text, Infinity).elements(most).map(element => split(element, free))

const keptOf = (text: string, bytes: number): Kept => ({
  text,
  // The source may have needless escapes, like canonical text.
  bytes: bytes > LARGE ? Math.min(bytes, compactBytes(text)) : bytes,
  task: taskOf(text)
})

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

/**
 * Parses a request body. The outermost object's members named in `raw` become `Json`, everything else plain values with numbers as doubles.
 * The last of duplicate keys counts; `__proto__` is a member like any other.
 *
 * @param levels maximum nesting of a member
 * @throws JsonError
 */
export const readJson = (body: string | Uint8Array, raw: readonly string[] = [], levels = MAX_LEVELS): unknown =>
  unite(split(body, { names: raw }, levels))

/** Converts a JSON text to its canonical form. @throws JsonError */
export const canonicalJson = (text: string | Uint8Array, levels = MAX_LEVELS): string => new Scanner(decode(text), levels).whole()

/** Merges two canonical objects, one level deep; `override` wins. Unless both are objects, returns `override`. */
export const canonicalMerge = (base: string, override: string): string => {
  if (base[0] !== '{' || override[0] !== '{') return override
  return join(lastOfEach([...new Scanner(base, Infinity).outermost(), ...new Scanner(override, Infinity).outermost()]))
}

/** `canonicalMerge`, with the size and task of the result. */
export const mergeJson = (base: string, override: string): Kept => {
  const text = canonicalMerge(base, override)
  return keptOf(text, text.length)
}

/** The minimum size of a canonical text's value as JSON in UTF-8: without whitespace between tokens and needless escapes. */
export const compactBytes = (text: string): number => {
  let bytes = text.length
  let isInString = false
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === 0x22) isInString = !isInString
    else if (unit === 0x20 && !isInString) bytes--
    else if (unit === 0x5c && text.charCodeAt(++i) === 0x75) {
      bytes -= 6 - bytesOf(Number.parseInt(text.slice(i + 1, i + 5), 16))
      i += 4
    }
  }
  return bytes
}

/** Bytes of one UTF-16 unit. A surrogate has half of the four bytes of its pair. */
const bytesOf = (unit: number): number => {
  if (unit < 0x20) return 6
  if (unit < 0x80) return 1
  return unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3
}

/** The string member `task` of a canonical object, which is matched with workers' tasks; null if there is none. */
export const taskOf = (text: string): string | null => {
  if (text[0] !== '{' || !text.includes('"task": "')) return null
  const { task } = JSON.parse(text)
  return typeof task === 'string' ? task : null
}

/** Parses a JSON text. Numbers that a double cannot represent become raw JSON, which `JSON.stringify` writes unchanged. */
export const parseExactly = (text: string): unknown =>
  // A reviver makes parsing seven times slower, and few texts contain such numbers.
  /\d{16}|\.0|\de/i.test(text) ? JSON.parse(text, keepLiteral) : JSON.parse(text)

const { rawJSON } = JSON as unknown as { rawJSON: (literal: string) => unknown }

const keepLiteral = (_key: string, value: unknown, context?: { source: string }): unknown =>
  typeof value === 'number' && String(value) !== context!.source ? rawJSON(context!.source) : value

const decode = (body: string | Uint8Array): string => {
  if (typeof body === 'string') return body
  if (!isUtf8(body)) throw new JsonError('malformed', 0, 'the text is not UTF-8')
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
}
