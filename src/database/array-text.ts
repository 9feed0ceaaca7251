/** An array as PostgreSQL reads it. Instants in UTC: writing them in local time, as pg does, takes several times as long. */
export const arrayText = (values: readonly unknown[]): string => `{${values.map(elementText).join()}}`

const elementText = (value: unknown): string => {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`
  if (value instanceof Date) return value.toISOString()
  if (Buffer.isBuffer(value)) return `"\\\\x${value.toString('hex')}"`
  if (typeof value === 'object') throw new TypeError('an array for PostgreSQL holds texts, numbers, booleans, instants or bytes')
  return String(value)
}
