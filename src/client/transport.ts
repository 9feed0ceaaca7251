/** One HTTP call: sent, timed, tried again where that is safe. */
import { PgcueError, refusalOf, unreachable } from './errors.ts'

export type ClientOptions = {
  /** Where the service is, such as `http://localhost:8080`. */
  baseUrl: string
  /** The bearer: an API key, an execution's own token, or a session. Public calls need none. */
  apiKey?: string | undefined
  /** In place of the global `fetch`. */
  fetch?: typeof fetch
  /** Milliseconds for one try; 30,000 by default. What a call waits for is added. */
  timeoutMs?: number
  /** How many times more a call is tried; 3 by default. */
  retries?: number
  /** In place of `JSON.parse`, for instance to keep every digit of long integers. May return a promise. */
  parse?: (text: string) => unknown
  /** In place of `JSON.stringify`. */
  stringify?: (value: unknown) => string
  /** Sent as `User-Agent`, where the platform allows it. */
  userAgent?: string
}

/** What any call takes besides. */
export type CallOptions = {
  signal?: AbortSignal | undefined
  timeoutMs?: number
  retries?: number
  /** For this call in place of the client's. */
  apiKey?: string | undefined
  headers?: Record<string, string | undefined>
}

export type Query = Record<string, string | number | boolean | null | undefined>

type Request = {
  query?: Query | undefined
  body?: unknown
  headers?: Record<string, string | undefined>
  /** Whether asking twice does no more than asking once. GET, PATCH and DELETE always are so. */
  repeatable?: boolean
  /** Seconds that the service may hold the request. */
  wait?: number | undefined
}

/** No wait for another try is longer; what asks for more is refused at once. */
const longestWaitMs = 60_000
/** Answers after which the same may succeed. */
const passing = [408, 429, 502, 503, 504]

export type Transport = ReturnType<typeof createTransport>

/** @returns `call(method, path, request?, options?)`, which gives the parsed answer or throws a PgcueError. */
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
    const { repeatable = method !== 'POST' } = request
    checkHeaders({ ...bearer(options.apiKey), ...request.headers, ...options.headers })
    const retries = options.retries ?? defaults.retries ?? 3
    const url = base + path + queryText(request.query)
    for (let tries = 0; ; tries++) {
      try {
        return (await once(method, url, request, options)) as T
      } catch (error) {
        if (!(error instanceof PgcueError)) throw error
        // The try before, whose answer was lost, did it.
        if (method === 'DELETE' && tries > 0 && error.status === 404) return undefined as T
        const waitMs = pauseBefore(tries + 1, error)
        if (tries >= retries || waitMs > longestWaitMs || !mayTryAgain(error, repeatable)) throw error
        await pause(waitMs, options.signal)
      }
    }
  }
  return { base, call }
}

const bearer = (apiKey: string | undefined) => ({ authorization: apiKey && `Bearer ${apiKey}` })

/** `fetch` would say that nothing can be reached, with the value in it. White space around it is no harm. @throws PgcueError */
const checkHeaders = (headers: Record<string, string | undefined>) => {
  for (const [name, value = ''] of Object.entries(headers)) {
    if (/^[\t\x20-\x7e\x80-\xff]*$/.test(String(value).replace(/^[\t\r\n ]+|[\t\r\n ]+$/g, ''))) continue
    const what = name === 'authorization' ? 'The API key' : `The value of the header ${name}`
    const rest = name === 'x-worker-id' ? '; identify the claim by its claimToken instead' : ''
    throw new PgcueError({ code: 'unsendable', message: `${what} contains a character that is not allowed in headers${rest}`, sent: false })
  }
}

/** A request that never arrived, or was refused for its rate, did nothing; others may be sent twice only if that is harmless. */
const mayTryAgain = ({ code, status, sent }: PgcueError, repeatable: boolean): boolean =>
  !sent || status === 429 || (repeatable && (code === 'unreachable' || code === 'timeout' || passing.includes(status)))

/** Milliseconds: what the service asks for, or twice as long each time; at random, so that callers do not come all at once. */
export const pauseBefore = (tries: number, error?: PgcueError): number => {
  const most = Math.min(250 * 2 ** tries, 10_000)
  return error?.retryAfter == null ? most * (0.5 + Math.random() / 2) : error.retryAfter * 1000 + Math.random() * 250
}

/** @throws what the signal was aborted with */
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

/** A signal that is aborted after a time, or with another. */
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
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  return given.length ? `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}` : ''
}
