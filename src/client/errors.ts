/** One thing wrong with one field of a request. */
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
 * A call that did not succeed. `code` is the service's own, such as `cue_not_found`, or one of
 * - `unreachable`: no connection, or it broke
 * - `timeout`: no answer in time
 * - `unsendable`: the key, or a header, has a character that no header can have; nothing was sent
 * - `unexpected_answer`: something else than the service answered, such as a proxy
 */
export class PgcueError extends Error {
  override name = 'PgcueError'
  readonly code: string
  /** The HTTP status; 0 where nothing was answered. */
  readonly status: number
  /** Only with 422: what is wrong with which field. */
  readonly detail: Detail[] | undefined
  /** What the service's log calls this request. */
  readonly requestId: string | null
  /** Seconds after which the service wants to be asked again. */
  readonly retryAfter: number | null
  /** False where the request cannot have reached the service. */
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

/** What a refusal of the service, or of anything in between, says. */
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

/** Errors of sockets that come before anything was sent. */
const neverSent = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

/** What `fetch` rejected with, where nobody aborted it. */
export const unreachable = (error: unknown, url: string): PgcueError => {
  const { cause } = error as { cause?: { code?: string; message?: string; errors?: { code?: string }[] } }
  const codes = [cause?.code, ...(cause?.errors ?? []).map(one => one.code)]
  const why = codes.find(Boolean) ?? cause?.message ?? (error as Error).message
  return new PgcueError({
    code: 'unreachable',
    message: `${url} is unreachable: ${why}`,
    sent: !codes.some(code => code !== undefined && neverSent.includes(code)),
    cause: error
  })
}
