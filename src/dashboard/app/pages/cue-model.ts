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
  part: 'what' | 'when' | 'rules' | 'after' | 'where' | 'approval' | 'delivery' | 'failures'
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
  /** The value that the service takes if there is none. */
  byDefault?: string | number
  /** When it applies. */
  isUsed?: (draft: Draft) => boolean
  /** The members that it is sent as, with other fields that they are made from. */
  from?: readonly string[]
  members?: (draft: Draft) => Record<string, unknown>
}

const isKind =
  (...kinds: string[]) =>
  (draft: Draft) =>
    kinds.includes(draft['schedule.kind']!)
const [isCron, isEvery, isOnce, isRecurring] = [isKind('cron'), isKind('every'), isKind('at'), isKind('cron', 'every')]
const hasSchedule = isKind('cron', 'every', 'at')
const isFollower = (draft: Draft) => list(draft['after.cues'] ?? '').length > 0
const isWebhook = ({ transport }: Draft) => transport === 'webhook'
const isWorker = ({ transport }: Draft) => transport === 'worker'
const verifications = [{ value: '', label: 'not set' }, ...optionsOf('verificationMode')]

type More = Omit<Field, 'path' | 'label' | 'part' | 'kind'>
const field = (part: Field['part'], path: string, label: string, kind: Kind = 'text', more: More = {}): Field => ({
  part,
  path,
  label,
  kind,
  ...more
})
const kindOptions = [
  { value: 'cron', label: 'Cron' },
  { value: 'every', label: 'Every' },
  { value: 'at', label: 'Once' },
  { value: 'none', label: 'None' }
]
const whenOptions = [
  { value: 'success', label: 'successes' },
  { value: 'verified', label: 'verified successes' },
  { value: 'failure', label: 'failures, once no attempt is left' },
  { value: 'end', label: 'all, however they end' }
]
const modeOptions = [
  { value: 'all', label: 'all of them' },
  { value: 'any', label: 'any of them' }
]
/** Several expressions are a list. */
const cronMembers = (draft: Draft) => {
  const [cron, more] = [draft['schedule.cron']!.trim(), lines(draft['schedule.more_crons'] ?? '')]
  return more.length > 0 ? { 'schedule.crons': [cron, ...more] } : { 'schedule.cron': cron }
}
/** A slot waits only if there is one. */
const kindMembers = (draft: Draft) =>
  draft['schedule.kind'] === 'none' ? { schedule: null, ...(draft['after.wait'] && { 'after.wait': null }) } : {}
const parentMembers = (draft: Draft) => (isFollower(draft) ? { 'after.cues': list(draft['after.cues']!) } : { after: null })
const zoneMembers = (draft: Draft) => ({ 'schedule.timezone': draft['schedule.timezone']?.trim() || 'UTC' })
const modeMembers = ({ 'verification.mode': mode }: Draft) => (mode ? { 'verification.mode': mode } : { verification: null })
const none = () => ({})
const isApproved = ({ approval }: Draft) => approval === 'yes'
/** Other than an empty length, which is the default. */
const NEVER = 'never'
const approvalMembers = (draft: Draft) => {
  const expires = draft['approval.expires']?.trim() || '24h'
  const members = {
    expires: expires === NEVER ? null : expires,
    on_expiry: draft['approval.on_expiry'] || 'skip',
    message: draft['approval.message']?.trim() || null
  }
  return { approval: isApproved(draft) ? members : null }
}
const backoff = defaults.retry_backoff_minutes.join(', ')
const same = (value: string | number): More => ({ initial: String(value), byDefault: value })
const texts = {
  key: 'Your own identifier, unique in the account.',
  every: 'Such as 90s, 45m, 36h or 2d.',
  crons: 'Cron expressions, one per line, up to 9. A time that several of them match is one run.',
  anchor: 'Runs are whole intervals from this time, in your time zone. If empty, from 1 January 1970, UTC.',
  runs: 'The cue then completes. Leave it empty for no limit. Fires and replays do not count.',
  window: 'Spreads load: each run is delayed by up to this duration, such as 30m, or share of the interval, such as 25%.',
  parents:
    'Keys or ids of cues, separated by commas. Without a schedule, the cue runs after them; with one, its slots run only if they have run.',
  within: 'How long a run of theirs counts, from its end or verification.',
  wait: 'How long a slot waits for them. If empty, it does not.',
  calendars: 'Names of calendars, separated by commas. The cue does not run on their dates.',
  headers: 'One per line. Stored values are masked; a mask keeps its value.',
  payload: 'Any JSON, delivered with each execution. For workers, its member "task" names the task.',
  template: 'Names are listed in the guide. Values come from other runs: treat them as untrusted.',
  zone: 'In your time zone.',
  approval: 'It waits until somebody approves or rejects it.',
  expires: `From 1m to 31d, or ${NEVER}.`,
  message: 'Shown with the payload to the person who decides.'
}

export const fields: readonly Field[] = [
  field('what', 'name', 'Name', 'text', { required: true, ...bounds.name, placeholder: 'daily report', autofocus: true, wide: true }),
  field('what', 'description', 'Description', 'text', { maxLength: 2000, wide: true }),
  field('what', 'key', 'Key', 'text', { mono: true, maxLength: 255, hint: texts.key }),
  field('what', 'tags', 'Tags', 'list', { hint: `Up to ${bounds.tags.maxItems}, separated by commas.` }),
  field('when', 'schedule.kind', 'Schedule', 'choice', { isShort: true, initial: 'cron', options: kindOptions, members: kindMembers }),
  field('when', 'schedule.cron', 'Cron expression', 'text', {
    ...{ mono: true, required: true, placeholder: '0 9 * * 1-5', initial: '0 9 * * 1-5' },
    ...{ isUsed: isCron, from: ['schedule.kind', 'schedule.more_crons'], members: cronMembers }
  }),
  field('when', 'schedule.every', 'Interval', 'text', {
    required: true,
    placeholder: '45m',
    hint: texts.every,
    isUsed: isEvery,
    from: ['schedule.kind']
  }),
  field('when', 'schedule.at', 'At', 'instant', { required: true, hint: texts.zone, isUsed: isOnce, from: ['schedule.kind'] }),
  field('when', 'schedule.timezone', 'Time zone', 'text', { initial: 'UTC', members: zoneMembers, isUsed: hasSchedule }),
  field('rules', 'schedule.more_crons', 'More expressions', 'lines', { hint: texts.crons, isUsed: isCron, members: none }),
  field('rules', 'schedule.anchor', 'Counted from', 'instant', { hint: texts.anchor, isUsed: isEvery }),
  field('rules', 'schedule.starts_at', 'Not before', 'instant', { hint: texts.zone, isUsed: isRecurring }),
  field('rules', 'schedule.ends_at', 'Not after', 'instant', { hint: `${texts.zone} The cue then completes.`, isUsed: isRecurring }),
  field('rules', 'schedule.max_runs', 'Number of runs', 'number', { hint: texts.runs, isUsed: isRecurring }),
  field('rules', 'schedule.window', 'Window', 'text', { placeholder: '30m', hint: texts.window, isUsed: isRecurring }),
  field('rules', 'schedule.exclude', 'Exclusions', 'exclusions', { isUsed: isRecurring }),
  field('rules', 'schedule.exclude_calendars', 'Excluded calendars', 'list', {
    wide: true,
    placeholder: 'holidays/uk',
    hint: texts.calendars,
    isUsed: isRecurring
  }),
  field('after', 'after.cues', 'After', 'list', {
    mono: true,
    wide: true,
    placeholder: 'extract, load',
    hint: texts.parents,
    members: parentMembers
  }),
  field('after', 'after.when', 'Which of their runs count', 'choice', { ...same('success'), options: whenOptions, isUsed: isFollower }),
  field('after', 'after.mode', 'How many of them', 'choice', { ...same('all'), options: modeOptions, isUsed: isFollower }),
  field('after', 'after.within', 'Within', 'text', { ...same('24h'), hint: texts.within, isUsed: isFollower }),
  field('after', 'after.wait', 'Wait', 'text', {
    placeholder: '30m',
    hint: texts.wait,
    isUsed: draft => isFollower(draft) && hasSchedule(draft)
  }),
  field('where', 'transport', 'Transport', 'choice', { isShort: true, initial: 'webhook', options: optionsOf('transport') }),
  field('where', 'callback.url', 'Callback URL', 'text', {
    required: true,
    mono: true,
    wide: true,
    placeholder: 'https://example.com/hook',
    isUsed: isWebhook
  }),
  field('where', 'callback.method', 'Method', 'choice', {
    isShort: true,
    initial: defaults.callback_method,
    options: optionsOf('callbackMethod'),
    isUsed: isWebhook
  }),
  field('where', 'callback.headers', 'Headers', 'headers', { placeholder: 'X-Team: reports', hint: texts.headers, isUsed: isWebhook }),
  field('where', 'payload', 'Payload', 'json', { initial: defaults.payload, hint: texts.payload }),
  field('where', 'template', 'Template: replace {{…}} by values of the run', 'check', { hint: texts.template }),
  field('approval', 'approval', 'A person approves each run', 'check', {
    hint: texts.approval,
    from: ['approval.expires', 'approval.on_expiry', 'approval.message'],
    members: approvalMembers
  }),
  field('approval', 'approval.expires', 'Time to decide', 'text', {
    ...{ byDefault: '24h', hint: texts.expires, isUsed: isApproved, members: none }
  }),
  field('approval', 'approval.on_expiry', 'Afterwards', 'choice', {
    ...{ byDefault: 'skip', options: optionsOf('approvalExpiry'), isUsed: isApproved, members: none }
  }),
  field('approval', 'approval.message', 'Message', 'text', {
    ...{ maxLength: 500, wide: true, placeholder: 'Refund these customers?', hint: texts.message, isUsed: isApproved, members: none }
  }),
  field('delivery', 'delivery.timeout_seconds', 'Timeout in seconds', 'number', {
    ...bounds.timeout_seconds,
    byDefault: implied.timeout_seconds,
    isUsed: isWebhook
  }),
  field('delivery', 'delivery.claim_timeout_seconds', 'Seconds to claim', 'number', {
    ...bounds.claim_timeout_seconds,
    byDefault: implied.claim_timeout_seconds,
    isUsed: isWorker
  }),
  field('delivery', 'delivery.outcome_deadline_seconds', 'Seconds to report an outcome', 'number', {
    ...bounds.outcome_deadline_seconds,
    byDefault: implied.outcome_deadline_seconds
  }),
  field('delivery', 'delivery.await_outcome', 'Wait for a reported outcome after a 2xx', 'check', { isUsed: isWebhook }),
  field('delivery', 'retry.max_attempts', 'Attempts', 'number', { ...bounds.retry_max_attempts, ...same(defaults.retry_max_attempts) }),
  field('delivery', 'retry.backoff_minutes', 'Minutes between attempts', 'numbers', { hint: 'Separated by commas.', ...same(backoff) }),
  field('delivery', 'retry.on_worker_failure', 'Retry failures that a worker reports', 'check', { isUsed: isWorker }),
  field('failures', 'verification.mode', 'Verification', 'choice', { options: verifications, members: modeMembers }),
  field('failures', 'catch_up', 'After an outage', 'choice', { ...same(defaults.catch_up), options: optionsOf('catchUp') }),
  field('failures', 'overlap', 'If the previous run has not ended', 'choice', { ...same(defaults.overlap), options: optionsOf('overlap') }),
  field('delivery', 'gate', 'Gate', 'text', { placeholder: 'openai', hint: 'A limit that it shares with other cues.' }),
  field('failures', 'on_failure.pause_after', 'Pause after failures in a row', 'number', {
    ...bounds.on_failure_pause_after,
    hint: 'Leave it empty to never pause.'
  }),
  field('failures', 'alerts.consecutive_failures', 'Alert after failures in a row', 'number', {
    ...bounds.alert_consecutive_failures,
    byDefault: implied.alert_consecutive_failures
  }),
  field('failures', 'alerts.channels', 'Channels of its alerts', 'list', { placeholder: 'ops', hint: 'Empty: the default ones.' }),
  field('failures', 'on_failure.webhook', 'Webhook for failures', 'text', { placeholder: 'https://example.com/failed' }),
  field('failures', 'on_failure.email', 'Email me when an execution fails', 'check', same('yes')),
  field('failures', 'on_failure.pause', 'Pause when an execution fails', 'check')
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
  const { crons, every, at } = (cue.schedule ?? {}) as { crons?: string[]; every?: string; at?: string }
  const texts = fields.map(field => {
    const value = valueAt(cue, field.path)
    return [field.path, value === undefined || value === null ? '' : codecOf(field).text(value as never)]
  })
  return {
    ...Object.fromEntries(texts),
    'schedule.kind': !cue.schedule ? 'none' : every !== undefined ? 'every' : at !== undefined ? 'at' : 'cron',
    ...(cue.approval?.expires === null && { 'approval.expires': NEVER }),
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
