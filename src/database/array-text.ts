/** An array as PostgreSQL's input text. Instants are in UTC, which is several times faster than pg's local time. @throws TypeError */
export const arrayText = (values: readonly unknown[]): string => `{${values.map(elementText).join()}}`

const elementText = (value: unknown): string => {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`
  if (value instanceof Date) return value.toISOString()
  if (Buffer.isBuffer(value)) return `"\\\\x${value.toString('hex')}"`
  if (typeof value === 'object') throw new TypeError('an array for PostgreSQL holds texts, numbers, booleans, instants or bytes')
  return String(value)
}
