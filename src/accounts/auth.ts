/** Authentication: every route declares its scope, and one SQL call per request checks key, scope and limits. */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Limits } from '../config.ts'
import { ApiError, changedNothing, inTime, isUnavailable } from '../errors.ts'
import { answerWithinMs } from '../http/http.ts'
import { createTokenCheck, type TokenCheck } from '../metrics/access.ts'
import { type Caller, createAdmission, type Needed, refusals, type Scope } from './admission.ts'
import { credentialOf, refuseOtherOrigins } from './cookies.ts'
import { isFromOperator } from './operator.ts'

/** Access of a route: one of `scope`, `public` (rate limited by address) or `exempt` (public, without a rate limit). */
declare module 'fastify' {
  interface FastifyContextConfig {
    /** A list means any one of these scopes. */
    scope?: Needed
    public?: boolean
    exempt?: boolean
    /** Also accepts the token of the execution named by `:execution_id`. */
    executionToken?: boolean
    /** Also accepts the operator's token, without an account. */
    operator?: boolean
  }
  interface FastifyInstance {
    /** Returns headers, valid once, for an internal request on behalf of one already counted, so that it is not counted again. */
    countedAlready: () => Record<string, string>
    /** Compares a bearer with a token of the service, unless its address sent too many wrong ones. */
    hasToken: TokenCheck
  }
  interface FastifyRequest {
    /** Null on public routes, and for the operator's token. Spread last into a function's arguments. */
    caller: Caller
    /** Scopes of the caller's credential. */
    scopes: readonly Scope[]
    /** Limits of the caller's account. Null on public routes. */
    limits: Limits
    /** Whether the caller's credential is the session cookie of a browser. */
    hasSessionCookie: boolean
  }
}

const passHeader = 'x-pgcue-counted'
/** In headers that every response has, as numbers, by the specification. */
const noLimit = 2 ** 31 - 1

export default fp(
  async (app: FastifyInstance) => {
    const { config, log, now, closing, traces } = app
    const admit = traces.call('admit', createAdmission({ fn: app.shared, config, log, now, closing }))
    const counted = new Set<string>()
    app.decorate('countedAlready', () => {
      const pass = randomUUID()
      counted.add(pass)
      return { [passHeader]: pass }
    })
    app.decorate('hasToken', createTokenCheck(config, now))
    app.decorateRequest('caller', null as unknown as Caller)
    app.decorateRequest('scopes', null as unknown as readonly Scope[])
    app.decorateRequest('limits', null as unknown as Limits)
    app.decorateRequest('hasSessionCookie', false)

    app.addHook('onRoute', ({ method, url, config = {} }) => {
      const said = [config.scope, config.public, config.exempt].filter(Boolean).length
      if (said !== 1) throw new Error(`${method} ${url} must set exactly one of scope, public, exempt`)
      if (config.executionToken && !url.includes(':execution_id'))
        throw new Error(`${method} ${url} has executionToken but no :execution_id`)
    })

    app.addHook('onRequest', async (request, reply) => {
      const { scope, exempt, operator, executionToken } = request.routeOptions.config
      const isCounted = counted.delete(String(request.headers[passHeader]))
      if (exempt || request.method === 'OPTIONS') return
      if (operator && isFromOperator(request, app.config, app.now(), app.hasToken)) {
        if (request.headers.authorization === undefined && request.method !== 'GET') refuseOtherOrigins(request.raw, app.origins)
        return
      }
      const { execution_id = null } = request.params as { execution_id?: string }
      const { authorization, isCookie } = credentialOf(request.headers, app.config)
      request.hasSessionCookie = isCookie
      if (isCookie && scope && request.method !== 'GET' && request.method !== 'HEAD') refuseOtherOrigins(request.raw, app.origins)
      const askedAt = performance.now()
      const asking = admit({
        authorization,
        isCookie,
        address: request.ip,
        // Unknown paths need no scope, but count towards the caller's rate limit.
        scope: request.is404 ? 'any' : (scope ?? null),
        isCounted,
        execution_id: executionToken ? execution_id : null
      })
      const admitted = await inTime(asking, scope ? answerWithinMs : answerWithinMs / 2).catch(error => {
        // Without a database nothing can be counted, and public routes may work without it.
        if (scope || !isUnavailable(error)) throw changedNothing(error)
      })
      request.remainingMs -= performance.now() - askedAt
      if (!admitted) return
      const { error, caller, rate, retry_after, usage_warning } = admitted
      const { limit, remaining, reset } = rate
      reply.headers({ 'x-ratelimit-limit': limit ?? noLimit, 'x-ratelimit-remaining': remaining ?? noLimit, 'x-ratelimit-reset': reset })
      if (usage_warning) reply.header('x-service-usage-warning', 'approaching_limit')
      if (error && (error === 'rate_limit_exceeded' || !request.is404))
        throw new ApiError(error, refusals[error], retry_after === null ? {} : { headers: { 'retry-after': String(retry_after) } })
      if (caller) request.caller = caller
      request.scopes = admitted.scopes
      if (admitted.plan) request.limits = { ...app.config.plans[admitted.plan], ...admitted.limits }
    })
  },
  { name: 'auth' }
)
