/** Short text forms of cues, executions and alerts: agents pay for every token. */
import type { Alert, Cue, Execution } from '../client/index.ts'

export const cueLine = ({ id, key, name, status, transport, schedule, callback, next_run, run_count, version }: Cue) => ({
  cue_id: id,
  ...(key && { key }),
  name,
  status,
  transport,
  schedule,
  ...(callback.url && { callback_url: callback.url }),
  next_run,
  run_count,
  version
})

type Line = Omit<Execution, 'outcome'>

export const executionLine = (execution: Line) => {
  const { id, cue_id, cue_name, status, outcome_state, scheduled_for, attempts, http_status, error_message } = execution
  return { execution_id: id, cue_id, cue_name, status, outcome_state, scheduled_for, attempts, http_status, error_message }
}

export const alertLine = ({ id, cue_id, execution_id, alert_type, severity, message, acknowledged, created_at }: Alert) => ({
  alert_id: id,
  cue_id,
  execution_id,
  alert_type,
  severity,
  message,
  acknowledged,
  created_at
})
