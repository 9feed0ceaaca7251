/** Reports, evidence and their verification. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { textLengths } from '../deliveries/report.ts'
import { JsonArray, JsonObject, Nullable, Strict, Timestamp } from '../schemas.ts'
import { ClaimToken } from '../workers/schemas.ts'

const text = (name: keyof typeof textLengths) => Type.Optional(Nullable(Type.String({ maxLength: textLengths[name] })))
const evidence = {
  external_id: text('external_id'),
  result_url: text('result_url'),
  result_ref: text('result_ref'),
  result_type: text('result_type'),
  artifacts: Type.Optional(
    Nullable(JsonArray({ description: 'Created resources: ids, URLs, or objects with name and url. At most 64 KB.' }))
  ),
  metadata: Type.Optional(Nullable(JsonObject({ description: 'At most 10 KB.' })))
}

export const Report = Strict({
  success: Type.Boolean(),
  result: text('result'),
  error: text('error'),
  ...evidence,
  summary: text('summary')
})
export const Evidence = Strict({
  ...evidence,
  summary: Type.Optional(Nullable(Type.String({ description: 'Truncated to 500 characters.' })))
})
export const TokenHeaders = Type.Object({ 'x-claim-token': Type.Optional(ClaimToken) })

const State = Type.Enum([...enums.outcomeState])

export const Reported = Type.Object({
  execution_id: Type.String(),
  outcome: Type.Object({
    success: Type.Boolean(),
    result: Nullable(Type.String()),
    metadata: Nullable(JsonObject()),
    recorded_at: Timestamp
  }),
  outcome_state: State,
  outcome_recorded: Type.Boolean()
})
export const Attached = Type.Object({ execution_id: Type.String(), outcome_state: State, evidence_updated: Type.Boolean() })

export const Verification = Strict({
  valid: Type.Optional(Type.Boolean()),
  reason: Type.Optional(Nullable(Type.String({ maxLength: 2000 })))
})
export const Verify = Type.Optional(Type.Union([Verification, Type.Null()]))
export const Verified = Type.Object({ execution_id: Type.String(), status: Type.String(), outcome_state: State })
