/** Sends one HTTP call, with timeouts and retries. */
import { PgcueError, refusalOf, unreachable } from './errors.ts'

export type ClientOptions = {
  /** Address of the service, such as `http://localhost:8080`. */
  baseUrl: string
  /** The bearer token: an API key, an execution's token or a session. Public calls need none. */
  apiKey?: string | undefined
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch
  /** Milliseconds per try; 30,000 by default. The call's `wait` is added. */
  timeoutMs?: number
  /** Maximum number of retries; 3 by default. */
  retries?: number
  /** Called before the pause that precedes a retry. */
  onRetry?: (error: PgcueError, waitMs: number) => void
  /** Replaces `JSON.parse`, for example to keep all digits of long integers. May return a promise. */
  parse?: (text: string) => unknown
  /** Replaces `JSON.stringify`. */
  stringify?: (value: unknown) => string
  /** Sent as `User-Agent`, if the platform allows it. */
  userAgent?: string
}

/** Options of every call. */
export type CallOptions = {
  signal?: AbortSignal | undefined
  timeoutMs?: number
  retries?: number
  /** Replaces the client's key for this call. */
  apiKey?: string | undefined
  /** Sent as `If-Match`: the call fails with `version_conflict` if the cue has another version. */
  ifVersion?: number | undefined
  /** Sent as `Idempotency-Key` by calls that take one: the effect happens once per key in 24 hours, so the call is retried if the response is lost. */
  idempotencyKey?: string | undefined
  headers?: Record<string, string | undefined>
}

/** A list is sent as a repeated parameter. */
export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>

type Request = {
  query?: Query | undefined
  body?: unknown
  headers?: Record<string, string | undefined>
  /** Whether the call is safe to repeat. GET, PUT, PATCH and DELETE are, unless they expect a version. */
  repeatable?: boolean
  /** Seconds for which the service may hold the request. */
  wait?: number | undefined
}

/** Maximum wait before a retry; if the service asks for more, the call fails. */
const longestWaitMs = 60_000
/** Statuses after which a retry may succeed. */
const passing = [408, 429, 502, 503, 504]

export type Transport = ReturnType<typeof createTransport>

/** @returns `call(method, path, request?, options?)`, which resolves to the parsed response and rejects with a PgcueError */
export const createTransport = (defaults: ClientOptions) => {
  const { baseUrl, parse = JSON.parse, stringify = JSON.stringify, userAgent } = defaults
  if (!/^https?:\/\/./.test(baseUrl)) throw new TypeError(`baseUrl must be a URL that starts with http:// or https://, not ${baseUrl}`)
  const base = baseUrl.replace(/\/+$/, '')
  checkHeaders(bearer(defaults.apiKey))

  const once = async (method: string, url: string, request: Request, options: CallOptions): Promise<unknown> => {
    const { body, wait = 0 } = request
    const apiKey = options.apiKey ?? defaults.apiKey
    const headers = definedOnly({
      accept: 'application/json',
      'user-agent': userAgent,
      ...bearer(apiKey),
      'content-type': body === undefined ? undefined : 'application/json',
      'if-match': options.ifVersion === undefined ? undefined : `"${options.ifVersion}"`,
      'idempotency-key': options.idempotencyKey,
      ...request.headers,
      ...options.headers
    })
    const init: RequestInit = { method, headers, redirect: 'manual' }
    if (body !== undefined) init.body = stringify(body)
    const limit = deadline((options.timeoutMs ?? defaults.timeoutMs ?? 30_000) + wait * 1000, options.signal)
    try {
      const response = await (defaults.fetch ?? fetch)(url, { ...init, signal: limit.signal })
      return await read(response, await response.text())
    } catch (error) {
      if (error instanceof PgcueError) throw error
      options.signal?.throwIfAborted()
      if (limit.signal.aborted) throw new PgcueError({ code: 'timeout', message: `${base} did not respond in time`, cause: error })
      throw unreachable(error, base)
    } finally {
      limit.end()
    }
  }

  const read = async (response: Response, text: string): Promise<unknown> => {
    if (response.ok && text === '') return undefined
    let body: unknown
    try {
      body = await parse(text)
    } catch {
      if (!response.ok) throw refusalOf(response, undefined)
      const message = `${base} did not respond with JSON. Check the address of the service.`
      throw new PgcueError({ code: 'unexpected_answer', message, status: response.status })
    }
    if (!response.ok) throw refusalOf(response, body)
    return body
  }

  const call = async <T>(method: string, path: string, request: Request = {}, options: CallOptions = {}): Promise<T> => {
    // A repetition would be in conflict with what the lost try has done.
    const { repeatable = method !== 'POST' && options.ifVersion === undefined } = request
    checkHeaders({ ...bearer(options.apiKey), ...request.headers, ...options.headers })
    const retries = options.retries ?? defaults.retries ?? 3
    const url = base + path + queryText(request.query)
    for (let tries = 0; ; tries++) {
      try {
        return (await once(method, url, request, options)) as T
      } catch (error) {
        if (!(error instanceof PgcueError)) throw error
        // A previous try, whose response was lost, has deleted it.
        if (method === 'DELETE' && tries > 0 && error.status === 404) return undefined as T
        const waitMs = pauseBefore(tries + 1, error)
        if (tries >= retries || waitMs > longestWaitMs || !mayTryAgain(error, repeatable)) throw error
        defaults.onRetry?.(error, waitMs)
        await pause(waitMs, options.signal)
      }
    }
  }
  return { base, call }
}

const bearer = (apiKey: string | undefined) => ({ authorization: apiKey && `Bearer ${apiKey}` })

/**
 * Checks header values, since `fetch` would report an unreachable service and include the value. Surrounding white space is allowed.
 * @throws PgcueError
 */
const checkHeaders = (headers: Record<string, string | undefined>) => {
  for (const [name, value = ''] of Object.entries(headers)) {
    if (/^[\t\x20-\x7e\x80-\xff]*$/.test(String(value).replace(/^[\t\r\n ]+|[\t\r\n ]+$/g, ''))) continue
    const what = name === 'authorization' ? 'The API key' : `The value of the header ${name}`
    const rest = name === 'x-worker-id' ? '; identify the claim by its claimToken instead' : ''
    throw new PgcueError({ code: 'unsendable', message: `${what} contains a character that is not allowed in headers${rest}`, sent: false })
  }
}

/** A request that never arrived or was rate-limited had no effect; others are repeated only if that is safe. */
const mayTryAgain = ({ code, status, sent }: PgcueError, repeatable: boolean): boolean =>
  !sent || status === 429 || (repeatable && (code === 'unreachable' || code === 'timeout' || passing.includes(status)))

/**
 * Milliseconds before the next try: as requested by the service, or doubled each time, with jitter so that clients don't retry
 * simultaneously.
 */
export const pauseBefore = (tries: number, error?: PgcueError): number => {
  const most = Math.min(250 * 2 ** tries, 10_000)
  return error?.retryAfter == null ? most * (0.5 + Math.random() / 2) : error.retryAfter * 1000 + Math.random() * 250
}

/** @throws the signal's reason if aborted */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const stop = () => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })

/** Returns a signal that is aborted after a time, or together with another. */
export const deadline = (ms: number, outer?: AbortSignal): { signal: AbortSignal; end: () => void } => {
  const controller = new AbortController()
  const abort = () => controller.abort(outer?.reason)
  if (outer?.aborted) abort()
  outer?.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => controller.abort(), ms)
  return {
    signal: controller.signal,
    end: () => {
      clearTimeout(timer)
      outer?.removeEventListener('abort', abort)
    }
  }
}

const definedOnly = (headers: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => Boolean(entry[1])))

const queryText = (query: Query = {}): string => {
  const parameters = Object.entries(query).flatMap(([name, value]) => {
    if (value === undefined || value === null) return []
    return [value].flat().map((item): [string, string] => [name, String(item)])
  })
  return parameters.length ? `?${new URLSearchParams(parameters)}` : ''
}
