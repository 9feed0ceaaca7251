/** Calls of the API with the session's cookie. */
import { serviceRoot } from './root.ts'

/** A refusal, or a service that did not answer: `status` is then 0. */
export class Failure extends Error {
  readonly status: number
  readonly code: string
  /** Invalid fields by their path, such as `schedule.cron`. */
  readonly fields: Record<string, string>
  /** Seconds after which to try again. */
  readonly retryAfter: number
  constructor(status: number, code: string, message: string, fields: Record<string, string> = {}, retryAfter = 0) {
    super(message)
    this.status = status
    this.code = code
    this.fields = fields
    this.retryAfter = retryAfter
  }
}

export const failureOf = (error: unknown): Failure => (error instanceof Failure ? error : new Failure(0, 'bug', String(error)))

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type Query = Record<string, string | number | boolean | readonly string[] | undefined>
type Options = { query?: Query; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal }

/** How far the service's clock is ahead of this one, in ms, and the calls that the rate limit still allows. */
export const service = { aheadMs: 0, callsLeft: Number.POSITIVE_INFINITY, callsPerMinute: 60 }
/** Where a refusal is about what was entered. */
const signingIn = ['/v1/auth/browser-session', '/v1/operator/session']
let whenSignedOut = () => {}
/** Called when the session has ended. */
export const onSignedOut = (call: () => void): void => {
  whenSignedOut = call
}

export const call = async <T>(method: Method, path: string, { query = {}, body, headers, signal }: Options = {}): Promise<T> => {
  const target = `${path}${queryText(query)}`
  const response =
    (method === 'GET' && (await early(target))) ||
    (await fetch(`${serviceRoot}${target}`, {
      method,
      headers: { accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: 'same-origin',
      signal
    }).catch(error => {
      if (signal?.aborted) throw error
      throw new Failure(0, 'unreachable', 'The service is not responding.')
    }))
  const text = await response.text()
  note(response.headers)
  if (response.ok) return (text === '' ? null : parseExactly(text)) as T
  const failure = refusalOf(response, text)
  if (failure.status === 401 && !signingIn.includes(path)) whenSignedOut()
  throw failure
}

/** The answer to a request that `early.ts` has sent, once. After a refusal, none is used: the session may be another one by then. */
const early = async (target: string): Promise<Response | undefined> => {
  const response = await window.early?.get(target)
  window.early?.delete(target)
  if (response?.ok === false) delete window.early
  return response
}

const note = (headers: Headers) => {
  const date = Date.parse(headers.get('date') ?? '')
  if (date) service.aheadMs = Math.abs(date - Date.now()) < 2000 ? 0 : date - Date.now()
  service.callsLeft = Number(headers.get('x-ratelimit-remaining') ?? Number.POSITIVE_INFINITY)
  service.callsPerMinute = Number(headers.get('x-ratelimit-limit') ?? 60)
}

export const queryText = (query: Query): string => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue
    for (const item of Array.isArray(value) ? value : [value]) parameters.append(name, String(item))
  }
  const text = parameters.toString()
  return text && `?${text}`
}

type ErrorBody = { error?: { code?: string; message?: string }; detail?: { loc: (string | number)[]; msg: string }[] }

const refusalOf = ({ status, headers }: Response, text: string): Failure => {
  let body: ErrorBody = {}
  try {
    body = JSON.parse(text)
  } catch {} // from a proxy
  const fields: Record<string, string> = {}
  const inWords = (text: string) => text.replace(/String should match pattern '.*'/s, 'has characters that are not allowed here')
  for (const { loc, msg } of body.detail ?? []) fields[loc.filter(part => part !== 'body').join('.')] ??= inWords(msg)
  const { code = 'unavailable', message = `The service answered ${status}.` } = body.error ?? {}
  return new Failure(status, code, inWords(message), fields, Number(headers.get('retry-after') ?? 0))
}

declare global {
  interface JSON {
    rawJSON?: (text: string) => unknown
  }
}
type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown

/** Parses JSON without losing digits: a number that would change keeps its text, where the browser can do that. */
export const parseExactly = (text: string): unknown => {
  const keep: Reviver = (_, value, context) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source && JSON.rawJSON
      ? JSON.rawJSON(context.source)
      : value
  return JSON.parse(text, keep)
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> => call<T>('GET', path, { query, signal })
export const post = <T>(path: string, body?: unknown, headers?: Record<string, string>): Promise<T> =>
  call<T>('POST', path, { body, headers })
