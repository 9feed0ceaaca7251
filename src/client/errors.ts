/** An invalid field of a request. */
export type Detail = { type: string; loc: (string | number)[]; msg: string; input: unknown }

type About = {
  code: string
  message: string
  status?: number
  detail?: Detail[] | undefined
  requestId?: string | null | undefined
  retryAfter?: number | null | undefined
  sent?: boolean
  cause?: unknown
}

/**
 * A call that failed. `code` is the service's, such as `cue_not_found`, or one of
 * - `unreachable`: the connection failed or broke
 * - `timeout`: no response in time
 * - `unsendable`: the key or a header contains a character that headers cannot contain; nothing was sent
 * - `unexpected_answer`: the response did not come from the service, but for example from a proxy
 */
export class PgcueError extends Error {
  override name = 'PgcueError'
  readonly code: string
  /** The HTTP status; 0 without a response. */
  readonly status: number
  /** With 422: the invalid fields. */
  readonly detail: Detail[] | undefined
  /** Id of the request in the service's log. */
  readonly requestId: string | null
  /** Seconds to wait before a retry, as requested by the service. */
  readonly retryAfter: number | null
  /** False if the request cannot have reached the service. */
  readonly sent: boolean

  constructor({ code, message, status = 0, detail, requestId, retryAfter, sent = true, cause }: About) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status
    this.detail = detail
    this.requestId = requestId ?? null
    this.retryAfter = retryAfter ?? null
    this.sent = sent
  }
}

type ErrorBody = { error?: { code?: string; message?: string }; detail?: Detail[] }

/** Creates the error for a response with an error status, from the service or a proxy. */
export const refusalOf = (response: Response, body: unknown): PgcueError => {
  const { error, detail } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody
  const { status } = response
  const from = { status, requestId: response.headers.get('x-request-id'), retryAfter: retryAfterOf(response) }
  if (typeof error?.code === 'string') return new PgcueError({ code: error.code, message: error.message ?? error.code, detail, ...from })
  return new PgcueError({ code: 'unexpected_answer', message: `HTTP ${status}, not sent by the service itself`, ...from })
}

/** `Retry-After` in seconds; it may also be a date. */
const retryAfterOf = ({ headers }: Response): number | null => {
  const value = headers.get('retry-after')
  if (value === null) return null
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000
  return Number.isNaN(seconds) ? null : Math.max(0, seconds)
}

/** Socket errors that occur before anything is sent. */
const neverSent = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

/** Creates the error for a `fetch` that rejected without being aborted. */
export const unreachable = (error: unknown, url: string): PgcueError => {
  const { cause } = error as { cause?: { code?: string; message?: string; errors?: { code?: string }[] } }
  const codes = [cause?.code, ...(cause?.errors ?? []).map(part => part.code)]
  const why = codes.find(Boolean) ?? cause?.message ?? (error as Error).message
  return new PgcueError({
    code: 'unreachable',
    message: `${url} is unreachable: ${why}`,
    sent: !codes.some(code => code !== undefined && neverSent.includes(code)),
    cause: error
  })
}
