/** A schedule as the form holds it, as text, and as the API takes it. */
import type { CueDetail } from '../../../client/types.ts'
import { instantOf, lines, list, localText, numberOf } from './draft-text.ts'
import { type ExclusionDraft, excludeOf, exclusionDraftOf } from './exclusion-draft.ts'

export type ScheduleDraft = {
  kind: 'cron' | 'every' | 'at'
  cron: string
  /** Further expressions, one per line. */
  more_crons: string
  every: string
  anchor: string
  at: string
  timezone: string
  starts_at: string
  ends_at: string
  max_runs: string
  window: string
  exclude: readonly ExclusionDraft[]
  exclude_calendars: string
}

export const scheduleDraftOf = (schedule: Schedule): ScheduleDraft => {
  const { cron, crons, every, anchor, at, timezone, starts_at, ends_at, max_runs, window, exclude, exclude_calendars } = schedule as Members
  return {
    kind: every !== undefined ? 'every' : at !== undefined ? 'at' : 'cron',
    cron: cron ?? crons?.[0] ?? '',
    more_crons: crons?.slice(1).join('\n') ?? '',
    every: every ?? '',
    anchor: localText(anchor),
    at: localText(at),
    timezone,
    starts_at: localText(starts_at),
    ends_at: localText(ends_at),
    max_runs: String(max_runs ?? ''),
    window: window ?? '',
    exclude: exclude?.map(exclusionDraftOf) ?? [],
    exclude_calendars: exclude_calendars?.join(', ') ?? ''
  }
}
type Schedule = CueDetail['schedule']
type Members = Partial<Omit<Extract<Schedule, { type: 'recurring' }>, 'type'>> & { at?: string; timezone: string }

/** Groups of members by the fields that they are made from; a member is undefined where nothing is filled in. */
type Group = {
  of: (keyof ScheduleDraft)[]
  kinds?: readonly ScheduleDraft['kind'][]
  members: (draft: ScheduleDraft) => Record<string, unknown>
}
const recurring = ['cron', 'every'] as const
const groups: Group[] = [
  {
    of: ['kind', 'cron', 'more_crons'],
    kinds: ['cron'],
    members: ({ cron, more_crons }) =>
      lines(more_crons).length > 0 ? { crons: [cron.trim(), ...lines(more_crons)] } : { cron: cron.trim() }
  },
  { of: ['kind', 'every'], kinds: ['every'], members: ({ every }) => ({ every: every.trim() }) },
  { of: ['anchor'], kinds: ['every'], members: ({ anchor }) => ({ anchor: instantOf(anchor) }) },
  { of: ['kind', 'at'], kinds: ['at'], members: ({ at }) => ({ at: instantOf(at) }) },
  { of: ['timezone'], members: ({ timezone }) => ({ timezone: timezone.trim() || 'UTC' }) },
  { of: ['starts_at'], kinds: recurring, members: ({ starts_at }) => ({ starts_at: instantOf(starts_at) }) },
  { of: ['ends_at'], kinds: recurring, members: ({ ends_at }) => ({ ends_at: instantOf(ends_at) }) },
  { of: ['max_runs'], kinds: recurring, members: ({ max_runs }) => ({ max_runs: max_runs.trim() ? numberOf(max_runs) : undefined }) },
  { of: ['window'], kinds: recurring, members: ({ window }) => ({ window: window.trim() || undefined }) },
  { of: ['exclude'], kinds: recurring, members: ({ exclude }) => ({ exclude: unlessEmpty(excludeOf(exclude)) }) },
  {
    of: ['exclude_calendars'],
    kinds: recurring,
    members: ({ exclude_calendars }) => ({ exclude_calendars: unlessEmpty(list(exclude_calendars)) })
  }
]
const unlessEmpty = <T>(values: T[]) => (values.length > 0 ? values : undefined)

export const scheduleFields = [...new Set(groups.flatMap(({ of }) => of))]

/** The schedule; undefined while it is incomplete. With `first`, only members that have changed, and null for those to remove. */
export const scheduleOf = (draft: ScheduleDraft, first?: ScheduleDraft): Record<string, unknown> | undefined => {
  if (!draft[draft.kind].trim()) return undefined
  const wanted = groups.filter(
    ({ kinds, of }) => (kinds?.includes(draft.kind) ?? true) && (!first || of.some(name => first[name] !== draft[name]))
  )
  const members = wanted.flatMap(group => Object.entries(group.members(draft)))
  return Object.fromEntries(members.flatMap(([name, value]) => (value !== undefined ? [[name, value]] : first ? [[name, null]] : [])))
}
