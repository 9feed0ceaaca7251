/** Text from others as it may be shown on a terminal. */

/** Controls, line and paragraph separators, and characters that change the order of those around them. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g

const short: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
const escaped = (character: string) => short[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Escapes what could start another row, control the terminal or pretend to be other text, as JSON does. `allowed` characters stay. */
export const printable = (text: string, allowed = ''): string =>
  text.replace(unprintable, character => (allowed.includes(character) ? character : escaped(character)))
