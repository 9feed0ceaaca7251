/** Reports, evidence and their verification. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Costs } from '../costs/schemas.ts'
import { textLengths } from '../deliveries/report.ts'
import { JsonArray, JsonObject, Nullable, Strict, Timestamp } from '../schemas.ts'
import { ClaimToken } from '../workers/schemas.ts'

const text = (name: keyof typeof textLengths, description: string) =>
  Type.Optional(Nullable(Type.String({ maxLength: textLengths[name], description })))
const evidence = {
  external_id: text('external_id', 'An id in another system.'),
  result_url: text('result_url', 'Where the result is.'),
  result_ref: text('result_ref', 'A short reference.'),
  result_type: text('result_type', 'Your own category, a filter of lists.'),
  artifacts: Type.Optional(
    Nullable(JsonArray({ description: 'Created resources: ids, URLs, or objects with name and url. At most 64 KB.' }))
  ),
  metadata: Type.Optional(Nullable(JsonObject({ description: 'At most 10 KB.' }))),
  costs: Type.Optional(
    Nullable({ ...Costs, description: 'Further costs. They replace those of earlier evidence, and add to those of reports.' })
  )
}

export const Report = Strict({
  success: Type.Boolean({ description: 'Whether the work succeeded.' }),
  result: text('result', 'What was done.'),
  error: text('error', 'What went wrong.'),
  ...evidence,
  costs: Type.Optional(
    Nullable({ ...Costs, description: 'What it cost, by unit. Each report of a retry adds to the costs of the execution.' })
  ),
  summary: text('summary', 'For people.')
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
  valid: Type.Optional(Type.Boolean({ description: 'False rejects it. Default: true.' })),
  reason: Type.Optional(Nullable(Type.String({ maxLength: 2000 })))
})
export const Verify = Type.Optional(Type.Union([Verification, Type.Null()]))
export const Verified = Type.Object({ execution_id: Type.String(), status: Type.String(), outcome_state: State })
