/** Cues on the wire. */
import { type Static, type TSchema, type TUnsafe, Type } from 'typebox'
import { enums } from '../catalog.ts'
import { ChannelName } from '../channels/schemas.ts'
import { Execution, GivenOverlap, Outcome, Overlap, Parent } from '../executions/schemas.ts'
import { DeclaredSchedule, GivenSchedule, Instant, ScheduleBody, StrictSchedule } from '../schedule/schemas.ts'
import { AnyJson, CueId, Nullable, orElse, Strict, Tag, Timestamp } from '../schemas.ts'
import { bounds, defaults, implied } from './columns.ts'

const {
  cueStatus: statuses,
  transport: transports,
  callbackMethod: methods,
  catchUp: policies,
  verificationMode: modes,
  pauseCause: causes,
  completion: completions
} = enums

const byDefault = { ...defaults, ...implied }

/** An integer within the bounds of its column. */
const Whole = (column: keyof typeof bounds & keyof typeof byDefault, description = '') =>
  Type.Integer({ ...bounds[column], description: `${description} Default: ${byDefault[column]}.`.trim() })

/** Members stored in a column of the same name, equal in requests and responses. */
export const plain = {
  key: Nullable(Type.String({ ...bounds.key, description: 'Your own name for the cue, unique in the account.' })),
  description: Nullable(Type.String({ maxLength: 2000, description: 'For people.' })),
  tags: Type.Array(Tag, { ...bounds.tags, uniqueItems: true, description: 'Labels to filter by.' }),
  overlap: Overlap('What becomes of a slot while an execution of the cue has not ended.'),
  gate: Nullable(
    Type.String({
      ...bounds.gate,
      description: 'The gate that its executions pass: its key, and behind `#` a part that is counted by itself.'
    })
  ),
  template: Type.Boolean({
    description: 'Whether `{{name}}` stands for a value of the run; see Templates in the guide.'
  })
}
export type Plain = keyof typeof plain
export const plainNames = Object.keys(plain) as Plain[]

const retry = {
  max_attempts: Whole('retry_max_attempts', 'Total attempts, including the first.'),
  backoff_minutes: Type.Array(Type.Number({ minimum: 0, maximum: 1440 }), {
    minItems: 1,
    maxItems: 10,
    description: `Minutes to wait after the first failure, the second, and so on. Default: [${defaults.retry_backoff_minutes.join(', ')}].`
  }),
  on_worker_failure: Type.Boolean({
    description: 'Whether a failure that a worker reports is retried: it can be claimed again after the backoff. Default: false.'
  })
}
const on_failure = {
  email: Type.Boolean({ description: 'Whether to mail the account, at most ten times an hour. Default: true.' }),
  webhook: Nullable(Type.String({ description: 'A URL that gets the webhook `failure`.' })),
  pause: Type.Boolean({ description: 'Whether a recurring cue is paused when an execution fails.' }),
  pause_after: Nullable(
    Type.Integer({
      ...bounds.on_failure_pause_after,
      description:
        'Number of failed scheduled executions in a row after which a recurring cue is paused, with a mail and an alert; a success resets the count. Default: never.'
    })
  )
}
const delivery = {
  timeout_seconds: Whole('timeout_seconds', 'For a whole request.'),
  outcome_deadline_seconds: Whole('outcome_deadline_seconds', 'From the 2xx to the report.'),
  claim_timeout_seconds: Whole('claim_timeout_seconds', 'From being due to a claim; then it is `missed`.'),
  await_outcome: Type.Boolean({
    description:
      "Whether to wait for a reported outcome after a 2xx. Defaults to true if outcome_deadline_seconds is given. A JSON response with a boolean `success` is the whole report; members that a report would refuse are left out, and named in the attempt's `error`."
  })
}
export const After = Type.Object({
  cues: Type.Array(Type.String(), { minItems: 1, maxItems: 20, description: 'The cues that it follows: their keys, or ids.' }),
  when: Type.Enum(['success', 'verified', 'failure', 'end'], {
    description:
      'Which of their runs count: delivered without a reported failure (`success`), with a verified outcome, dead letters (`failure`), or all that end. Default: `success`.'
  }),
  mode: Type.Enum(['all', 'any'], { description: 'Whether it runs after all of them, or after any. Default: `all`.' }),
  within: Type.String({
    maxLength: 10,
    description: 'How long a run counts, from its end or verification: `1s` to `31d`. Default: `24h`.'
  }),
  wait: Type.Optional(
    Type.String({ maxLength: 10, description: 'With a schedule: how long a slot waits for them, at most `24h`. Default: it does not.' })
  )
})
const alerts = {
  consecutive_failures: Whole('alert_consecutive_failures', 'Failures in a row that raise an alert.'),
  missed_window_multiplier: Whole('alert_missed_window_multiplier', 'Gaps between slots that may pass without a success before an alert.'),
  channels: Nullable(
    Type.Array(ChannelName, {
      ...bounds.alert_channels,
      uniqueItems: true,
      description:
        'Names of the channels that get its alerts; `[]`: none. Default: those with `default: true`, also if none of these exists.'
    })
  )
}
const approval = {
  expires: Nullable(
    Type.String({ maxLength: 9, description: 'How long a person may take, from `1m` to `31d`; null: any time. Default: `24h`.' })
  ),
  on_expiry: Type.Enum([...enums.approvalExpiry], { description: 'Then it is `missed` (`skip`), or it runs. Default: `skip`.' }),
  message: Nullable(
    Type.String({ maxLength: 500, description: 'Shown to the person who decides. May have placeholders if the cue is a template.' })
  )
}
const approvalNote = { description: "A person's approval that each execution waits for. Null: none." }
const verification = { mode: Type.Enum([...modes], { description: 'What a reported success needs to be verified.' }) }
const callback = {
  url: Nullable(Type.String({ description: 'Required for webhook cues.' })),
  method: Type.Enum([...methods]),
  headers: Nullable(
    Type.Record(Type.String(), Type.String(), {
      description:
        'At most 20 headers, 8 KB in total. Values are masked in responses; sending a mask back keeps the stored value. Authorization and ' +
        'User-Agent replace the defaults; the execution token is then sent as X-Service-Execution-Token. Content-Type must be a JSON type.'
    })
  )
}

/** The objects of a request: their members, and the prefix of their columns. */
export const groups = {
  callback: { prefix: 'callback_', members: callback },
  retry: { prefix: 'retry_', members: retry },
  on_failure: { prefix: 'on_failure_', members: on_failure },
  delivery: { prefix: '', members: delivery },
  alerts: { prefix: 'alert_', members: alerts },
  verification: { prefix: 'verification_', members: verification }
}
export type Group = keyof typeof groups
export const groupNames = Object.keys(groups) as Group[]
/** The members of each object, with their columns. */
export const membersOf = Object.fromEntries(
  Object.entries(groups).map(([name, { prefix, members }]) => [
    name,
    Object.keys(members).map(member => [member, prefix + member] as const)
  ])
) as Record<Group, (readonly [member: string, column: string])[]>

const optional = <P extends Record<string, TSchema>>(members: P) => Type.Partial(Type.Object(members)).properties
const optionalOrNull = <P extends Record<string, TSchema>>(members: P) => {
  const nullable = Object.fromEntries(Object.entries(members).map(([name, member]) => [name, Nullable(member)]))
  return optional(nullable as { [Name in keyof P]: TUnsafe<Static<P[Name]> | null> })
}

const givenAfter = {
  ...optionalOrNull(Type.Omit(After, ['cues']).properties),
  cues: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { minItems: 1, maxItems: 20 }))
}

/** The members common to both bodies. `object` builds their objects: a new cue drops unknown members, a change rejects them. */
const settings = (object: typeof Strict) => ({
  callback: Type.Optional(Nullable(object(optional(callback)))),
  payload: Type.Optional(AnyJson({ description: `Any JSON up to 1 MiB, delivered with each execution. Default: ${defaults.payload}.` })),
  ...optionalOrNull(plain),
  after: Type.Optional(
    Nullable(
      object(givenAfter, {
        description: 'The cues that it follows. Without a schedule it runs after them; with one, its slots run only if they have run.'
      })
    )
  ),
  retry: Type.Optional(
    Nullable(object(optional({ ...retry, retry_max_attempts: retry.max_attempts, retry_backoff_minutes: retry.backoff_minutes })))
  ),
  on_failure: Type.Optional(Nullable(object(optional(on_failure)))),
  delivery: Type.Optional(Nullable(object(optional(delivery)))),
  alerts: Type.Optional(Nullable(object(optional(alerts)))),
  catch_up: Type.Optional(
    Nullable(
      Type.Enum([...policies, 'replay_all'], {
        description: `Which slots of an outage of the service run afterwards. Default: \`${defaults.catch_up}\`.`
      })
    )
  ),
  verification: Type.Optional(Nullable(object(optional(verification)))),
  approval: Type.Optional(Nullable(object(optional(approval), approvalNote)))
})
const Name = Type.String(bounds.name)

/** Members of a schedule that may also be given beside the others of a cue. */
const short = {
  cron: Type.Optional(Nullable(Type.String({ description: 'Short for `schedule.cron`.' }))),
  crons: Type.Optional({ ...GivenSchedule.properties.crons, description: 'Short for `schedule.crons`.' }),
  every: Type.Optional({ ...GivenSchedule.properties.every, description: 'Short for `schedule.every`.' }),
  at: Type.Optional(Nullable(Instant)),
  timezone: Type.Optional(Nullable(Type.String({ description: 'Short for `schedule.timezone`.' })))
}
export const shortNames = Object.keys(short) as (keyof typeof short)[]
const Lenient = ((properties: Record<string, TSchema>, options = {}) => Type.Object(properties, options)) as unknown as typeof Strict

export const definition = (schedule: typeof GivenSchedule, object: typeof Strict) => ({
  name: Name,
  schedule: Type.Optional(Nullable(schedule)),
  transport: Type.Optional(
    Nullable(
      Type.Enum([...transports], {
        description: '`webhook`: the service calls `callback.url`. `worker`: one of yours claims. Default: `webhook`.'
      })
    )
  ),
  ...settings(object),
  ...short,
  callback_url: Type.Optional(Nullable(Type.String({ description: 'Short for `callback.url`.' }))),
  worker: Type.Optional(Nullable(Type.Boolean({ description: 'Short for `transport: "worker"`.' })))
})
export const description = 'A schedule and, for webhook cues, a callback URL.'

export const CreateCue = Type.Object(definition(GivenSchedule, Lenient), { description })
export type CreateCue = Static<typeof CreateCue>
/** The same, but unknown members are rejected. */
export const PutCue = Strict(definition(DeclaredSchedule, Strict), { description })

export const UpdateCue = Strict({
  status: Type.Optional(orElse('invalid_status', 'status must be active or paused.', Type.Enum(['active', 'paused']))),
  name: Type.Optional(Name),
  schedule: Type.Optional(Nullable(StrictSchedule)),
  ...settings(Strict)
})
export type UpdateCue = Static<typeof UpdateCue>

export const PauseCue = Strict({
  reason: Type.Optional(Nullable(Type.String(bounds.pause_reason))),
  until: Type.Optional(Nullable(Instant))
})
export type PauseCue = Static<typeof PauseCue>
export const ResumeCue = Strict({})

export const cue = {
  id: Type.String(),
  name: Type.String(),
  ...plain,
  managed_by: Nullable(Type.String({ description: 'The set that the cue was applied with, see `POST /v1/cues/apply`.' })),
  status: Type.Enum([...statuses], { description: 'After its last slot, `completed`; `failed` if it runs once and that failed.' }),
  paused_at: Nullable(Timestamp),
  paused_by: Nullable(
    Type.Enum([...causes], {
      description:
        'What paused the cue: a request (`user`), a smaller plan, `on_failure` (`failures`), or the deletion of an account by "This was not me".'
    })
  ),
  pause_reason: Nullable(Type.String()),
  paused_until: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'When it resumes by itself.' })),
  completed_reason: Nullable(
    Type.Enum([...completions], {
      description: 'Why the cue is `completed`: its last slot has passed (`ended`), it has taken `max_runs` runs, or it runs only `once`.'
    })
  ),
  transport: Type.Enum([...transports]),
  schedule: Nullable(ScheduleBody),
  after: Nullable(After),
  callback: Type.Object({
    url: Nullable(Type.String()),
    method: callback.method,
    headers: Type.Record(Type.String(), Type.String(), { description: 'Values are masked.' })
  }),
  payload: AnyJson(),
  retry: Type.Object({ ...retry, on_worker_failure: Type.Optional(retry.on_worker_failure) }),
  on_failure: Type.Object({ ...on_failure, pause_after: Type.Optional(Type.Integer()) }),
  delivery: Nullable(Type.Object(delivery)),
  alerts: Nullable(Type.Object({ ...alerts, channels: Type.Optional(Type.Array(Type.String())) })),
  catch_up: Type.Enum([...policies]),
  verification: Nullable(Type.Object(verification)),
  approval: Nullable(Type.Object(approval, approvalNote)),
  next_run: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'When the next slot fires.' })),
  next_slot: Nullable(
    Type.Unsafe<Date>({
      ...Timestamp,
      description: 'The nominal time of the next slot: earlier than `next_run` if the schedule has a `window`.'
    })
  ),
  last_run: Nullable(Timestamp),
  run_count: Type.Integer({ description: 'Number of executions, whatever triggered them.' }),
  fired_count: Type.Integer({ description: 'Number of scheduled executions.' }),
  version: Type.Integer({ description: 'Increases with every change of the definition or status; also sent as ETag.' }),
  warning: Nullable(
    Type.String({
      description: 'Set on creation only: lists unknown fields, which were ignored, and says when no live worker can run the cue.'
    })
  ),
  created_at: Timestamp,
  updated_at: Timestamp
}
export const Cue = Type.Object(cue)
export const UpsertedCue = Type.Object({
  ...cue,
  changed: Type.Boolean({ description: 'False if the cue was the same before; nothing was written then.' })
})

/** Its outcome always has a result, null if none was reported. */
const RecentExecution = Type.Object({
  ...Execution.properties,
  outcome: Nullable(Type.Object({ ...Outcome.properties, result: Nullable(Type.String()) }))
})
const Missed = Type.Object({
  first: Timestamp,
  last: Timestamp,
  count: Type.Integer({ description: 'Counted up to 10,000.' }),
  policy: Type.Enum([...policies]),
  reason: Type.Enum([...enums.missedReason]),
  recorded_at: Timestamp
})

export const CueDetail = Type.Object({
  ...cue,
  executions: Type.Array(RecentExecution, { description: 'The latest 10.' }),
  execution_total: Type.Integer({ description: 'Counted up to 10,000.' }),
  missed: Type.Array(Missed, { description: 'Ranges of slots that did not run; the latest 10.' }),
  followers: Type.Array(Type.String(), { description: 'The cues that follow it: their keys, or ids.' }),
  pending_signals: Type.Array(Type.Object({ ...Parent.properties, signalled_at: Timestamp, expires_at: Timestamp }), {
    description: 'Of each cue that it follows, the latest run that counts for its next run.'
  })
})

export const HistoryQuery = Type.Object({
  days: Type.Integer({ minimum: 1, maximum: 366, default: 92 }),
  until: Type.Optional(
    Type.String({ format: 'date', pattern: '^2[01]', description: "The last day, in the cue's time zone. Default: today." })
  )
})
const Slots = Type.Integer({ minimum: 0 })
const DateOnly = Type.String({ format: 'date' })
export const History = Type.Object(
  {
    timezone: Type.String({ description: 'The zone of the days: that of the cue.' }),
    from: DateOnly,
    until: DateOnly,
    complete_from: Nullable(
      Type.String({
        format: 'date',
        description: 'The counts are complete from this day on, because only 5,000 executions are read; null: all are.'
      })
    ),
    days: Type.Array(
      Type.Object({
        date: DateOnly,
        starts_at: Timestamp,
        ends_at: Timestamp,
        succeeded: Slots,
        failed: { ...Slots, description: 'Failed, timed out, or reported as failed.' },
        missed: { ...Slots, description: 'Not claimed in time.' },
        running: { ...Slots, description: 'Not ended.' }
      }),
      { description: 'Days with executions, by the time of their slot.' }
    ),
    gaps: Type.Array(
      Type.Object({
        first: Type.String({ format: 'date-time' }),
        last: Type.String({ format: 'date-time' }),
        count: Missed.properties.count,
        reason: Missed.properties.reason
      }),
      { description: 'Slots without an execution, and why; the latest 200 ranges of the last 90 days.' }
    )
  },
  { description: 'Past slots of a cue. Executions are kept for EXECUTION_RETENTION_DAYS.' }
)

export const noSuchCue = 'Cue not found in this account.'
export const CueParams = Type.Object({
  cue_id: orElse('cue_not_found', noSuchCue, CueId)
})

/** A malformed key gets the same error as an unknown one, unless the route creates the cue. */
export const KeyParams = Type.Object({ key: orElse('cue_not_found', noSuchCue, Type.String(bounds.key)) })
export const NewKeyParams = Type.Object({ key: Type.String({ ...bounds.key, description: 'Percent-encoded.' }) })

const etag = '(W/)?"\\d{1,9}"'
const ifMatch = {
  'if-match': Type.Optional(
    Type.String({
      pattern: `^(\\*|${etag}( *, *${etag})*)$`,
      maxLength: 255,
      description: 'Only if the cue has this version, such as `"7"`; otherwise `version_conflict`. `*`: any version.'
    })
  )
}
export const IfMatch = Type.Object(ifMatch)
export const PutConditions = Type.Object({
  ...ifMatch,
  'if-none-match': Type.Optional(
    Type.String({ pattern: '^\\*$', description: '`*`: only create; an existing cue is refused with `cue_exists`.' })
  )
})

export const FireRequest = Strict({
  payload_override: Type.Optional(AnyJson({ description: "Merged into the cue's payload, or replaces it; see `merge_strategy`." })),
  merge_strategy: Type.Optional(Type.Enum(['merge', 'replace'], { description: '`merge` merges the top level only. Default: `merge`.' })),
  send_at: Type.Optional(Nullable(Instant)),
  idempotency_key: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
  overlap: GivenOverlap
})
export type FireRequest = Static<typeof FireRequest>

export const FiredExecution = Type.Object({
  id: Type.String(),
  cue_id: Type.String(),
  scheduled_for: Timestamp,
  status: Type.String(),
  triggered_by: Type.String()
})

/** Longest wait for the response to a test. */
export const MAX_TEST_SECONDS = 30
export const TestCue = Strict({
  cue_id: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'Id or key of a webhook cue, in any status.' })),
  url: Type.Optional(Type.String({ description: 'Instead of a cue: the address to call.' })),
  payload: Type.Optional(AnyJson({ description: "Sent instead of the cue's payload. Default for a URL: {}." }))
})
export const TestResult = Type.Object({
  request: Type.Object({
    method: callback.method,
    url: Type.String(),
    headers: Type.Record(Type.String(), Type.String(), { description: 'As sent; credentials are masked.' }),
    body: Type.String()
  }),
  response: Nullable(
    Type.Object(
      { http_status: Type.Integer(), body: Type.String({ description: 'The beginning.' }) },
      { description: 'Null if there was none.' }
    )
  ),
  error: Nullable(Type.String({ description: 'Why a delivery would fail; null for a 2xx.' })),
  duration_ms: Type.Integer()
})

export const BulkDelete = Strict({ ids: Type.Array(Type.String(), { minItems: 1, maxItems: 100 }) })
export const BulkDeleted = Type.Object({
  deleted: Type.Array(Type.String()),
  skipped: Type.Array(Type.String(), { description: 'Ids of cues not found in this account, or followed by others.' })
})

export const PayloadPreview = Type.Object({
  payload: AnyJson({ description: 'The payload of the next run.' }),
  url: Nullable(Type.String()),
  headers: Type.Record(Type.String(), Type.String(), { description: 'Stored values that are sent as their mask stay masked.' })
})
