/** Executions on the wire. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Spent } from '../costs/schemas.ts'
import { Instant } from '../schedule/schemas.ts'
import {
  AnyJson,
  CountTo,
  Cursor,
  endsEarly,
  NextCursor,
  Nullable,
  Page,
  SearchTo,
  Strict,
  TagFilter,
  Timestamp,
  Uuid,
  uuid,
  uuidPattern
} from '../schemas.ts'

export const statuses = enums.executionStatus
export const outcomeStates = enums.outcomeState
const triggers = enums.triggerKind

/** The reported outcome. Members that were not reported are absent. */
export const Outcome = Type.Object({
  success: Type.Boolean(),
  result: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  metadata: Type.Optional(AnyJson()),
  external_id: Type.Optional(Type.String()),
  result_url: Type.Optional(Type.String()),
  result_ref: Type.Optional(Type.String()),
  result_type: Type.Optional(Type.String()),
  summary: Type.Optional(Type.String()),
  artifacts: Type.Optional(AnyJson()),
  recorded_at: Type.String({ format: 'date-time' }),
  verification_reason: Type.Optional(Type.String({ description: 'The reason given when it was verified or rejected.' })),
  rejected_at: Type.Optional(
    Type.String({ format: 'date-time', description: 'When it was rejected by hand. Later evidence does not change that.' })
  )
})

const Approval = Type.Object(
  {
    message: Nullable(Type.String()),
    requested_at: Timestamp,
    requested_by: Nullable(Type.String({ description: 'Who fired or replayed it, such as `key:ID`; null: its schedule.' })),
    expires_at: Nullable(Timestamp),
    on_expiry: Type.Enum([...enums.approvalExpiry]),
    decision: Nullable(Type.Enum([...enums.approvalDecision], { description: 'Null while it waits.' })),
    decided_at: Nullable(Timestamp),
    decided_by: Nullable(Type.String({ description: 'As in the audit log; null: it expired, or was superseded.' })),
    decided_via: Nullable(Type.Enum([...enums.approvalSource])),
    reason: Nullable(Type.String())
  },
  { description: 'The approval that it waits for, or waited for.' }
)

export const Parent = Type.Object({
  cue_id: Type.String(),
  cue_key: Nullable(Type.String()),
  execution_id: Type.String({ format: 'uuid' })
})

const execution = {
  id: Type.String({ format: 'uuid' }),
  cue_id: Type.String(),
  cue_name: Type.String(),
  scheduled_for: Type.Unsafe<Date>({ ...Timestamp, description: 'The nominal time of the slot.' }),
  due_at: Type.Unsafe<Date>({
    ...Timestamp,
    description: 'When it was meant to start: later than `scheduled_for` if the schedule has a `window`.'
  }),
  status: Type.Enum([...statuses], { description: 'How far it has been handed over; see Concepts in the guide.' }),
  outcome_state: Nullable(
    Type.Enum([...outcomeStates], { description: 'Whether the work succeeded, as far as reported and verified; null without a report.' })
  ),
  outcome_success: Nullable(Type.Boolean({ description: '`success` of the report.' })),
  triggered_by: Type.Enum([...triggers]),
  replayed_from: Nullable(Type.String({ format: 'uuid', description: 'The replayed execution.' })),
  attempts: Type.Integer({ description: 'Number of sends or claims so far.' }),
  http_status: Nullable(Type.Integer({ description: 'The status of the latest response.' })),
  error_message: Nullable(Type.String({ description: 'What went wrong last.' })),
  started_at: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'The first attempt.' })),
  last_attempt_at: Nullable(Timestamp),
  delivered_at: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'The 2xx, or the success that a worker reported.' })),
  next_retry: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'When the next attempt is due.' })),
  claimed_by_worker: Nullable(Type.String()),
  claimed_at: Nullable(Timestamp),
  last_heartbeat_at: Nullable(Timestamp),
  lease_expires_at: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'Until when the claim lasts without a heartbeat.' })),
  outcome: Nullable(Outcome),
  costs: Spent,
  held: Nullable(
    Type.Object(
      {
        by: Type.Enum([...enums.heldBy], {
          description:
            '`after`: the cues that its cue follows. `approval`: a person. `overlap`: others of its cue. `gate`: the gate of its cue.'
        }),
        key: Nullable(Type.String({ description: 'The gate, with its part.' })),
        reason: Type.Enum([...enums.heldReason], { description: 'Why the gate lets none start now.' }),
        since: Timestamp,
        ahead: Type.Integer({ description: 'How many wait before it, counted up to 1,000.' })
      },
      { description: 'What it waits for, beyond its time.' }
    )
  ),
  held_ms: Nullable(Type.Integer({ description: 'Milliseconds for which it was held before; not a part of its lateness.' })),
  missed_reason: Nullable(
    Type.Enum([...enums.missedReason], {
      description:
        '`gate`: it waited at its gate for longer than `max_wait`. `after`: the cues that its cue follows did not run in time. `approval_expired`: nobody decided in time.'
    })
  ),
  approval: Nullable(Approval),
  parents: Type.Array(Parent, {
    description: 'The executions that it follows, if `triggered_by` is `chain` or its slot waited for others.'
  }),
  template_truncated: Type.Boolean({ description: 'Whether values of its template are null because they exceed 16 KB in all.' }),
  created_at: Timestamp,
  updated_at: Timestamp
}
export const Execution = Type.Object(execution)

const Attempt = Type.Object({
  attempt: Type.Integer(),
  started_at: Timestamp,
  finished_at: Timestamp,
  result: Type.Enum([...enums.attemptResult], {
    description: '`lost`: the result is unknown, because the replica or worker disappeared.'
  }),
  http_status: Nullable(Type.Integer()),
  error: Nullable(Type.String()),
  duration_ms: Type.Integer(),
  worker_id: Nullable(Type.String()),
  response_headers: Nullable(
    Type.Record(Type.String(), Type.String(), { description: 'Of the response to a failed attempt: up to 2 KB, without cookies.' })
  ),
  response_body: Nullable(Type.String({ description: 'The first 2,000 characters of the response to a failed attempt.' }))
})

export const ExecutionDetail = Type.Object({
  ...execution,
  payload: AnyJson({ description: 'The delivered payload, with the values of a template.' }),
  response_body: Nullable(Type.String({ description: 'The beginning of the latest response body.' })),
  attempt_log: Type.Array(Attempt),
  followers: Type.Array(
    Type.Object({
      cue_id: Type.String(),
      cue_key: Nullable(Type.String()),
      execution_id: Nullable(Type.String({ format: 'uuid' })),
      status: Nullable(Type.Enum([...statuses]))
    }),
    { description: 'The cues that it signalled, and their runs. Null: none yet, or no longer.' }
  )
})

/** Filters of lists and of bulk operations. */
export const filters = {
  cue_id: Type.Optional(Type.String()),
  status: Type.Optional(Type.Enum([...statuses])),
  outcome_state: Type.Optional(Type.Enum([...outcomeStates])),
  triggered_by: Type.Optional(Type.Enum([...triggers])),
  worker_id: Type.Optional(Type.String({ description: 'The worker of the latest claim.' })),
  error: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'Part of the error message, or of a reported error; case is ignored.' })
  ),
  dead: Type.Optional(
    Type.Boolean({
      description:
        'Whether it is a dead letter: it failed, was missed or timed out, and was neither replayed nor dismissed. Cancelled executions are none.'
    })
  ),
  error_group: Type.Optional(
    Type.String({ format: 'uuid', pattern: uuidPattern, description: 'The group of a dead letter, as in `GET /v1/errors`.' })
  ),
  tag: TagFilter,
  from: Type.Optional({ ...Instant, description: 'Created at or after this instant.' }),
  to: Type.Optional({ ...Instant, description: 'Created before this instant.' })
}

export const ListExecutions = Type.Object({
  ...filters,
  held: Type.Optional(Type.Enum([...enums.heldBy], { description: 'Only executions that wait for this, beyond their time.' })),
  gate: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 511,
      description: 'Only executions that wait at this gate, as their cues name it: `openai`, or `openai#tenant-42`.'
    })
  ),
  result_type: Type.Optional(Type.String()),
  has_evidence: Type.Optional(Type.Boolean({ description: 'Whether any external_id, result_url, result_ref or artifacts were reported.' })),
  since: Type.Optional({ ...Instant, description: 'The same as `from`.' }),
  until: Type.Optional({ ...Instant, description: 'The same as `to`.' }),
  sort: Type.Optional(
    Type.Enum(['duration', 'due'], {
      description:
        '`duration` orders the newest 1,000 that match by the duration of their last attempts, the longest first. `due` orders held executions as ' +
        'their gate does, the first due first. Default: the newest first.'
    })
  ),
  cursor: Cursor(uuid),
  count_to: CountTo,
  search_to: SearchTo,
  ...Page(20)
})

export const Executions = Type.Object({
  executions: Type.Array(Execution, { description: endsEarly }),
  total: Type.Integer({ description: 'Counted up to 10,000.' }),
  total_exact: Type.Boolean({ description: 'False if there are more than `total`.' }),
  next_cursor: NextCursor,
  limit: Type.Integer(),
  offset: Type.Integer(),
  has_more: Type.Boolean({
    description: 'Whether there are more executions. The next page starts at `offset` plus the number of executions returned.'
  })
})

export const ExecutionParams = Type.Object({
  execution_id: Uuid('execution_not_found', 'Execution not found in this account.')
})

export const Overlap = (description: string) =>
  Type.Enum([...enums.overlap], {
    description: `${description} \`allow\`: it runs as well. \`skip\`: it does not run. \`queue_one\`, \`queue_all\`: it waits for the others to end; one may wait, or 100. \`cancel_previous\`: they are cancelled.`
  })

/** For an execution that is requested. */
export const GivenOverlap = Type.Optional(
  Nullable(Overlap('What becomes of this execution while another one of the cue has not ended. Default: `allow`.'))
)

export const Replay = Type.Optional(Type.Union([Strict({ overlap: GivenOverlap }), Type.Null()]))

export const Replayed = Type.Object({
  id: Type.String({ format: 'uuid' }),
  execution_id: Type.String({ format: 'uuid', description: 'Same as `id`.' }),
  cue_id: Type.String(),
  scheduled_for: Timestamp,
  status: Type.Enum(['pending']),
  triggered_by: Type.Enum(['replay']),
  replayed_from: Type.String({ format: 'uuid' })
})

export const Signal = Strict({ reason: Type.String({ minLength: 1, maxLength: 500, description: 'For the audit log.' }) })
export const Signalled = Type.Object({
  id: Type.String({ format: 'uuid' }),
  status: Type.Enum([...statuses])
})

export const Dismissed = Type.Object({
  id: Type.String({ format: 'uuid' }),
  status: Type.Enum(['failed', 'missed', 'outcome_timeout']),
  dead: Type.Boolean({ description: 'False from now on.' })
})

const Reason = Type.String({ minLength: 1, maxLength: 500, description: 'Stays with the execution.' })
export const Approve = Type.Optional(Type.Union([Strict({ reason: Type.Optional(Nullable(Reason)) }), Type.Null()]))
export const Reject = Strict({ reason: Reason })

export const Decision = Type.Object({
  execution_id: Type.String({ format: 'uuid' }),
  decision: Type.Enum([...enums.approvalDecision]),
  decided_by: Type.String(),
  decided_at: Timestamp
})

export const Cancelled = Type.Object({
  id: Type.String({ format: 'uuid' }),
  status: Type.Enum(['failed']),
  error_message: Type.Enum(['cancelled'])
})
