// JSON in canonical form: what `json.dumps(json.loads(text), sort_keys=True)` of Python gives back unchanged.
// The form is made from text to text, because a JavaScript number holds neither long integers nor the difference
// between 1 and 1.0.
import { isUtf8 } from 'node:buffer'
import { JsonError, join, lastOfEach, quote, Scanner } from './json-scanner.ts'

export { JsonError, type JsonFault } from './json-scanner.ts'

/** How deep a payload may nest: `[[1]]` has two levels, `1` none. */
export const MAX_LEVELS = 64

/** A JSON value as its canonical text. Answers may carry it as it is: `JSON.stringify` writes every number to the last digit. */
export class Json {
  /** Canonical text, printable ASCII only: its length is its size in bytes. */
  readonly text: string
  /** Size of the JSON as it came, in UTF-8 without the blanks between its tokens; of the text where it came from the database. */
  readonly bytes: number

  constructor(text: string, bytes = text.length) {
    this.text = text
    this.bytes = bytes
  }

  /** The plain JavaScript value, with numbers rounded to doubles. */
  get value(): unknown {
    return JSON.parse(this.text)
  }

  get task(): string | null {
    return taskOf(this.text)
  }

  toJSON(): unknown {
    return parseExactly(this.text)
  }
}

/**
 * Reads a request's body. Members of the outermost object that `raw` names become `Json`, everything else plain values,
 * with numbers as doubles. Of duplicate keys the last one counts; `__proto__` is a member like any other.
 *
 * @param levels how deep a member may nest
 * @throws JsonError
 */
export const readJson = (body: string | Uint8Array, raw: readonly string[] = [], levels = MAX_LEVELS): unknown => {
  const scanner = new Scanner(decode(body), levels)
  if (!scanner.startsObject()) return JSON.parse(scanner.whole())
  const members = scanner.outermost()
  const names = raw.map(quote)
  const value = JSON.parse(join(members.filter(({ name }) => !names.includes(name))))
  for (const member of members) {
    const i = names.indexOf(member.name)
    if (i >= 0) value[raw[i]!] = new Json(member.value, scanner.size(member))
  }
  return value
}

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
