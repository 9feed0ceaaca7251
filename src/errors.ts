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
  limit_reached: 403,
  gate_limit_exceeded: 403,
  own_request: 403,
  approval_protected: 403,
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
  channel_not_found: 404,
  gate_not_found: 404,
  event_endpoint_not_found: 404,
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
  already_decided: 409,
  calendar_in_use: 409,
  gate_in_use: 409,
  cue_cycle: 409,
  cue_has_followers: 409,
  gate_full: 429,
  address_unconfirmed: 409,
  operation_running: 409,
  service_held: 409,
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
  QU027: 'service_held',
  QU028: 'session_not_found',
  QU029: 'overlap_skipped',
  QU030: 'cue_limit_exceeded',
  QU031: 'rate_limit_exceeded', // DETAIL: seconds for Retry-After
  QU032: 'execution_limit_exceeded',
  QU033: 'calendar_limit_exceeded',
  QU034: 'validation_error',
  QU035: 'limit_reached',
  QU036: 'channel_not_found',
  QU037: 'gate_not_found',
  QU038: 'validation_error', // a cue names a gate that does not exist: a 422
  QU039: 'gate_limit_exceeded',
  QU040: 'gate_in_use', // DETAIL: JSON array of the ids of at most 100 cues that use it
  QU047: 'event_endpoint_not_found',
  QU048: 'validation_error', // a template names something unknown: a 422; DETAIL: the member
  QU041: 'last_key_protected',
  QU042: 'multiple_active_keys',
  QU043: 'deletion_already_pending',
  QU044: 'already_cancelled',
  QU045: 'deletion_already_completed',
  QU046: 'gate_full', // DETAIL: seconds for Retry-After
  QU050: 'not_authenticated',
  QU051: 'invalid_api_key',
  QU052: 'insufficient_scope',
  QU053: 'plaintext_unavailable',
  QU063: 'validation_error', // a cue follows one that does not exist: a 422; DETAIL: its key or id
  QU064: 'cue_cycle',
  QU065: 'validation_error', // a chain is too long, or a cue has too many followers: a 422
  QU066: 'cue_has_followers', // DETAIL: JSON array of their ids
  QU060: 'account_too_new',
  QU061: 'no_active_cue',
  QU062: 'memory_block_disabled',
  QU070: 'device_code_not_found',
  QU071: 'device_code_expired',
  QU072: 'device_code_exists',
  QU073: 'invalid_status',
  QU074: 'already_decided', // DETAIL: the decision as JSON
  QU075: 'own_request',
  QU076: 'approval_protected'
}

/** One invalid field, in pydantic's format. */
export type Detail = { type: string; loc: (string | number)[]; msg: string; input: unknown }

/** A field of the body with this fault. */
export const fault = (loc: (string | number)[], msg: string): Detail => ({
  type: 'value_error',
  loc: ['body', ...loc],
  msg: `Value error, ${msg}`,
  input: null
})

/** Further members of an error, for programs: the cues or the operation in the way, the cue's current version, or the first decision. */
export type About = {
  cue_id?: string
  cue_ids?: string[]
  operation_id?: string
  version?: number
  decision?: string
  decided_by?: string | null
  decided_at?: string
}

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

/** Errors of requests that have changed nothing. Of any other that fails for want of a database, that is unknown: its commit may have arrived. */
const harmless = new WeakSet<object>()

/** Notes that an error leaves everything as it was. */
export const changedNothing = (error: unknown): unknown => {
  if (error instanceof ApiError) return error.code === 'unavailable' && error.cause ? unavailable(error.cause, true) : error
  if (typeof error === 'object' && error !== null) harmless.add(error)
  return error
}

/** @param isHarmless whether nothing was changed; without a cause, the request was refused before anything was */
export const unavailable = (cause?: unknown, isHarmless = cause === undefined || harmless.has(cause as object)): ApiError =>
  new ApiError('unavailable', `The service is temporarily unavailable. ${isHarmless ? unchanged : mayHaveChanged}`, {
    headers: { 'retry-after': '2' },
    cause
  })

const unchanged = 'Nothing was changed; retry after the time in Retry-After.'
export const mayHaveChanged = 'It is unknown whether this took effect. Repeat it with the same Idempotency-Key, or read first.'

const noAnswer = () => Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })

/** Rejects after a time without an answer: as unavailable, unless with another error. */
export const inTime = <T>(answer: Promise<T>, ms: number, late: () => Error = noAnswer): Promise<T> => {
  let timer: NodeJS.Timeout
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms).unref()
  })
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}

/** 415: the body is not JSON. */
export const notJson = (cause?: unknown): ApiError =>
  new ApiError('validation_error', 'Send the body as JSON, with Content-Type: application/json.', { status: 415, cause })

/** 413: the body exceeds the limit of its route, in bytes. The rest is not read. */
export const tooLarge = (bytes: number, cause?: unknown): ApiError =>
  new ApiError('payload_too_large', `Request body too large: the maximum here is ${sizeText(bytes)}.`, { cause })

const sizeText = (bytes: number) => (bytes % 1024 ** 2 === 0 ? `${bytes / 1024 ** 2} MB` : `${bytes / 1024} KB`)

/**
 * Maps anything thrown to an ApiError. Unexpected errors reveal nothing to the client.
 * @param method of the request, if it is known
 */
export const toApiError = (error: unknown, method?: string): ApiError => {
  // The error may be that of other requests as well, which read after a change.
  const isRead = method === 'GET' || method === 'HEAD'
  if (error instanceof ApiError) return isRead ? (changedNothing(error) as ApiError) : error
  const { code, message, detail, statusCode } = (error ?? {}) as { [name in 'code' | 'message' | 'detail']?: string } & {
    statusCode?: number
  }
  const reason = code && Object.hasOwn(sqlstates, code) ? sqlstates[code]! : undefined
  if (reason === 'unavailable') return unavailable(error, true)
  if (code === 'QU038') return invalid([fault(['gate'], message!)])
  if (code === 'QU063' || code === 'QU065') return invalid([fault(['after'], message!)])
  if (code === 'QU048') return invalid([fault((detail ?? 'template').split('.'), message!)])
  if (reason) {
    const headers: Record<string, string> = {}
    if (reason === 'rate_limit_exceeded' || reason === 'gate_full') headers['retry-after'] = /^\d+$/.test(detail ?? '') ? detail! : '60'
    if (reason === 'idempotency_key_in_use') headers['retry-after'] = '1'
    return new ApiError(reason, message ?? reason, { headers, about: aboutOf(reason, detail), cause: error })
  }
  // Refused by the HTTP framework: too large, not JSON, an invalid length.
  if (statusCode === 413) return new ApiError('payload_too_large', 'Request body too large.', { cause: error })
  if (statusCode === 415) return notJson(error)
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new ApiError('validation_error', message ?? 'Malformed request.', { status: statusCode, cause: error })
  }
  if (isUnavailable(error)) return isRead ? unavailable(error, true) : unavailable(error)
  return new ApiError('internal_error', 'Internal error. It has been logged under the X-Request-Id of this response.', { cause: error })
}

const aboutOf = (code: ErrorCode, detail: string | undefined): About | undefined => {
  if (detail === undefined) return undefined
  if (code === 'key_taken') return { cue_id: detail }
  if (code === 'operation_running') return { operation_id: detail }
  if (code === 'already_decided') return JSON.parse(detail)
  return code === 'calendar_in_use' || code === 'gate_in_use' || code === 'cue_has_followers' ? { cue_ids: JSON.parse(detail) } : undefined
}

/** Whether a row stayed locked by another session for longer than the lock timeout. */
export const isLockTimeout = (error: unknown): boolean => (error as { code?: string } | null)?.code === '55P03'

/** Whether a statement met another one that had locked or changed the same rows. */
export const isConflict = (error: unknown): boolean => /^(55P03|40001|40P01)$/.test((error as { code?: string } | null)?.code ?? '')

/** Marks an error of connecting, whatever it is: the statement was not sent. */
export const unsent = <E>(error: E): E => Object.assign(error as object, { sent: false }) as E

const isUnsent = (error: unknown): boolean => {
  const { sent, message = '' } = (error ?? {}) as { sent?: boolean; message?: string }
  return (
    sent === false ||
    /^(timeout exceeded when|Connection terminated due to connection timeout|Client (has encountered|was closed))/.test(message)
  )
}

/** Whether an error of the database is that of its connection, so that any statement would have failed. */
export const isLost = (error: unknown): boolean => isUnsent(error) || /^(08|57P)/.test((error as { code?: string }).code ?? '')

/** Whether a standby has refused a table that only a primary has. */
const isStandby = (error: unknown): boolean => {
  const { code, message = '' } = (error ?? {}) as { code?: string; message?: string }
  return code === '0A000' && message.includes('during recovery')
}

/** Whether a statement got no answer in time. */
export const isSilent = (error: unknown): boolean => (error as Error | null)?.message === 'Query read timeout'

/**
 * Whether the database is unavailable, so that the same statement may succeed later: any error of connecting; SQLSTATE classes and codes, also
 * of missing rights and of the server's own faults; socket errors, the driver's own, and Citus's for a node that died. 25006 is a temporarily
 * read-only database, as in a failover.
 */
export const isUnavailable = (error: unknown): boolean => {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string }
  return (
    isUnsent(error) ||
    isSilent(error) ||
    /^(08|28|53|57|58|XX)...$|^(3D000|42501|55P03|40001|40P01|25P03|25006)$/.test(code) ||
    /^E(CONNREFUSED|CONNRESET|CONNABORTED|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|NOENT)$/.test(code) ||
    isStandby(error) ||
    message.startsWith('Connection terminated') ||
    message.startsWith('failure on connection marked as essential')
  )
}

/**
 * Whether an error may be due to one item of a batch, so that the others succeed without it. Missing rights, failing disks and internal errors
 * concern one row or all of them.
 */
export const mayBeOfOne = (error: unknown): boolean =>
  !isUnavailable(error) || (!isUnsent(error) && /^(42501|58...|XX...)$/.test((error as { code?: string }).code ?? ''))

/** Whether a statement that failed surely had no effect: it was not sent, or the server refused it. */
export const isRefused = (error: unknown): boolean => {
  const { code = '', cause } = error as { code?: string; cause?: unknown }
  return isUnsent(error) || isUnsent(cause) || (/^(\d|QU)[\dA-Z]+$/.test(code) && !/^(08|57P|58)/.test(code))
}

/**
 * Whether a statement failed because functions or views were replaced since it was planned. It had no effect, and succeeds when
 * planned again.
 */
export const isOutdated = (error: unknown): boolean => {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string }
  return (
    (/^(0A000|42883|42P01|42703|42704|42804)$/.test(code) && !isStandby(error)) ||
    (code === 'XX000' && /^(cache lookup failed|could not open relation)/.test(message))
  )
}
