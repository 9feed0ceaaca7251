/** The cues that a cue follows, in requests. SQL replaces their keys by ids. */
import type { Static } from 'typebox'
import { fault, invalid } from '../errors.ts'
import { isLength, lengthOf } from '../schedule/offset.ts'
import type { After, CreateCue } from './schemas.ts'

type Given = NonNullable<CreateCue['after']>

const isWithin = (text: string, least: string, most: string) =>
  isLength(text) && lengthOf(text) >= lengthOf(least) && lengthOf(text) <= lengthOf(most)
const byDefault = { when: 'success', mode: 'all', within: '24h' } as const

/**
 * The column of a request: whole, or the members that change.
 * @throws ApiError validation_error
 */
export const afterOf = (given: Given | null, hasSchedule: boolean, stored?: Static<typeof After> | null): object | null => {
  if (given === null) return null
  // Null restores the default.
  const members = Object.entries(given).map(([name, value]) => [name, value ?? (byDefault as Record<string, unknown>)[name] ?? null])
  const changes: Given = Object.fromEntries(members)
  const all = { ...byDefault, ...stored, ...changes }
  if (!all.cues) throw invalid([{ type: 'missing', loc: ['body', 'after', 'cues'], msg: 'Field required', input: null }])
  if (!isWithin(all.within!, '1s', '31d'))
    throw invalid([fault(['after', 'within'], 'must be a whole number and a unit, such as 30m, 24h or 7d, from 1s to 31d')])
  checkWait(all.wait, hasSchedule)
  return stored ? changes : all
}

/** @throws ApiError validation_error */
export const checkWait = (wait: string | null | undefined, hasSchedule: boolean): void => {
  if (wait == null) return
  if (!isWithin(wait, '0s', '24h')) throw invalid([fault(['after', 'wait'], 'must be a whole number and a unit, such as 30m, at most 24h')])
  if (!hasSchedule) throw invalid([fault(['after', 'wait'], 'is for cues with a schedule: its slots wait; leave it out')])
}
