/** Workers on the wire. */
import { Type } from 'typebox'
import { MAX_TASK } from '../cues/payload.ts'
import { MAX_WAIT_SECONDS, MAX_WAITING } from '../database/long-poll.ts'
import { AnyJson, endsEarly, Nullable, notDots, orElse, Page, Strict, Timestamp, Uuid } from '../schemas.ts'

const WorkerId = Type.String({ minLength: 1, maxLength: 255, pattern: `^${notDots}`, description: 'A name of your own for the worker.' })
const Task = Type.String({ minLength: 1, maxLength: MAX_TASK, description: '`task` in the payload.' })
const Wait = Type.Number({
  minimum: 0,
  maximum: MAX_WAIT_SECONDS,
  default: 0,
  description: `Long poll: seconds to wait for claimable work. An account may have ${MAX_WAITING} such requests open.`
})

export const ClaimableQuery = Type.Object({
  task: Type.Optional(Task),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
  wait: Wait
})

const claimable = {
  execution_id: Type.String(),
  cue_id: Type.String(),
  cue_name: Type.String(),
  task: Nullable(Type.String()),
  scheduled_for: Timestamp,
  attempt: Type.Integer({ description: 'Attempt number if claimed now.' }),
  payload: AnyJson()
}
export const Claimable = Type.Object({
  executions: Type.Array(Type.Object({ id: Type.String(), ...claimable }), { description: endsEarly }),
  has_more: Type.Boolean({ description: 'Whether more executions are claimable than this page shows.' })
})

export const ClaimParams = Type.Object({
  execution_id: orElse('already_claimed', 'Execution not claimable: not found in this account.', Uuid('already_claimed'))
})
export const ClaimRequest = Type.Optional(Strict({ worker_id: Type.Optional(WorkerId) }))

export const ClaimNextRequest = Type.Optional(
  Strict({
    worker_id: Type.Optional(WorkerId),
    task: Type.Optional(Nullable(Task)),
    tasks: Type.Optional(Nullable(Type.Array(Task, { minItems: 1, maxItems: 100 }))),
    wait: Type.Optional(Wait),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 }))
  })
)

const claim = {
  claimed: Type.Boolean({ description: 'Always true.' }),
  ...claimable,
  attempt: Type.Integer(),
  lease_seconds: Type.Integer(),
  lease_expires_at: Timestamp,
  claim_token: Type.String({ description: 'Identifies this claim. Send it as X-Claim-Token.' }),
  execution_token: Type.String({ description: 'A bearer token valid for this execution only.' })
}
export const Claim = Type.Object(claim)
export const Claims = Type.Object({
  executions: Type.Optional(Type.Array(Claim, { description: 'At least one; fewer than `limit` if their payloads exceed 4 MiB.' })),
  ...Type.Partial(Type.Object(claim)).properties
})

export const ExecutionParams = Type.Object({ execution_id: Uuid('execution_not_found', 'Execution not found in this account.') })

/** A malformed token is treated like an outdated one. */
export const ClaimToken = Type.String({ description: 'The `claim_token` of the claim.' })
export const HeartbeatHeaders = Type.Object({
  'x-worker-id': Type.Optional(Type.String({ description: 'The worker that claimed it.' })),
  'x-claim-token': Type.Optional(ClaimToken)
})
export const ReleaseHeaders = Type.Object({ 'x-claim-token': ClaimToken })
export const Extended = Type.Object({ acknowledged: Type.Boolean(), lease_extended_until: Timestamp })
export const Released = Type.Object({ released: Type.Boolean(), execution_id: Type.String(), status: Type.String() })

export const Heartbeat = Strict({ worker_id: WorkerId, handlers: Type.Array(Type.String({ maxLength: MAX_TASK }), { maxItems: 1000 }) })
export const Acknowledged = Type.Object({ acknowledged: Type.Boolean() })

export const ListWorkers = Type.Object(Page(100))
export const WorkerParams = Type.Object({ worker_id: Type.String() })
export const Worker = Type.Object({
  worker_id: Type.String(),
  last_heartbeat: Timestamp,
  seconds_since_heartbeat: Type.Integer(),
  heartbeat_status: Type.Enum(['active', 'stale', 'dead']),
  handlers: Type.Array(Type.String()),
  registered_since: Timestamp
})
export const Workers = Type.Object({ workers: Type.Array(Worker, { description: endsEarly }), total: Type.Integer() })
