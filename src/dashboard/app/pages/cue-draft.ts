/** What the form of a cue holds, as text, and what it sends: only members that differ from what they were. */
import type { CueDetail } from '../../../client/types.ts'
import { localZone } from '../time.ts'

export type Draft = {
  name: string
  description: string
  key: string
  tags: string
  /** `other`: a schedule that the form does not know, which stays as it is. */
  kind: 'cron' | 'every' | 'at' | 'other'
  cron: string
  every: string
  at: string
  timezone: string
  other: object
  transport: 'webhook' | 'worker'
  url: string
  method: string
  payload: string
  attempts: string
  backoff: string
  verification: string
  catch_up: string
  email: boolean
  pause_after: string
  overlap: string
}

export const emptyDraft = (): Draft => ({
  name: '',
  description: '',
  key: '',
  tags: '',
  kind: 'cron',
  cron: '0 9 * * 1-5',
  every: '',
  at: '',
  timezone: localZone,
  other: {},
  transport: 'webhook',
  url: '',
  method: 'POST',
  payload: '{}',
  attempts: '3',
  backoff: '1, 2, 4',
  verification: '',
  catch_up: 'run_once_if_missed',
  email: true,
  pause_after: '',
  overlap: 'allow'
})

const localText = (iso: string): string => {
  const date = new Date(iso)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

export const draftOf = (cue: CueDetail): Draft => {
  const {
    cron,
    every,
    at,
    timezone,
    type: _,
    ...others
  } = cue.schedule as Record<string, unknown> & {
    cron?: string
    every?: string
    at?: string
    timezone: string
  }
  const isKnown = Object.keys(others).length === 0 && (cron ?? every ?? at) !== undefined
  return {
    name: cue.name,
    description: cue.description ?? '',
    key: cue.key ?? '',
    tags: cue.tags.join(', '),
    kind: !isKnown ? 'other' : cron !== undefined ? 'cron' : every !== undefined ? 'every' : 'at',
    cron: cron ?? '',
    every: every ?? '',
    at: at ? localText(at) : '',
    timezone,
    other: cue.schedule,
    transport: cue.transport,
    url: cue.callback.url ?? '',
    method: cue.callback.method,
    payload: JSON.stringify(cue.payload, null, 2),
    attempts: String(cue.retry.max_attempts),
    backoff: cue.retry.backoff_minutes.join(', '),
    verification: cue.verification?.mode ?? '',
    catch_up: cue.catch_up,
    email: cue.on_failure.email,
    pause_after: String(cue.on_failure.pause_after ?? ''),
    overlap: cue.overlap
  }
}

/** Undefined while it is incomplete. */
export const scheduleOf = (draft: Draft): Record<string, unknown> | undefined => {
  if (draft.kind === 'other') return draft.other as Record<string, unknown>
  if (draft.kind === 'every')
    return draft.every.trim() ? { every: draft.every.trim(), timezone: draft.timezone.trim() || 'UTC' } : undefined
  if (draft.kind === 'cron') return draft.cron.trim() ? { cron: draft.cron.trim(), timezone: draft.timezone.trim() || 'UTC' } : undefined
  return draft.at ? { at: new Date(draft.at).toISOString(), timezone: draft.timezone || 'UTC' } : undefined
}

const list = (text: string): string[] =>
  text
    .split(',')
    .map(one => one.trim())
    .filter(Boolean)
/** A number, or the text itself, so that the service says what is wrong with it. */
const numberOf = (text: string): number | string => (Number.isFinite(Number(text)) && text.trim() !== '' ? Number(text) : text)

/** The members of the API by the fields of the form that they are made from. */
const members: { name: string; of: (keyof Draft)[]; value: (draft: Draft) => unknown }[] = [
  { name: 'name', of: ['name'], value: ({ name }) => name.trim() },
  { name: 'description', of: ['description'], value: ({ description }) => description.trim() || null },
  { name: 'key', of: ['key'], value: ({ key }) => key.trim() || null },
  { name: 'tags', of: ['tags'], value: ({ tags }) => list(tags) },
  { name: 'schedule', of: ['kind', 'cron', 'every', 'at', 'timezone'], value: scheduleOf },
  { name: 'callback', of: ['url', 'method'], value: ({ url, method }) => ({ url: url.trim(), method }) },
  {
    name: 'retry',
    of: ['attempts', 'backoff'],
    value: ({ attempts, backoff }) => ({ max_attempts: numberOf(attempts), backoff_minutes: list(backoff).map(numberOf) })
  },
  { name: 'verification', of: ['verification'], value: ({ verification }) => (verification ? { mode: verification } : null) },
  { name: 'catch_up', of: ['catch_up'], value: ({ catch_up }) => catch_up },
  { name: 'overlap', of: ['overlap'], value: ({ overlap }) => overlap },
  {
    name: 'on_failure',
    of: ['email', 'pause_after'],
    value: ({ email, pause_after }) => ({ email, pause_after: pause_after.trim() ? numberOf(pause_after) : null })
  }
]

const differs = (of: (keyof Draft)[], first: Draft, draft: Draft) => of.some(name => first[name] !== draft[name])

/** The body of a request, without the payload; with `first`, only what has changed. */
export const bodyOf = (draft: Draft, first?: Draft): Record<string, unknown> => {
  const wanted = members.filter(
    ({ name, of }) => (name !== 'callback' || draft.transport === 'webhook') && (!first || differs(of, first, draft))
  )
  return { ...Object.fromEntries(wanted.map(({ name, value }) => [name, value(draft)])), ...(!first && { transport: draft.transport }) }
}

const text = (value: unknown): string => (value === '' || value === undefined ? '–' : String(value))

/** Fields, what they were, and what they will be. */
export const changesOf = (first: Draft, draft: Draft): [string, string, string][] =>
  (Object.keys(first) as (keyof Draft)[])
    .filter(name => name !== 'other' && first[name] !== draft[name])
    .map(name => [name.replaceAll('_', ' '), text(first[name]), text(draft[name])])
