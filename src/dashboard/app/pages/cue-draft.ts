/** What the form of a cue holds, as text, and what it sends: only members that differ from what they were. */
import type { CueDetail } from '../../../client/types.ts'
import { list, numberOf } from './draft-text.ts'
import { excludeText } from './exclusion-draft.ts'
import { type ScheduleDraft, scheduleDraftOf, scheduleFields, scheduleOf } from './schedule-draft.ts'

export type Draft = ScheduleDraft & {
  name: string
  description: string
  key: string
  tags: string
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

export const emptyDraft = (timezone: string): Draft => ({
  name: '',
  description: '',
  key: '',
  tags: '',
  ...scheduleDraftOf({ type: 'recurring', cron: '0 9 * * 1-5', timezone }),
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

export const draftOf = (cue: CueDetail): Draft => ({
  name: cue.name,
  description: cue.description ?? '',
  key: cue.key ?? '',
  tags: cue.tags.join(', '),
  ...scheduleDraftOf(cue.schedule),
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
})

/** The members of the API by the fields of the form that they are made from. */
const members: { name: string; of: (keyof Draft)[]; value: (draft: Draft, first?: Draft) => unknown }[] = [
  { name: 'name', of: ['name'], value: ({ name }) => name.trim() },
  { name: 'description', of: ['description'], value: ({ description }) => description.trim() || null },
  { name: 'key', of: ['key'], value: ({ key }) => key.trim() || null },
  { name: 'tags', of: ['tags'], value: ({ tags }) => list(tags) },
  { name: 'schedule', of: scheduleFields, value: scheduleOf },
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
  return {
    ...Object.fromEntries(wanted.map(({ name, value }) => [name, value(draft, first)])),
    ...(!first && { transport: draft.transport })
  }
}

const text = (draft: Draft, name: keyof Draft): string => {
  const value = draft[name]
  return (typeof value === 'object' ? excludeText(value) : String(value)) || '–'
}

/** Fields, what they were, and what they will be. */
export const changesOf = (first: Draft, draft: Draft): [string, string, string][] =>
  (Object.keys(first) as (keyof Draft)[])
    .map((name): [string, string, string] => [name.replaceAll('_', ' '), text(first, name), text(draft, name)])
    .filter(([, from, into]) => from !== into)
