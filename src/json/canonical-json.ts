// JSON in canonical form: what `json.dumps(json.loads(text), sort_keys=True)` of Python gives back unchanged.
// The form is made from text to text, because a JavaScript number holds neither long integers nor the difference
// between 1 and 1.0.
import { isUtf8 } from 'node:buffer'
import { JsonError, join, lastOfEach, type Member, quote, Scanner } from './json-scanner.ts'

export { JsonError, type JsonFault } from './json-scanner.ts'

/** How deep a payload may nest: `[[1]]` has two levels, `1` none. */
export const MAX_LEVELS = 64
/** Bytes from which a text may have more than its value needs matter: the most that a payload may have. */
const LARGE = 1024 * 1024

/** A JSON value as its canonical text. Where a response schema says `AnyJson`, that text is spliced in; nothing else may write one. */
export class Json {
  /** Canonical text, printable ASCII only: its length is its size in bytes. */
  readonly text: string
  /** Size of the JSON as it came, in UTF-8 without the blanks between its tokens; of the text where it came from the database. */
  readonly bytes: number
  #task: string | null | undefined

  constructor(text: string, bytes = text.length, task?: string | null) {
    this.text = text
    this.bytes = bytes
    this.#task = task
  }

  /** The plain JavaScript value, with numbers rounded to doubles. */
  get value(): unknown {
    return JSON.parse(this.text)
  }

  get task(): string | null {
    if (this.#task === undefined) this.#task = taskOf(this.text)
    return this.#task
  }

  toJSON(): never {
    throw new Error('free JSON is written by the serializer of responses only')
  }
}

/** What `split` keeps as text. */
export type Free = {
  names: readonly string[]
  /** How deep the objects may lie that have such members; 0 is the outermost object. */
  depth?: number
  /** Kept as it was written, for what is going to be read again. */
  asWritten?: boolean
}

type Kept = { text: string; bytes: number; task: string | null }
/** A JSON text without its free members: in place of each stands a string that no accepted text has, NUL and the index in `kept`. */
export type Split = { rest: string; kept: Kept[] }

/**
 * Takes free members out of a JSON text, so that only what is left is ever parsed.
 *
 * @throws JsonError
 */
export const split = (body: string | Uint8Array, { names, depth = 0, asWritten = false }: Free, levels = MAX_LEVELS): Split => {
  const quoted = new Set(names.map(quote))
  const kept: Kept[] = []
  const keep = (member: Member, scanner: Scanner): string => {
    if (!quoted.has(member.name)) return member.value
    const source = scanner.source(member)
    kept.push(
      asWritten ? { text: source, bytes: source.length, task: null } : keptOf(member.value, Buffer.byteLength(source) - member.blanks)
    )
    return `"\\u0000${kept.length - 1}"`
  }
  const scanner = new Scanner(decode(body), levels, names.length > 0 ? { depth, member: keep } : undefined)
  return { rest: scanner.startsObject() ? join(scanner.outermost()) : scanner.whole(), kept }
}

const keptOf = (text: string, bytes: number): Kept => ({
  text,
  // Canonical text escapes what is not ASCII, and so may the source.
  bytes: bytes > LARGE ? Math.min(bytes, compactBytes(text)) : bytes,
  task: taskOf(text)
})

/** The value of what `split` returned, with `Json` where free members were. */
export const unite = ({ rest, kept }: Split): unknown =>
  kept.length === 0
    ? JSON.parse(rest)
    : JSON.parse(rest, (_, value) => {
        if (typeof value !== 'string' || value.charCodeAt(0) !== 0) return value
        const { text, bytes, task } = kept[Number(value.slice(1))]!
        return new Json(text, bytes, task)
      })

/**
 * Reads a request's body. Members of the outermost object that `raw` names become `Json`, everything else plain values,
 * with numbers as doubles. Of duplicate keys the last one counts; `__proto__` is a member like any other.
 *
 * @param levels how deep a member may nest
 * @throws JsonError
 */
export const readJson = (body: string | Uint8Array, raw: readonly string[] = [], levels = MAX_LEVELS): unknown =>
  unite(split(body, { names: raw }, levels))

/**
 * The canonical form of a JSON text.
 *
 * @throws JsonError
 */
export const canonicalJson = (text: string | Uint8Array, levels = MAX_LEVELS): string => new Scanner(decode(text), levels).whole()

/** Lays the members of one canonical object over another's, one level deep. Unless both are objects, `override` replaces `base`. */
export const canonicalMerge = (base: string, override: string): string => {
  if (base[0] !== '{' || override[0] !== '{') return override
  return join(lastOfEach([...new Scanner(base, Infinity).outermost(), ...new Scanner(override, Infinity).outermost()]))
}

/** `canonicalMerge`, with what is asked of the result. */
export const mergeJson = (base: string, override: string): Kept => {
  const text = canonicalMerge(base, override)
  return keptOf(text, text.length)
}

/** The least bytes that a value of canonical text takes as JSON in UTF-8: without blanks between tokens, and with no needless escape. */
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

/** Of one UTF-16 unit. A surrogate has half of the four bytes of its pair. */
const bytesOf = (unit: number): number => {
  if (unit < 0x20) return 6
  if (unit < 0x80) return 1
  return unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3
}

/** The `task` member of a canonical text when that is an object and the member a string: what workers' handler names are matched with. */
export const taskOf = (text: string): string | null => {
  if (text[0] !== '{' || !text.includes('"task": "')) return null
  const { task } = JSON.parse(text)
  return typeof task === 'string' ? task : null
}

/** The value of a JSON text; numbers that a double does not hold become what `JSON.stringify` writes back as they were. */
export const parseExactly = (text: string): unknown =>
  // A reviver costs seven times the parsing, and few texts hold a number that needs it.
  /\d{16}|\.0|\de/i.test(text) ? JSON.parse(text, keepLiteral) : JSON.parse(text)

const { rawJSON } = JSON as unknown as { rawJSON: (literal: string) => unknown }

const keepLiteral = (_key: string, value: unknown, context?: { source: string }): unknown =>
  typeof value === 'number' && String(value) !== context!.source ? rawJSON(context!.source) : value

const decode = (body: string | Uint8Array): string => {
  if (typeof body === 'string') return body
  if (!isUtf8(body)) throw new JsonError('malformed', 0, 'the text is not UTF-8')
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
}
