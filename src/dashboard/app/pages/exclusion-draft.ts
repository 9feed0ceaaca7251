/** Exclusions of a schedule as the form holds them: one row each, as text. */
import type { GivenExclusion } from '../../../schedule/schemas.ts'
import { list, numberOf } from './draft-text.ts'

export type ExclusionDraft = {
  kind: 'dates' | 'range' | 'cron'
  dates: string
  from: string
  to: string
  cron: string
  minutes: string
}

export const emptyExclusion: ExclusionDraft = { kind: 'dates', dates: '', from: '', to: '', cron: '', minutes: '' }

const exclusionDraftOf = ({ dates, from, to, cron, minutes }: GivenExclusion): ExclusionDraft => ({
  kind: dates ? 'dates' : from ? 'range' : 'cron',
  dates: dates?.join(', ') ?? '',
  from: from ?? '',
  to: to ?? '',
  cron: cron ?? '',
  minutes: String(minutes ?? '')
})

/** Undefined while nothing is filled in. */
const exclusionOf = (draft: ExclusionDraft): Record<string, unknown> | undefined => {
  const texts = {
    from: draft.from.trim(),
    to: draft.to.trim(),
    cron: draft.cron.trim(),
    minutes: draft.minutes.trim() && numberOf(draft.minutes)
  }
  const names = draft.kind === 'range' ? (['from', 'to'] as const) : (['cron', 'minutes'] as const)
  const members = names.filter(name => texts[name] !== '').map(name => [name, texts[name]])
  const dates = list(draft.dates)
  if (draft.kind === 'dates') return dates.length > 0 ? { dates } : undefined
  return members.length > 0 ? Object.fromEntries(members) : undefined
}

/** The member `exclude`, without empty rows. */
export const excludeOf = (rows: readonly ExclusionDraft[]): Record<string, unknown>[] =>
  rows.map(exclusionOf).filter(members => members !== undefined)

/** Rows as the text of a draft, and back. */
export const textOfRows = (exclude: GivenExclusion[]): string => JSON.stringify(exclude.map(exclusionDraftOf))
export const rowsOf = (text: string | undefined): ExclusionDraft[] => (text ? JSON.parse(text) : [])

/** The place of a row in `exclude`, as paths of errors name it; undefined for an empty row. */
export const placeOf = (rows: readonly ExclusionDraft[], n: number): number | undefined =>
  exclusionOf(rows[n]!) && excludeOf(rows.slice(0, n)).length

/** In words, one line each. */
export const excludeText = (rows: readonly ExclusionDraft[]): string =>
  rows
    .filter(exclusionOf)
    .map(({ kind, dates, from, to, cron, minutes }) =>
      kind === 'dates' ? dates : kind === 'range' ? `${from} to ${to}` : `${cron} for ${minutes} minutes`
    )
    .join('\n')
