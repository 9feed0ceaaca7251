/** Alerts. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Nullable, Page, Timestamp, Uuid } from '../schemas.ts'

const alertTypes = enums.alertType

export const ListAlerts = Type.Object({
  alert_type: Type.Optional(Type.Enum([...alertTypes])),
  cue_id: Type.Optional(Type.String()),
  acknowledged: Type.Optional(Type.Boolean()),
  ...Page(50)
})
export const Alert = Type.Object({
  id: Type.String(),
  cue_id: Type.String(),
  execution_id: Nullable(Type.String()),
  alert_type: Type.Enum([...alertTypes]),
  severity: Type.Enum(['info', 'warning', 'high', 'critical']),
  message: Type.String(),
  metadata: Type.Record(Type.String(), Type.Unknown()),
  acknowledged: Type.Boolean(),
  acknowledged_at: Nullable(Timestamp),
  created_at: Timestamp
})
export const Alerts = Type.Object({ alerts: Type.Array(Alert), total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer() })
export const AlertParams = Type.Object({ alert_id: Uuid('alert_not_found', 'Alert not found in this account.') })
