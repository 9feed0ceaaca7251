/** Bulk operations on the wire. */
import { type Static, Type } from 'typebox'
import { enums } from '../catalog.ts'
import { bounds } from '../cues/columns.ts'
import * as cues from '../cues/list-schemas.ts'
import { noSuchCue } from '../cues/schemas.ts'
import * as executions from '../executions/schemas.ts'
import { Instant } from '../schedule/schemas.ts'
import { CueId, Listed, Nullable, orElse, Page, Strict, Tag, Timestamp } from '../schemas.ts'

export const types = enums.operationType
export type OperationType = (typeof types)[number]
/** What each type acts on. */
export const isOnExecutions = (type: OperationType) => ['replay', 'cancel', 'dismiss', 'approve', 'reject'].includes(type)

/** Maximum targets of an operation, of those named by id, and of a backfill. */
export const MAX_TARGETS = 100_000
const MAX_IDS = 10_000
export const MAX_SLOTS = 1000

const tag = Type.Optional(
  Type.Union([Tag, Type.Array(Tag, { maxItems: 10 })], { description: 'A tag, or several, all of which must match.' })
)
/** By type; members of the other kind are refused. */
export const CueFilter = Strict({ filter: Type.Optional(Nullable(Strict({ ...cues.filters, tag }))) })
export const ExecutionFilter = Strict({ filter: Type.Optional(Nullable(Strict({ ...executions.filters, tag }))) })
export type CueFilter = NonNullable<Static<typeof CueFilter>['filter']>
export type ExecutionFilter = NonNullable<Static<typeof ExecutionFilter>['filter']>

const Filter = Strict(
  {
    ...cues.filters,
    ...executions.filters,
    status: Type.Optional(Type.Enum([...enums.cueStatus, ...enums.executionStatus].filter((name, i, all) => all.indexOf(name) === i))),
    tag
  },
  {
    description:
      'Which cues or executions, by the filters of their lists; at least one. Executions are those of the last 7 days, unless `from` is given or they wait for approval. ' +
      'Without `status`: `replay` takes ended executions, `cancel` those that have not ended, `dismiss` dead letters, `approve` and `reject` those that wait for approval; `pause` and `fire` take ' +
      'active and paused cues, `resume` paused ones.'
  }
)

export const CreateOperation = Strict({
  type: Type.Enum([...types], {
    description:
      '`replay`, `cancel`, `dismiss`, `approve` and `reject` act on executions, the others on cues. `approve` and `reject` need the scope `approve`. `backfill` runs the slots of one cue, `cue_id`, in a period in the past, ' +
      'unless they have an execution: at most 1,000, oldest first, with their nominal `scheduled_for`.'
  }),
  filter: Type.Optional(Nullable(Filter)),
  ids: Type.Optional(
    Nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
        minItems: 1,
        maxItems: MAX_IDS,
        description: 'Ids of cues or executions, instead of `filter`.'
      })
    )
  ),
  name: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
  rate_per_minute: Type.Optional(
    Nullable(
      Type.Integer({ minimum: 1, maximum: 100_000, description: 'Maximum number of targets acted on per minute. Default: no limit.' })
    )
  ),
  dry_run: Type.Optional(
    Nullable(Type.Boolean({ description: 'Whether to return the number of targets and the first 10, and do nothing.' }))
  ),
  reason: Type.Optional(
    Nullable(Type.String({ ...bounds.pause_reason, description: 'With `pause`, `approve` and `reject`: as for one.' }))
  ),
  until: Type.Optional(Nullable({ ...Instant, description: 'With `pause`: as for one cue.' })),
  overlap: Type.Optional(
    Nullable(
      executions.Overlap(
        'With `replay`, `fire` and `backfill`: what becomes of each execution while another one of its cue has not ended. Default: `allow`.'
      )
    )
  ),
  cue_id: Type.Optional(Nullable(orElse('cue_not_found', noSuchCue, CueId))),
  from: Type.Optional(Nullable({ ...Instant, description: 'With `backfill`: slots from this instant on.' })),
  to: Type.Optional(Nullable({ ...Instant, description: 'With `backfill`: slots before this instant, which is not in the future.' }))
})
export type CreateOperation = Static<typeof CreateOperation>

export const DryRun = Type.Object({
  total: Type.Integer({ description: 'Number of targets.' }),
  sample: Type.Array(
    Type.Object({
      id: Type.Optional(Type.String()),
      cue_id: Type.Optional(Type.String()),
      cue_name: Type.Optional(Type.String()),
      key: Type.Optional(Nullable(Type.String())),
      name: Type.Optional(Type.String()),
      status: Type.Optional(Type.String()),
      scheduled_for: Type.Optional(Timestamp),
      error_message: Type.Optional(Nullable(Type.String()))
    }),
    { description: 'The first 10 targets, in the order in which they would be acted on.' }
  )
})

const operation = {
  id: Type.String(),
  type: Type.Enum([...types]),
  name: Nullable(Type.String()),
  status: Type.Enum([...enums.operationStatus]),
  total: Type.Integer({ description: 'Number of targets.' }),
  done: Type.Integer({ description: 'Number of targets dealt with: succeeded, failed and skipped.' }),
  succeeded: Type.Integer(),
  failed: Type.Integer({ description: 'A single call would have been refused; see `errors`.' }),
  skipped: Type.Integer({ description: 'Changed or deleted since the operation was created, or already as wanted.' }),
  created_by: Type.String({ description: 'The key or session that created it, as in the audit log.' }),
  created_at: Timestamp,
  ended_at: Nullable(Timestamp)
}
export const Operation = Type.Object(operation)
export const OperationDetail = Type.Object({
  ...operation,
  errors: Type.Array(
    Type.Object({ target: Type.String(), code: Type.String({ description: 'The error code of a single call.' }), message: Type.String() }),
    { description: 'The first 100.' }
  )
})

export const ListOperations = Type.Object({
  type: Type.Optional(Type.Enum([...types])),
  status: Type.Optional(Type.Enum([...enums.operationStatus])),
  ...Page(20)
})
export const Operations = Type.Object({
  operations: Type.Array(Operation),
  ...Listed
})

export const OperationParams = Type.Object({
  operation_id: orElse('operation_not_found', 'Operation not found in this account.', Type.String({ pattern: '^op_[0-9A-Za-z]{12}$' }))
})

/** Required with type `delete`. */
export const Confirmed = {
  'x-confirm-destructive': Type.Optional(
    Type.String({ description: '`true`, to confirm that cues are deleted with their history. Required for `delete`.' })
  )
}
