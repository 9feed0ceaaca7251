/** The fields of a cue. Forms, details, differences and requests are made from this table; another field with one value is another line. */
import type { CueDetail } from '../../../client/types.ts'
import { bounds, defaults, implied } from '../../../cues/columns.ts'
import { type Option, optionsOf } from '../labels.ts'
import { instantOf, lines, list, localText, numberOf } from './draft-text.ts'
import { excludeOf, excludeText, rowsOf, textOfRows } from './exclusion-draft.ts'

/** Fields as text, by their paths. */
export type Draft = Readonly<Record<string, string>>
type Kind = 'text' | 'number' | 'list' | 'numbers' | 'instant' | 'check' | 'choice' | 'headers' | 'exclusions' | 'json' | 'lines'
export type Field = {
  /** The member of the API, with the objects it is in: `retry.max_attempts`. */
  path: string
  label: string
  part: 'what' | 'when' | 'rules' | 'where' | 'delivery' | 'failures'
  kind?: Kind
  hint?: string
  options?: readonly Option[]
  placeholder?: string
  required?: boolean
  maxLength?: number
  mono?: boolean
  autofocus?: boolean
  /** Side by side, not in a list. */
  isShort?: boolean
  wide?: boolean
  minimum?: number
  maximum?: number
  /** The text in the form of a new cue. */
  initial?: string
  /** What the service takes if there is no value. */
  byDefault?: string | number
  /** When it applies. */
  isUsed?: (draft: Draft) => boolean
  /** The members that it is sent as, with other fields that they are made from. */
  from?: readonly string[]
  members?: (draft: Draft) => Record<string, unknown>
}

const isKind = (draft: Draft, ...kinds: string[]) => kinds.includes(draft['schedule.kind']!)
const isRecurring = (draft: Draft) => isKind(draft, 'cron', 'every')
const isWebhook = ({ transport }: Draft) => transport === 'webhook'
const isWorker = ({ transport }: Draft) => transport === 'worker'
const zoneHint = 'In your time zone.'
const unset = { value: '', label: 'not set' }

export const fields: readonly Field[] = [
  { path: 'name', label: 'Name', part: 'what', required: true, ...bounds.name, placeholder: 'daily report', autofocus: true, wide: true },
  { path: 'description', label: 'Description', part: 'what', maxLength: 2000, wide: true },
  { path: 'key', label: 'Key', part: 'what', mono: true, maxLength: 255, hint: 'Your own identifier, unique in the account.' },
  { path: 'tags', label: 'Tags', part: 'what', kind: 'list', hint: `Up to ${bounds.tags.maxItems}, separated by commas.` },
  {
    path: 'schedule.kind',
    label: 'Schedule',
    part: 'when',
    kind: 'choice',
    isShort: true,
    initial: 'cron',
    options: [
      { value: 'cron', label: 'Cron' },
      { value: 'every', label: 'Every' },
      { value: 'at', label: 'Once' }
    ],
    members: () => ({})
  },
  {
    path: 'schedule.cron',
    label: 'Cron expression',
    part: 'when',
    mono: true,
    required: true,
    placeholder: '0 9 * * 1-5',
    initial: '0 9 * * 1-5',
    isUsed: draft => isKind(draft, 'cron'),
    from: ['schedule.kind', 'schedule.more_crons'],
    members: draft => {
      const [cron, more] = [draft['schedule.cron']!.trim(), lines(draft['schedule.more_crons'] ?? '')]
      return more.length > 0 ? { 'schedule.crons': [cron, ...more] } : { 'schedule.cron': cron }
    }
  },
  {
    path: 'schedule.every',
    label: 'Interval',
    part: 'when',
    required: true,
    placeholder: '45m',
    hint: 'Such as 90s, 45m, 36h or 2d.',
    isUsed: draft => isKind(draft, 'every'),
    from: ['schedule.kind']
  },
  {
    path: 'schedule.at',
    label: 'At',
    part: 'when',
    kind: 'instant',
    required: true,
    hint: zoneHint,
    isUsed: draft => isKind(draft, 'at'),
    from: ['schedule.kind']
  },
  {
    path: 'schedule.timezone',
    label: 'Time zone',
    part: 'when',
    initial: 'UTC',
    members: draft => ({ 'schedule.timezone': draft['schedule.timezone']?.trim() || 'UTC' })
  },
  {
    path: 'schedule.more_crons',
    label: 'More expressions',
    part: 'rules',
    kind: 'lines',
    hint: 'Cron expressions, one per line, up to 9. A time that several of them match is one run.',
    isUsed: draft => isKind(draft, 'cron'),
    members: () => ({})
  },
  {
    path: 'schedule.anchor',
    label: 'Counted from',
    part: 'rules',
    kind: 'instant',
    hint: 'Runs are whole intervals from this time, in your time zone. If empty, from 1 January 1970, UTC.',
    isUsed: draft => isKind(draft, 'every')
  },
  { path: 'schedule.starts_at', label: 'Not before', part: 'rules', kind: 'instant', hint: zoneHint, isUsed: isRecurring },
  {
    path: 'schedule.ends_at',
    label: 'Not after',
    part: 'rules',
    kind: 'instant',
    hint: `${zoneHint} The cue then completes.`,
    isUsed: isRecurring
  },
  {
    path: 'schedule.max_runs',
    label: 'Number of runs',
    part: 'rules',
    kind: 'number',
    hint: 'The cue then completes. Leave it empty for no limit. Fires and replays do not count.',
    isUsed: isRecurring
  },
  {
    path: 'schedule.window',
    label: 'Window',
    part: 'rules',
    placeholder: '30m',
    hint: 'Spreads load: each run is delayed by up to this duration, such as 30m, or share of the interval, such as 25%.',
    isUsed: isRecurring
  },
  { path: 'schedule.exclude', label: 'Exclusions', part: 'rules', kind: 'exclusions', isUsed: isRecurring },
  {
    path: 'schedule.exclude_calendars',
    label: 'Excluded calendars',
    part: 'rules',
    kind: 'list',
    wide: true,
    placeholder: 'holidays/uk',
    hint: 'Names of calendars, separated by commas. The cue does not run on their dates.',
    isUsed: isRecurring
  },
  {
    path: 'transport',
    label: 'Transport',
    part: 'where',
    kind: 'choice',
    isShort: true,
    initial: 'webhook',
    options: optionsOf('transport')
  },
  {
    path: 'callback.url',
    label: 'Callback URL',
    part: 'where',
    required: true,
    mono: true,
    wide: true,
    placeholder: 'https://example.com/hook',
    isUsed: isWebhook
  },
  {
    path: 'callback.method',
    label: 'Method',
    part: 'where',
    kind: 'choice',
    isShort: true,
    initial: defaults.callback_method,
    options: optionsOf('callbackMethod'),
    isUsed: isWebhook
  },
  {
    path: 'callback.headers',
    label: 'Headers',
    part: 'where',
    kind: 'headers',
    placeholder: 'X-Team: reports',
    hint: 'One per line. Stored values are masked; a mask keeps its value.',
    isUsed: isWebhook
  },
  {
    path: 'payload',
    label: 'Payload',
    part: 'where',
    kind: 'json',
    initial: defaults.payload,
    hint: 'Any JSON, delivered with each execution. For workers, its member "task" names the task.'
  },
  {
    path: 'delivery.timeout_seconds',
    label: 'Timeout in seconds',
    part: 'delivery',
    kind: 'number',
    ...bounds.timeout_seconds,
    byDefault: implied.timeout_seconds,
    isUsed: isWebhook
  },
  {
    path: 'delivery.claim_timeout_seconds',
    label: 'Seconds to claim',
    part: 'delivery',
    kind: 'number',
    ...bounds.claim_timeout_seconds,
    byDefault: implied.claim_timeout_seconds,
    isUsed: isWorker
  },
  {
    path: 'delivery.outcome_deadline_seconds',
    label: 'Seconds to report an outcome',
    part: 'delivery',
    kind: 'number',
    ...bounds.outcome_deadline_seconds,
    byDefault: implied.outcome_deadline_seconds
  },
  { path: 'delivery.await_outcome', label: 'Wait for a reported outcome after a 2xx', part: 'delivery', kind: 'check', isUsed: isWebhook },
  {
    path: 'retry.max_attempts',
    label: 'Attempts',
    part: 'delivery',
    kind: 'number',
    ...bounds.retry_max_attempts,
    initial: String(defaults.retry_max_attempts),
    byDefault: defaults.retry_max_attempts
  },
  {
    path: 'retry.backoff_minutes',
    label: 'Minutes between attempts',
    part: 'delivery',
    kind: 'numbers',
    hint: 'Separated by commas.',
    initial: defaults.retry_backoff_minutes.join(', '),
    byDefault: defaults.retry_backoff_minutes.join(', ')
  },
  { path: 'retry.on_worker_failure', label: 'Retry failures that a worker reports', part: 'delivery', kind: 'check', isUsed: isWorker },
  {
    path: 'verification.mode',
    label: 'Verification',
    part: 'failures',
    kind: 'choice',
    options: [unset, ...optionsOf('verificationMode')],
    members: draft => (draft['verification.mode'] ? { 'verification.mode': draft['verification.mode'] } : { verification: null })
  },
  {
    path: 'catch_up',
    label: 'After an outage',
    part: 'failures',
    kind: 'choice',
    initial: defaults.catch_up,
    byDefault: defaults.catch_up,
    options: optionsOf('catchUp')
  },
  {
    path: 'overlap',
    label: 'If the previous run has not ended',
    part: 'failures',
    kind: 'choice',
    initial: defaults.overlap,
    byDefault: defaults.overlap,
    options: optionsOf('overlap')
  },
  {
    path: 'on_failure.pause_after',
    label: 'Pause after failures in a row',
    part: 'failures',
    kind: 'number',
    ...bounds.on_failure_pause_after,
    hint: 'Leave it empty to never pause.'
  },
  {
    path: 'alerts.consecutive_failures',
    label: 'Alert after failures in a row',
    part: 'failures',
    kind: 'number',
    ...bounds.alert_consecutive_failures,
    byDefault: implied.alert_consecutive_failures
  },
  { path: 'on_failure.webhook', label: 'Webhook for failures', part: 'failures', placeholder: 'https://example.com/failed' },
  {
    path: 'on_failure.email',
    label: 'Email me when an execution fails',
    part: 'failures',
    kind: 'check',
    initial: 'yes',
    byDefault: 'yes'
  },
  { path: 'on_failure.pause', label: 'Pause when an execution fails', part: 'failures', kind: 'check' }
]

type Codec = { text: (value: never) => string; value: (text: string) => unknown }
const plain: Codec = { text: String, value: text => text.trim() }
const codecs: Record<Kind, Codec> = {
  text: plain,
  choice: plain,
  lines: plain,
  number: { text: String, value: numberOf },
  list: { text: (values: string[]) => values.join(', '), value: list },
  numbers: { text: (values: number[]) => values.join(', '), value: text => list(text).map(numberOf) },
  instant: { text: localText, value: instantOf },
  check: { text: value => (value ? 'yes' : ''), value: text => text === 'yes' },
  headers: {
    text: (headers: object) =>
      Object.entries(headers)
        .map(header => header.join(': '))
        .join('\n'),
    value: text => (text.trim() ? Object.fromEntries(lines(text).map(line => line.split(/:\s*(.*)/s, 2))) : '')
  },
  exclusions: { text: textOfRows, value: text => excludeOf(rowsOf(text)) },
  json: { text: value => JSON.stringify(value, null, 2), value: () => undefined }
}
const codecOf = ({ kind = 'text' }: Field) => codecs[kind]

export const emptyDraft = (timezone: string): Draft => ({
  ...Object.fromEntries(fields.map(({ path, initial = '' }) => [path, initial])),
  'schedule.timezone': timezone
})

const valueAt = (object: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], object)

export const draftOf = (cue: CueDetail): Draft => {
  const { crons, every, at } = cue.schedule as { crons?: string[]; every?: string; at?: string }
  const texts = fields.map(field => {
    const value = valueAt(cue, field.path)
    return [field.path, value === undefined || value === null ? '' : codecOf(field).text(value as never)]
  })
  return {
    ...Object.fromEntries(texts),
    'schedule.kind': every !== undefined ? 'every' : at !== undefined ? 'at' : 'cron',
    ...(crons && { 'schedule.cron': crons[0]!, 'schedule.more_crons': crons.slice(1).join('\n') })
  }
}

/** The members of a field. One that is empty has its default, or null. */
const membersOf = (field: Field, draft: Draft): Record<string, unknown> => {
  if (field.members) return field.members(draft)
  const { value: read } = codecOf(field)
  const value = read(draft[field.path] ?? '')
  const isEmpty = value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  return { [field.path]: !isEmpty ? value : field.byDefault === undefined ? null : read(String(field.byDefault)) }
}

/** The body of a request, without the payload; with `first`, only what has changed. */
export const bodyOf = (draft: Draft, first?: Draft, isIncluded = (_: Field): boolean => true): Record<string, unknown> => {
  const body: Record<string, unknown> = {}
  for (const field of fields) {
    if (field.kind === 'json' || !isIncluded(field) || field.isUsed?.(draft) === false) continue
    const isSame = [field.path, ...(field.from ?? [])].every(path => draft[path] === first?.[path])
    if (first ? isSame : !draft[field.path] && !field.initial) continue
    for (const [path, value] of Object.entries(membersOf(field, draft))) {
      if (value === null && !first) continue
      const [group, member] = path.split('.') as [string, string?]
      body[group] = member ? { ...(body[group] as object), [member]: value } : value
    }
  }
  return body
}

/** The schedule; undefined while it is incomplete. */
export const scheduleOf = (draft: Draft): Record<string, unknown> | undefined =>
  draft[`schedule.${draft['schedule.kind']}`]?.trim()
    ? (bodyOf(draft, undefined, ({ path }) => path.startsWith('schedule.')).schedule as Record<string, unknown>)
    : undefined

/** A field in words. */
export const textOf = ({ path, kind, options }: Field, draft: Draft): string => {
  const text = draft[path] ?? ''
  if (kind === 'check') return text || 'no'
  return kind === 'exclusions' ? excludeText(rowsOf(text)) : (options?.find(({ value }) => value === text)?.label ?? text)
}

/** Fields, what they were, and what they will be. */
export const changesOf = (first: Draft, draft: Draft): [string, string, string][] =>
  fields
    .map((field): [string, string, string] => [field.label, textOf(field, first) || '–', textOf(field, draft) || '–'])
    .filter(([, from, into]) => from !== into)
