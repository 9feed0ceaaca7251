/** Texts in which `{{name}}` stands for a value that is fixed when an execution is created. Pure. */
import { canonicalJson, parseExactly } from '../json/canonical-json.ts'

/** A text, or the name in a placeholder. */
export type Part = string | { name: string }
/** Values by name. Those that are missing are null. */
export type Values = Record<string, unknown>

/** Splits a text at its placeholders. `{{{{` is the text `{{`, and so is `{{` without an end. */
export const parse = (text: string): Part[] => {
  const parts: Part[] = []
  let literal = ''
  let at = 0
  for (;;) {
    const open = text.indexOf('{{', at)
    if (open === -1) break
    literal += text.slice(at, open)
    at = open + 2
    if (text.startsWith('{{', at)) {
      literal += '{{'
      at += 2
      continue
    }
    const end = text.indexOf('}}', at)
    if (end === -1) {
      // No later one has an end, either.
      literal += `{{${text.slice(at).replaceAll('{{{{', '{{')}`
      at = text.length
      break
    }
    if (literal) parts.push(literal)
    parts.push({ name: text.slice(at, end).replace(/^ +| +$/g, '') })
    literal = ''
    at = end + 2
  }
  literal += text.slice(at)
  if (literal) parts.push(literal)
  return parts
}

export const namesIn = (text: string): string[] => parse(text).flatMap(part => (typeof part === 'string' ? [] : [part.name]))

/** Reads values from the text of a JSON object; numbers keep their digits. */
export const readValues = (text: string): Values => parseExactly(text) as Values

const jsonOf = (value: unknown): string => {
  const text = JSON.stringify(value ?? null)
  try {
    return canonicalJson(text)
  } catch {
    return text // stored by another way than the API, and nested too deeply
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : value == null ? '' : jsonOf(value))

const renderText = (text: string, values: Values, encode: (value: string) => string): string =>
  parse(text)
    .map(part => (typeof part === 'string' ? part : encode(textOf(values[part.name]))))
    .join('')

/** A JSON string with placeholders: of a placeholder alone, the value keeps its type. */
const renderString = (text: string, values: Values): string => {
  const [first, ...rest] = parse(text)
  if (rest.length === 0 && typeof first === 'object') return jsonOf(values[first.name])
  return jsonOf(renderText(text, values, value => value))
}

/** The strings of a JSON text that contain `{{` and are not names of members, and where they begin and end. */
export function* stringsIn(json: string): Generator<{ text: string; start: number; end: number }> {
  // Outside of a string, `{{` is not JSON. Within it, every quote follows an odd number of backslashes.
  const isQuote = (at: number) => {
    let before = at
    while (json[before - 1] === '\\') before--
    return (at - before) % 2 === 0
  }
  for (let open = json.indexOf('{{'); open !== -1; ) {
    let start = json.lastIndexOf('"', open)
    while (start > 0 && !isQuote(start)) start = json.lastIndexOf('"', start - 1)
    let end = json.indexOf('"', open)
    while (end !== -1 && !isQuote(end)) end = json.indexOf('"', end + 1)
    if (start === -1 || end === -1) return
    if (!/^\s*:/.test(json.slice(end + 1, end + 80))) yield { text: JSON.parse(json.slice(start, end + 1)), start, end: end + 1 }
    open = json.indexOf('{{', end)
  }
}

/** Replaces the placeholders in the strings of a payload, but not in the names of its members. */
export const renderPayload = (json: string, values: Values): string => {
  let rendered = ''
  let at = 0
  for (const { text, start, end } of stringsIn(json)) {
    rendered += json.slice(at, start) + renderString(text, values)
    at = end
  }
  return rendered + json.slice(at)
}

/** The query of a URL, behind `?` and before `#`: where it begins and ends. */
export const queryOf = (url: string): [start: number, end: number] => {
  const hash = url.indexOf('#')
  const end = hash === -1 ? url.length : hash
  const start = url.slice(0, end).indexOf('?')
  return [start === -1 ? end : start + 1, end]
}

export const renderUrl = (url: string, values: Values): string => {
  const [start, end] = queryOf(url)
  return url.slice(0, start) + renderText(url.slice(start, end), values, encodeURIComponent) + url.slice(end)
}

/** Everything but printable ASCII, and `%`, is percent-encoded: no value can end a header or begin another one. */
const encodeHeader = (value: string): string => value.toWellFormed().replace(/[^ -$&-~]+/g, encodeURIComponent)

export const renderHeaders = (headers: Record<string, string>, values: Values): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, renderText(value, values, encodeHeader)]))
