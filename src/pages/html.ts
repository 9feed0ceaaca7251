// HTML as text in which nothing goes unescaped by oversight: only what html`…` made is taken as it is.

/** A piece of HTML. `html` makes them; whoever makes one of a text vouches for it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Value = string | number | Html | null | undefined | false | readonly Value[]

/** A template whose values are escaped, unless they are pieces of HTML themselves. Null, undefined and false show nothing. */
export const html = (strings: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(strings.reduce((text, string, i) => text + show(values[i - 1]) + string))

const show = (value: Value): string => {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  return Array.isArray(value) ? value.map(show).join('') : escapeHtml(String(value))
}

/** Text for the inside of an element or of a quoted attribute. */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, character => entities[character]!)

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
