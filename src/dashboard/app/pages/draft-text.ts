/** Values of the API from the text of fields, and back. What is not valid stays text, so that the service says what is wrong with it. */
const parts = (text: string, separator: string): string[] =>
  text
    .split(separator)
    .map(part => part.trim())
    .filter(Boolean)

export const list = (text: string): string[] => parts(text, ',')
export const lines = (text: string): string[] => parts(text, '\n')

export const numberOf = (text: string): number | string => (Number.isFinite(Number(text)) && text.trim() !== '' ? Number(text) : text)

/** An instant from a local time of this computer; undefined if there is none. */
export const instantOf = (text: string): string | undefined => {
  if (!text) return undefined
  const date = new Date(text)
  return Number.isNaN(+date) ? text : date.toISOString()
}

/** Local times get the browser's picker; instants with an offset stay text. */
export const pickerOf = (point: string) => (/([Zz]|[+-]\d\d:\d\d)$/.test(point) ? 'text' : 'datetime-local')

/** A local time of this computer, with seconds if it has some. */
export const localText = (iso: string): string => {
  const date = new Date(iso)
  return new Date(+date - date.getTimezoneOffset() * 60_000).toISOString().replace(/(:00)?(\.000)?Z$/, '')
}
