/**
 * An array as PostgreSQL's input text. Instants are in UTC, which is several times faster than pg's local time. Columns of a batch often repeat
 * a value, whose text is made once. @throws TypeError
 */
export const arrayText = (values: readonly unknown[]): string => {
  if (values.length === 0) return '{}'
  let last = values[0]
  let lastText = elementText(last)
  let text = `{${lastText}`
  for (let n = 1; n < values.length; n++) {
    const value = values[n]
    if (!isSame(value, last)) {
      last = value
      lastText = elementText(value)
    }
    text += `,${lastText}`
  }
  return `${text}}`
}

const isSame = (a: unknown, b: unknown) => a === b || (a instanceof Date && b instanceof Date && a.getTime() === b.getTime())

const elementText = (value: unknown): string => {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`
  if (value instanceof Date) return value.toISOString()
  if (Buffer.isBuffer(value)) return `"\\\\x${value.toString('hex')}"`
  if (typeof value === 'object') throw new TypeError('an array for PostgreSQL holds texts, numbers, booleans, instants or bytes')
  return String(value)
}
