/** All errors of the API in two tables, and the mapping from any thrown value to one of them. */

/** Code on the wire → HTTP status. */
export const statuses = {
  invalid_schedule: 400,
  invalid_payload_size: 400,
  invalid_callback_url: 400,
  invalid_alert_webhook_url: 400,
  invalid_plan: 400,
  invalid_interval: 400,
  invalid_device_code: 400,
  device_code_expired: 400,
  invalid_status: 400,
  invalid_token: 400,
  validation_error: 400,
  metadata_too_large: 400,
  artifacts_too_large: 400,
  no_stripe_customer: 400,
  confirmation_required: 400,
  not_authenticated: 401,
  invalid_api_key: 401,
  insufficient_scope: 403,
  cross_origin_refused: 403,
  cue_limit_exceeded: 403,
  calendar_limit_exceeded: 403,
  execution_limit_exceeded: 403,
  not_execution_owner: 403,
  account_too_new: 403,
  no_active_cue: 403,
  memory_block_disabled: 403,
  client_not_approved: 403,
  not_found: 404,
  cue_not_found: 404,
  execution_not_found: 404,
  alert_not_found: 404,
  key_not_found: 404,
  session_not_found: 404,
  worker_not_found: 404,
  ticket_not_found: 404,
  calendar_not_found: 404,
  operation_not_found: 404,
  post_not_found: 404,
  device_code_not_found: 404,
  method_not_allowed: 405,
  already_claimed: 409,
  invalid_state: 409,
  execution_in_flight: 409,
  idempotency_key_conflict: 409,
  idempotency_key_in_use: 409,
  key_taken: 409,
  managed_elsewhere: 409,
  calendar_in_use: 409,
  operation_running: 409,
  nothing_claimable: 409,
  overlap_skipped: 409,
  claim_lost: 409,
  execution_not_claiming: 409,
  outcome_already_reported: 409,
  no_outcome: 409,
  duplicate_email: 409,
  last_key_protected: 409,
  multiple_active_keys: 409,
  deletion_already_pending: 409,
  device_code_exists: 409,
  plaintext_unavailable: 410,
  already_cancelled: 410,
  deletion_already_completed: 410,
  cue_exists: 412,
  version_conflict: 412,
  payload_too_large: 413,
  misdirected_request: 421,
  invalid_timezone: 422,
  rate_limit_exceeded: 429,
  internal_error: 500,
  stripe_error: 502,
  unavailable: 503,
  billing_not_configured: 503
} as const

export type ErrorCode = keyof typeof statuses

/** SQLSTATE that a function in sql/ raises → code. A test compares the keys with every errcode there. */
export const sqlstates: Readonly<Record<string, ErrorCode>> = {
  QU001: 'cue_not_found',
  QU002: 'execution_not_found',
  QU003: 'alert_not_found',
  QU004: 'key_not_found',
  QU005: 'worker_not_found',
  QU006: 'ticket_not_found',
  QU007: 'not_found',
  QU008: 'calendar_not_found',
  QU009: 'operation_not_found',
  QU011: 'invalid_state',
  QU012: 'execution_in_flight',
  QU013: 'idempotency_key_conflict',
  QU014: 'unavailable', // the cue was changed concurrently; its routes retry first
  QU015: 'key_taken', // DETAIL: id of the cue that has the key
  QU016: 'claim_lost',
  QU017: 'not_execution_owner',
  QU018: 'execution_not_claiming',
  QU019: 'idempotency_key_in_use',
  QU020: 'outcome_already_reported',
  QU021: 'no_outcome',
  QU022: 'metadata_too_large',
  QU023: 'artifacts_too_large',
  QU024: 'managed_elsewhere',
  QU025: 'operation_running', // DETAIL: id of the operation
  QU026: 'calendar_in_use', // DETAIL: JSON array of the ids of at most 100 cues that use it
  QU028: 'session_not_found',
  QU029: 'overlap_skipped',
  QU030: 'cue_limit_exceeded',
  QU031: 'rate_limit_exceeded', // DETAIL: seconds for Retry-After
  QU032: 'execution_limit_exceeded',
  QU033: 'calendar_limit_exceeded',
  QU041: 'last_key_protected',
  QU042: 'multiple_active_keys',
  QU043: 'deletion_already_pending',
  QU044: 'already_cancelled',
  QU045: 'deletion_already_completed',
  QU050: 'not_authenticated',
  QU051: 'invalid_api_key',
  QU052: 'insufficient_scope',
  QU053: 'plaintext_unavailable',
  QU060: 'account_too_new',
  QU061: 'no_active_cue',
  QU062: 'memory_block_disabled',
  QU070: 'device_code_not_found',
  QU071: 'device_code_expired',
  QU072: 'device_code_exists',
  QU073: 'invalid_status'
}

/** One invalid field, in pydantic's format. */
export type Detail = { type: string; loc: (string | number)[]; msg: string; input: unknown }

/** Further members of an error, for programs: the cues or the operation in the way, or the cue's current version. */
export type About = { cue_id?: string; cue_ids?: string[]; operation_id?: string; version?: number }

type Options = { status?: number; headers?: Record<string, string>; detail?: Detail[]; about?: About; cause?: unknown }

/** An error as the client sees it: `{error: {code, message, status, …about}}`, with `detail` beside it for invalid fields. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly code: ErrorCode
  readonly statusCode: number
  readonly headers: Record<string, string>
  readonly detail: Detail[] | undefined
  readonly about: About | undefined

  constructor(code: ErrorCode, message: string, { status = statuses[code], headers = {}, detail, about, cause }: Options = {}) {
    super(message, { cause })
    this.code = code
    this.statusCode = status
    this.headers = headers
    this.detail = detail
    this.about = about
  }

  toJSON() {
    const { code, message, statusCode: status, detail, about } = this
    return { error: { code, message, status, ...about }, ...(detail && { detail }) }
  }
}

/** A 422 for invalid fields, or another refusal of several things at once. */
export const invalid = (detail: Detail[], code: ErrorCode = 'validation_error'): ApiError => {
  const { loc, msg } = detail[0]!
  const more = detail.length > 1 ? ` (and ${detail.length - 1} more, see detail)` : ''
  const status = code === 'validation_error' ? 422 : statuses[code]
  return new ApiError(code, `${loc.slice(1).join('.') || loc[0]}: ${msg}${more}`, { status, detail })
}

export const unavailable = (cause?: unknown): ApiError =>
  new ApiError('unavailable', 'The service is temporarily unavailable. Nothing was changed; retry after the time in Retry-After.', {
    headers: { 'retry-after': '2' },
    cause
  })

/** 415: the body is not JSON. */
export const notJson = (cause?: unknown): ApiError =>
  new ApiError('validation_error', 'Send the body as JSON, with Content-Type: application/json.', { status: 415, cause })

/** 413: the body exceeds the limit of its route, in bytes. The rest is not read. */
export const tooLarge = (bytes: number, cause?: unknown): ApiError =>
  new ApiError('payload_too_large', `Request body too large: the maximum here is ${sizeText(bytes)}.`, { cause })

const sizeText = (bytes: number) => (bytes % 1024 ** 2 === 0 ? `${bytes / 1024 ** 2} MB` : `${bytes / 1024} KB`)

/** Maps anything thrown to an ApiError. Unexpected errors reveal nothing to the client. */
export const toApiError = (error: unknown): ApiError => {
  if (error instanceof ApiError) return error
  const { code, message, detail, statusCode } = (error ?? {}) as { [name in 'code' | 'message' | 'detail']?: string } & {
    statusCode?: number
  }
  const known = code && Object.hasOwn(sqlstates, code) ? sqlstates[code]! : undefined
  if (known === 'unavailable') return unavailable(error)
  if (known) {
    const headers: Record<string, string> = {}
    if (known === 'rate_limit_exceeded') headers['retry-after'] = /^\d+$/.test(detail ?? '') ? detail! : '60'
    if (known === 'idempotency_key_in_use') headers['retry-after'] = '1'
    return new ApiError(known, message ?? known, { headers, about: aboutOf(known, detail), cause: error })
  }
  // Refused by the HTTP framework: too large, not JSON, an invalid length.
  if (statusCode === 413) return new ApiError('payload_too_large', 'Request body too large.', { cause: error })
  if (statusCode === 415) return notJson(error)
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new ApiError('validation_error', message ?? 'Malformed request.', { status: statusCode, cause: error })
  }
  if (isAway(error)) return unavailable(error)
  return new ApiError('internal_error', 'Internal error. It has been logged under the X-Request-Id of this response.', { cause: error })
}

const aboutOf = (code: ErrorCode, detail: string | undefined): About | undefined => {
  if (detail === undefined) return undefined
  if (code === 'key_taken') return { cue_id: detail }
  if (code === 'operation_running') return { operation_id: detail }
  return code === 'calendar_in_use' ? { cue_ids: JSON.parse(detail) } : undefined
}

/** Whether a row stayed locked by another session for longer than the lock timeout. */
export const isHeld = (error: unknown): boolean => (error as { code?: string } | null)?.code === '55P03'

/**
 * Whether the database is unavailable, so that the same statement may succeed later: SQLSTATE classes and codes, socket errors,
 * the driver's own, and Citus's for a node that died. 25006 is a temporarily read-only database, as in a failover.
 */
export const isAway = (error: unknown): boolean => {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string }
  return (
    /^(08|53|57)...$|^(55P03|40001|40P01|25P03|25006)$/.test(code) ||
    /^E(CONNREFUSED|CONNRESET|CONNABORTED|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|NOENT)$/.test(code) ||
    /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered|Client was closed)/.test(
      message
    ) ||
    message.startsWith('failure on connection marked as essential')
  )
}

/**
 * Whether a statement failed because functions or views were replaced since it was planned. It had no effect, and succeeds when
 * planned again.
 */
export const isOutdated = (error: unknown): boolean => {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string }
  return (
    /^(0A000|42883|42P01|42703|42704|42804)$/.test(code) ||
    (code === 'XX000' && /^(cache lookup failed|could not open relation)/.test(message))
  )
}
