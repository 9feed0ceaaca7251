/** Values that sql/ owns. Made by `npm run generate`; do not edit. */

/** The constants of sql/constants.sql; durations in milliseconds. */
export const constants = {
  artifactsBytes: 65536,
  claimLeaseMs: 900000,
  countedTo: 10000,
  engineTimeoutMs: 15000,
  flightLeaseMs: 4000,
  mask: '********',
  metadataBytes: 10240,
  missedAfterMs: 60000,
  pageBytes: 4194304,
  workerTimeoutMs: 180000
}

/** The labels of each enum, in order. */
export const enums = {
  alertSeverity: ['info', 'warning', 'high', 'critical'],
  alertType: ['consecutive_failure', 'missed_window', 'outcome_timeout'],
  attemptResult: ['success', 'failed', 'lost'],
  auditEvent: ['account.registered', 'account.updated', 'key.created', 'key.renamed', 'key.revoked', 'key.regenerated', 'key.revealed', 'webhook_secret.regenerated', 'alert_webhook_secret.created', 'alert_webhook_secret.regenerated', 'session.created', 'session.refreshed', 'session.revoked', 'account.deletion_requested', 'account.deletion_cancelled', 'account.disowned', 'plan.changed'],
  callbackMethod: ['POST', 'PUT', 'PATCH', 'GET'],
  catchUp: ['skip_missed', 'run_once_if_missed', 'replay_all_missed'],
  cueStatus: ['active', 'paused', 'completed', 'failed'],
  deviceCodeStatus: ['pending', 'email_sent', 'approved', 'claimed'],
  executionStatus: ['pending', 'delivering', 'success', 'failed', 'retrying', 'retry_ready', 'missed', 'pending_outcome', 'outcome_timeout'],
  keyOrigin: ['user', 'register', 'migration', 'mcp-exchange'],
  keyScope: ['read', 'write', 'worker', 'account'],
  missedReason: ['service_away', 'execution_limit'],
  outcomeState: ['reported_success', 'reported_failure', 'verified_success', 'verification_pending', 'verification_failed', 'unknown'],
  plan: ['free', 'pro', 'scale'],
  scheduleType: ['recurring', 'once'],
  ticketSeverity: ['low', 'medium', 'high'],
  ticketStatus: ['open', 'in_progress', 'resolved', 'closed'],
  ticketType: ['bug', 'feature-request'],
  transport: ['webhook', 'worker'],
  triggerKind: ['schedule', 'manual_fire', 'replay'],
  verificationMode: ['none', 'require_external_id', 'require_result_url', 'require_artifacts', 'manual'],
  webhookAuthorization: ['execution_token', 'api_key']
} as const
