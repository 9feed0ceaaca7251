/** Keeps secrets that were sent with a request out of its response as it is stored: some receivers echo what they get. Pure. */
import { constants } from '../catalog.ts'

const { mask } = constants
/** Shorter values are words such as `json`. */
const shortestSecret = 8
/** Maximum characters kept by default, so that a long response costs no more. */
const mostKept = 4000
/** Maximum length of an escape: `&#x0041;`. */
const longestEscape = 8

/** A response with escapes of one kind undone. `starts`: where each character, and the end, are in the response. */
type Reading = { text: string; starts?: Uint32Array }
/** A text that contains a secret, and the number of characters next to it that contain bits of the secret, too. */
type Trace = { text: string; before: number; after: number }

const code = (digits: string, base: number) => String.fromCharCode(Number.parseInt(digits, base))
const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Percent and form encoding, JSON and other languages with a backslash, HTML. */
const escapes: { sign: string; pattern: RegExp; read: (...groups: string[]) => string }[] = [
  { sign: '%', pattern: /%([\da-f]{2})()()/gi, read: hex => code(hex!, 16) },
  {
    sign: '\\',
    pattern: /\\(?:u([\da-f]{4})|x([\da-f]{2})|(.))/gis,
    read: (long, short, character) => (character ? (character === 't' ? '\t' : character) : code((long ?? short)!, 16))
  },
  {
    sign: '&',
    pattern: /&(?:#x([\da-f]{1,4})|#(\d{1,5})|(amp|lt|gt|quot|apos));/gi,
    read: (hex, decimal, name) => (name ? entities[name.toLowerCase()]! : hex ? code(hex, 16) : code(decimal!, 10))
  }
]

/**
 * Returns the beginning of a response with the values of request headers masked, and the credentials in `Bearer …`: as they were sent,
 * and in base64, percent or form encoding, JSON escapes and HTML entities.
 */
export const maskSecrets = (response: string, values: readonly string[], most = mostKept): string => {
  const credentials = values.flatMap(value => [value.trim(), /^\s*[\w-]+ +(\S+)\s*$/.exec(value)?.[1] ?? ''])
  const secrets = [...new Set(credentials)].filter(({ length }) => length >= shortestSecret && length <= 2 * response.length)
  if (secrets.length === 0) return response
  const text = response.slice(0, most + longestEscape * Math.max(...secrets.map(({ length }) => length)))
  const traces = secrets.flatMap(tracesOf)
  // With one more, so that whatever is hidden has an end.
  const hidden = new Uint8Array(text.length + 1)
  for (const reading of readingsOf(text)) for (const trace of traces) hide(hidden, reading, trace)
  const end = text.length < response.length ? most : text.length
  let shown = ''
  for (let at = 0; at < end; ) {
    const from = hidden.subarray(0, end).indexOf(1, at)
    if (from < 0) return shown + text.slice(at, end)
    shown += text.slice(at, from) + mask
    at = hidden.indexOf(0, from)
  }
  return shown
}

const hide = (hidden: Uint8Array, { text, starts }: Reading, { text: sought, before, after }: Trace) => {
  for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + sought.length)) {
    const from = Math.max(0, at - before)
    let to = Math.min(text.length, at + sought.length + after)
    // Padding.
    while (after > 0 && text[to] === '=') to++
    hidden.fill(1, starts ? starts[from] : from, starts ? starts[to] : to)
  }
}

const readingsOf = (text: string): Reading[] => {
  const unescaped = escapes.filter(({ sign }) => text.includes(sign)).map(kind => undo(text, kind))
  const readings: Reading[] = [{ text }, ...unescaped]
  // Base64url differs in two characters.
  const urlSafe = readings.filter(({ text }) => /[-_]/.test(text))
  return [
    ...readings,
    ...urlSafe.map(({ text, starts }) => ({ text: text.replaceAll('-', '+').replaceAll('_', '/'), ...(starts && { starts }) }))
  ]
}

const undo = (text: string, { pattern, read }: (typeof escapes)[number]): Reading => {
  const starts = new Uint32Array(text.length + 1)
  let count = 0
  let end = 0
  const unescaped = text.replace(pattern, (sequence, a, b, c, index) => {
    while (end <= index) starts[count++] = end++
    end = index + sequence.length
    return read(a, b, c)
  })
  while (end <= text.length) starts[count++] = end++
  return { text: unescaped, starts }
}

/** A secret as it was sent, with `+` for a space, and in base64 wherever it begins in a group of three bytes. */
const tracesOf = (secret: string): Trace[] => {
  const encodings = [Buffer.from(secret, 'latin1'), Buffer.from(secret)]
  // Outside ASCII, a receiver may read or write the other of two encodings.
  const plain = [secret, encodings[1]!.toString('latin1'), encodings[0]!.toString()]
  const texts = new Set([...plain, ...plain.map(text => text.replaceAll(' ', '+'))])
  const isAscii = plain[0] === plain[1]
  const traces = [...texts].map(text => ({ text, before: 0, after: 0 }))
  return [...traces, ...encodings.slice(isAscii ? 1 : 0).flatMap(bytes => [0, 1, 2].map(offset => base64Of(bytes, offset)))]
}

/** The characters that only a secret's bytes determine. */
const base64Of = (bytes: Buffer, offset: number): Trace => {
  const bits = (offset + bytes.length) * 8
  const text = Buffer.concat([Buffer.alloc(offset), bytes])
    .toString('base64')
    .slice(Math.ceil((offset * 8) / 6), Math.floor(bits / 6))
  return { text, before: offset > 0 ? 1 : 0, after: bits % 6 > 0 ? 1 : 0 }
}
