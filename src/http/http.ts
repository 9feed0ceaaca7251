/** Everything that applies to all requests: hosts and origins, ids, one log line each, the form of errors, 404 and 405, CORS, timeouts, an orderly shutdown. */
import { randomUUID } from 'node:crypto'
import { type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import {
  type FastifyError,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController
} from 'fastify'
import fp from 'fastify-plugin'
import { ApiError, type ErrorCode, isConflict, toApiError, tooLarge, unavailable } from '../errors.ts'
import { MAX_BODY } from './body.ts'
import { serveRequests, watchConnections } from './connections.ts'
import { createInFlight, type InFlight, type ResponseLimits } from './in-flight.ts'
import { createOrigins, type Origins } from './origins.ts'
import { buildSerializer } from './serializer.ts'
import { refuseUnknownQuery } from './validation.ts'

/** Milliseconds that a client may take to send its headers, to send the whole request, and without sending or accepting anything. */
export type Patience = { headers: number; request: number; stalled?: number }

declare module 'fastify' {
  interface FastifyInstance {
    /** Responses that their clients have not read yet. */
    inFlight: InFlight
    origins: Origins
  }
  interface FastifyContextConfig {
    /** May compute for long while the database answers: many slots of many schedules. */
    computes?: true
  }
  interface FastifyRequest {
    /** Milliseconds that the request may still wait for the database. */
    remainingMs: number
    /** Of the error that it got. */
    errorCode: ErrorCode | null
  }
}

/** A request waits no longer for a database that does not answer, in addition to the time that it asks to wait. */
export const answerWithinMs = 9000
/** Of those that compute for long; each of their statements still has its own time. */
const computeWithinMs = 60_000

/** Options for Fastify itself; the plugin below does the rest. */
export const serverOptions = (patience: Patience = { headers: 20_000, request: 60_000 }) =>
  ({
    bodyLimit: MAX_BODY,
    schemaController: { compilersFactory: { buildSerializer } },
    // Against clients that send slowly or nothing. Time in handlers is not counted, so long polls are possible.
    requestTimeout: patience.request,
    // Against clients that don't read. Longer than any request waits.
    connectionTimeout: patience.stalled ?? 90_000,
    http: { headersTimeout: patience.headers, connectionsCheckingInterval: Math.min(5000, patience.headers) },
    // The maximum length of a URL, so that an overlong id gets a 404 like any other unknown id.
    routerOptions: { maxParamLength: 16_384 },
    // A caller's id is adopted if it can do no harm in a log, so that both sides' traces match.
    genReqId: ({ headers: { 'x-request-id': id } }) => (typeof id === 'string' && /^[\w.:-]{8,64}$/.test(id) ? id : randomUUID()),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    // Ours, below, responds in the API's form.
    return503OnClosing: false,
    clientErrorHandler: refuseSocket,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      reply.headers({ ...request.server.securityHeaders, 'x-request-id': request.id, 'cache-control': 'no-store', ...uncounted() })
      refuse(request.server.origins.refusalOf(request.raw) ?? toApiError(error), reply)
    }
  }) satisfies FastifyHttpOptions<Server>

/** Headers of responses that no limit counts: nothing is used, and the window is empty now. The auth hook sets those of all others. */
const uncounted = (now = new Date()) => ({
  'x-ratelimit-limit': '60',
  'x-ratelimit-remaining': '60',
  'x-ratelimit-reset': String(Math.ceil(now.getTime() / 1000))
})

const refuse = (error: ApiError, reply: FastifyReply) => {
  if (error.statusCode === 401) reply.header('www-authenticate', 'Bearer')
  return reply.code(error.statusCode).headers(error.headers).send(error.toJSON())
}

type HttpOptions = { responseLimits?: ResponseLimits }

export default fp(
  async (app: FastifyInstance, { responseLimits }: HttpOptions) => {
    const corsOrigins: readonly string[] = app.config.corsOrigins
    const stopping = new AbortController()
    serveRequests(app.server, app.routing)
    const closeIdle = watchConnections(app.server)
    const inFlight = createInFlight(responseLimits)
    app.decorate('inFlight', inFlight)
    const origins = createOrigins(app.config)
    app.decorate('origins', origins)
    app.decorateRequest('responseBytes', 0)
    app.decorateRequest('remainingMs', answerWithinMs)
    app.decorateRequest('errorCode', null)
    app.decorate('closing', stopping.signal)
    app.addHook('preClose', async () => {
      stopping.abort()
      closeIdle()
    })
    app.addHook('onSend', (request, reply, payload, done) => {
      if (stopping.signal.aborted) reply.header('connection', 'close')
      if (!reply.hasHeader('x-ratelimit-limit')) reply.headers(uncounted(app.now()))
      if (request.method !== 'HEAD') inFlight.add(request, reply, bytesOf(payload))
      done()
    })

    app.addHook('onRequest', (request, reply, done) => {
      reply.header('x-request-id', request.id).header('cache-control', 'no-store')
      if (corsOrigins.length) reply.headers({ vary: 'Origin' })
      const refusal = origins.refusalOf(request.raw)
      if (refusal) return void refuse(refusal, reply)
      const { origin } = request.headers
      if (origin && corsOrigins.includes(origin)) {
        reply.headers({ 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed })
      }
      if (stopping.signal.aborted) throw unavailable()
      // PostgreSQL stores no NUL in text.
      if (/%00/.test(request.url)) throw new ApiError('validation_error', 'The URL contains a NUL character.')
      done()
    })

    // After authentication, and before the body is read.
    app.addHook('preParsing', (request, _reply, _payload, done) => {
      refuseUnknownQuery(request)
      done()
    })

    // These lines have nothing to remove, and searching them would take a third of their time.
    const lines = app.log.child({}, { redact: [] })
    let isLost = false
    app.addHook('onResponse', (request, reply, done) => {
      const ms = Math.round(reply.elapsedTime)
      lines.info({ request_id: request.id, ...about(request), status: reply.statusCode, ms }, 'request ended')
      // Only a change that succeeds shows that a full disk has room again, or a standby has become the primary.
      if (isLost && request.method !== 'GET' && reply.statusCode < 300) {
        isLost = false
        app.outageLog.back('request')
      }
      done()
    })
    app.addHook('onRequestAbort', async request => request.log.info(about(request), 'request aborted by the client'))

    app.addHook('onRoute', route => {
      const { handler, url } = route
      if (!url.startsWith('/v1/')) return // pages and files wait for the CPU, if at all
      route.handler = function (request, reply) {
        return answered(handler.call(this, request, reply), request, reply)
      }
    })

    app.setErrorHandler((thrown, request, reply) => {
      const error =
        (thrown as FastifyError | null)?.code === 'FST_ERR_CTP_BODY_TOO_LARGE'
          ? tooLarge(request.routeOptions.bodyLimit, thrown)
          : toApiError(thrown, request.method)
      request.errorCode = error.code
      // Fastify would close the connection at once, and a client that is still sending would lose the response. So the rest is read and dropped.
      reply.removeHeader('connection')
      // Billing that is not configured is not an error of ours, and anyone can request it.
      if (error.statusCode >= 500 && error.code !== 'billing_not_configured') {
        const isOutage = error.code === 'unavailable'
        request.log[isOutage ? 'warn' : 'error']({ err: error.cause ?? error, code: error.code }, 'request failed')
        if (isOutage && !isConflict(error.cause)) isLost = app.outageLog.lost(error.cause, 'request') || isLost
      }
      return refuse(error, reply)
    })

    const paths = new Map<string, { pattern: RegExp; methods: Set<string> }>()
    app.addHook('onRoute', ({ method, url }) => {
      const path = paths.get(url) ?? { pattern: patternOf(url), methods: new Set() }
      for (const verb of [method].flat()) path.methods.add(verb)
      paths.set(url, path)
    })
    // For requests without a route; their bodies are not read.
    app.decorate('refuseUnknown', (request, reply) => {
      const { path } = splitUrl(request.url)
      const methods = [...paths.values()].filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => [...methods])
      const allow = [...new Set([...methods, 'OPTIONS'])].join(', ')
      if (!methods.length) return refuse(new ApiError('not_found', `Path ${path.slice(0, 200)} not found. See /docs.`), reply)
      reply.header('allow', allow)
      if (request.method === 'OPTIONS') {
        if (reply.hasHeader('access-control-allow-origin')) {
          const headers = request.headers['access-control-request-headers'] ?? 'authorization, content-type'
          reply.headers({ 'access-control-allow-methods': allow, 'access-control-allow-headers': headers, 'access-control-max-age': 600 })
        }
        return reply.code(204).send()
      }
      return refuse(new ApiError('method_not_allowed', `Method ${request.method} not allowed. Allowed here: ${allow}.`), reply)
    })
    app.setNotFoundHandler(app.refuseUnknown)
  },
  { name: 'http' }
)

/** Rejects when the time of a request is over; while a response is being sent, that takes its own time. */
const answered = (result: unknown, request: FastifyRequest, reply: FastifyReply): unknown => {
  if (!(result instanceof Promise)) return result
  const { wait = (request.body as { wait?: number } | null | undefined)?.wait } = request.query as { wait?: number }
  return new Promise((resolve, reject) => {
    const end = () => reply.sent || reply.raw.headersSent || reject(unavailable(new Error('the database did not answer in time')))
    const more = request.routeOptions.config.computes ? computeWithinMs : Math.min(Number(wait) || 0, 60) * 1000
    const timer = setTimeout(end, request.remainingMs + more)
    result.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** The path and the query of a request's target as the router reads them: decoded, without the host of an absolute-form target. */
export const splitUrl = (url: string): { path: string; query: string } => {
  const [, encoded = '', query = ''] = /^(?:https?:\/\/[^/?#]*)?([^?#]*)[?#]?(.*)$/is.exec(url)!
  try {
    return { path: decodeURI(encoded), query }
  } catch {
    return { path: encoded, query } // refused by the router
  }
}

/** Log fields of a request: the route's pattern rather than the path, which may contain a token. */
const about = ({ method, routeOptions, caller }: FastifyRequest) => ({
  method,
  route: routeOptions.url ?? null,
  account_id: caller?.account_id
})

const exposed =
  'x-request-id, etag, idempotency-replayed, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-service-usage-warning, retry-after'

const patternOf = (url: string) =>
  new RegExp(
    `^${url
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:\w+/g, '[^/]+')
      .replaceAll('*', '.*')}$`
  )

const bytesOf = (payload: unknown): number =>
  typeof payload === 'string' ? Buffer.byteLength(payload) : Buffer.isBuffer(payload) ? payload.length : 0

/** Responds on the socket to data that is not HTTP, or comes too late: it never becomes a request. */
function refuseSocket(error: NodeJS.ErrnoException, socket: Socket & { _httpMessage?: { headersSent: boolean } }) {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const [status, code, message] = socketErrors[error.code ?? ''] ?? [400, 'validation_error', 'Malformed HTTP request.']
  if (socket.writable && !socket._httpMessage?.headersSent) {
    const body = JSON.stringify({ error: { code, message, status } })
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${randomUUID()}`,
      ...Object.entries(uncounted()).map(([name, value]) => `${name}: ${value}`),
      'Connection: close'
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  }
  socket.destroySoon()
}

const socketErrors: Record<string, [number, ErrorCode, string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'validation_error', 'The request was not received in time. Send it again.'],
  HPE_HEADER_OVERFLOW: [431, 'validation_error', 'Request line and headers too long: the maximum is 16 KB.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'payload_too_large', 'Chunk extensions too long.']
}
