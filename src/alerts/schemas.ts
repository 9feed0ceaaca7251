/** Alerts. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { CountTo, IdCursor, NextCursor, Nullable, Page, SearchTo, Timestamp, TotalExact, Uuid } from '../schemas.ts'

const alertTypes = enums.alertType

export const ListAlerts = Type.Object({
  alert_type: Type.Optional(Type.Enum([...alertTypes])),
  cue_id: Type.Optional(Type.String()),
  acknowledged: Type.Optional(Type.Boolean()),
  cursor: IdCursor,
  count_to: CountTo,
  search_to: SearchTo,
  ...Page(50)
})
export const Alert = Type.Object({
  id: Type.String(),
  cue_id: Type.String(),
  execution_id: Nullable(Type.String()),
  alert_type: Type.Enum([...alertTypes]),
  severity: Type.Enum(['info', 'warning', 'high', 'critical']),
  message: Type.String(),
  metadata: Type.Record(Type.String(), Type.Unknown(), { description: 'Such as `failure_count`; depends on the type.' }),
  acknowledged: Type.Boolean(),
  acknowledged_at: Nullable(Timestamp),
  resolved_at: Nullable({ ...Timestamp, description: 'When the cue succeeded again. This does not acknowledge the alert.' }),
  resolution: Nullable(
    Type.Object({
      after_seconds: Type.Integer({ description: 'From the alert to that success.' }),
      failed: Type.Integer({ description: 'Executions that failed since the success before; at most 1,000 are counted.' }),
      missed: Type.Integer({ description: 'Executions and slots that were missed since then.' })
    })
  ),
  created_at: Timestamp
})
export const Alerts = Type.Object({
  alerts: Type.Array(Alert),
  total: Type.Integer(),
  total_exact: TotalExact,
  next_cursor: NextCursor,
  limit: Type.Integer(),
  offset: Type.Integer(),
  has_more: Type.Boolean({ description: 'Whether there are more alerts.' })
})
export const AlertParams = Type.Object({ alert_id: Uuid('alert_not_found', 'Alert not found in this account.') })
