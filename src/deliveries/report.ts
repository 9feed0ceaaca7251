/** Reports of outcomes: the limits of their members, and the report that a response contains. Pure. */
import { constants } from '../catalog.ts'
import { amountText } from '../costs/amounts.ts'
import { canonicalJson, isObject, isRawJSON, JsonError, parseExactly } from '../json/canonical-json.ts'
import { maskSecrets } from './mask-secrets.ts'

/** Maximum characters of a report's texts. */
export const textLengths = {
  result: 2000,
  error: 2000,
  external_id: 255,
  result_url: 2048,
  result_ref: 255,
  result_type: 50,
  summary: 500
}
const jsonLimits = {
  artifacts: { shape: 'list', bytes: constants.artifactsBytes },
  metadata: { shape: 'object', bytes: constants.metadataBytes }
}

/** Removes NUL, which PostgreSQL cannot store, and replaces halves of surrogate pairs. */
export const clean = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '') : text).toWellFormed()

/** Returns null for a blank text, so that it doesn't overwrite anything. */
export const filled = (text: string | null | undefined): string | null => (text?.trim() ? text : null)

/** `report`: a JSON object. `omitted`: members that a report would refuse, with the reasons, separated by commas. */
export type ReportInResponse = { report: string; omitted: string | null }

/** Returns the report in a response, a JSON object with a boolean `success`; null if there is none. `secrets` are masked in it. */
export const reportIn = (answer: string | null, secrets: readonly string[]): ReportInResponse | null => {
  if (!answer?.includes('"success"')) return null
  const members = membersOf(answer)
  if (typeof members?.success !== 'boolean') return null
  const kept = [`"success":${members.success}`]
  const omitted: string[] = []
  const keep = (name: string, take: (value: unknown) => string | null) => {
    const value = members[name]
    if (value === undefined || value === null) return
    try {
      const text = take(value)
      if (text !== null) kept.push(`"${name}":${text}`)
    } catch (error) {
      omitted.push(`${name} (${(error as Error).message})`)
    }
  }
  for (const name in textLengths) keep(name, value => textOf(name as keyof typeof textLengths, value, secrets))
  keep('costs', value => costsOf(value, secrets))
  for (const name in jsonLimits) keep(name, value => jsonOf(name as keyof typeof jsonLimits, value, secrets))
  return { report: `{${kept}}`, omitted: omitted.length > 0 ? omitted.join(', ') : null }
}

const membersOf = (answer: string): Record<string, unknown> | null => {
  // Only the second can read a text that is nested very deeply.
  for (const parse of [parseExactly, JSON.parse]) {
    try {
      return parse(answer) as Record<string, unknown> | null
    } catch {}
  }
  return null
}

/** @throws Error with the reason if a report would refuse the member */
const textOf = (name: keyof typeof textLengths, value: unknown, secrets: readonly string[]): string | null => {
  if (typeof value !== 'string') throw new Error('not a string')
  const text = maskSecrets(clean(value), secrets)
  const most = textLengths[name]
  if (text.length > most && Array.from(text).length > most) throw new Error(`over ${most} characters`)
  const isFree = name === 'result' || name === 'error'
  return isFree || filled(text) !== null ? JSON.stringify(text) : null
}

const amountPattern = /^\d{1,15}([.]\d{1,9})?$/

/** @throws Error with the reason if a report would refuse the member */
const costsOf = (value: unknown, secrets: readonly string[]): string => {
  if (!Array.isArray(value) || value.length > 10) throw new Error('not a list of at most 10')
  const costs = value.map(item => {
    const { amount, unit } = (isObject(item) ? item : {}) as { amount?: unknown; unit?: unknown }
    const text = typeof amount === 'number' ? amountText(amount) : isRawJSON?.(amount) ? amount.rawJSON : amount
    if (typeof text !== 'string' || !amountPattern.test(text)) throw new Error('an amount is not a number of at most nine decimal places')
    const name = typeof unit === 'string' ? maskSecrets(clean(unit), secrets) : ''
    if (name === '' || Array.from(name).length > 32) throw new Error('a unit does not have 1 to 32 characters')
    return { amount: text, unit: name }
  })
  return JSON.stringify(costs)
}

/** @throws Error with the reason if a report would refuse the member */
const jsonOf = (name: keyof typeof jsonLimits, value: unknown, secrets: readonly string[]): string => {
  const { shape, bytes } = jsonLimits[name]
  if (typeof value !== 'object' || Array.isArray(value) !== (shape === 'list')) throw new Error(`not a JSON ${shape}`)
  const [text, size] = canonical(value)
  if (size > bytes) throw new Error(`over ${bytes / 1024} KB`)
  const masked = maskSecrets(text, secrets, text.length)
  try {
    return masked === text ? text : canonicalJson(masked)
  } catch {
    // As a number, or across values.
    throw new Error('contains a header of the request')
  }
}

const canonical = (value: unknown): [text: string, bytes: number] => {
  try {
    const source = JSON.stringify(value)
    return [canonicalJson(source), Buffer.byteLength(source)]
  } catch (error) {
    throw error instanceof JsonError ? error : new Error('nested too deeply')
  }
}
