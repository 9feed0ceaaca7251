/** The HTTP service: plugins, then routes, in order. Start reading here. */
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, type FastifyPluginAsync, type FastifyReply, type FastifyServerOptions } from 'fastify'
import { Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import auth from './accounts/auth.ts'
import lists from './accounts/lists.ts'
import accounts from './accounts/routes.ts'
import alerts from './alerts/routes.ts'
import approvals from './approvals/routes.ts'
import billing from './billing/routes.ts'
import blog from './blog/routes.ts'
import calendars from './calendars/routes.ts'
import eventEndpoints from './channels/endpoint-routes.ts'
import channels from './channels/routes.ts'
import type { Config } from './config.ts'
import costs from './costs/routes.ts'
import cues from './cues/routes.ts'
import dashboard from './dashboard/routes.ts'
import { type Clock, createClock } from './database/clock.ts'
import { followDatabase } from './database/follow-clock.ts'
import { createFunctions, type Functions } from './database/functions.ts'
import { createWaiting, type Waiting } from './database/long-poll.ts'
import { createOutageLog, type OutageLog } from './database/outage-log.ts'
import { createTransactions } from './database/transaction.ts'
import { createTurns } from './database/turns.ts'
import type { DB } from './db.types.ts'
import { type AddressRules, createAddressRules } from './deliveries/address.ts'
import echo from './echo/routes.ts'
import { announceEvents } from './events/announce.ts'
import events from './events/routes.ts'
import executions from './executions/routes.ts'
import gates from './gates/routes.ts'
import guide from './guide/routes.ts'
import { createLook } from './health/cached-health.ts'
import type { Found } from './health/check.ts'
import health from './health/routes.ts'
import body from './http/body.ts'
import http, { type Patience, serverOptions } from './http/http.ts'
import type { ResponseLimits } from './http/in-flight.ts'
import securityHeaders from './http/security-headers.ts'
import { validatorCompiler } from './http/validation.ts'
import mcp from './mcp/routes.ts'
import memory from './memory/routes.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import metricsRoutes from './metrics/routes.ts'
import description from './openapi/description.ts'
import docs from './openapi/docs.ts'
import operations from './operations/routes.ts'
import operator from './operator/routes.ts'
import outcomes from './outcomes/routes.ts'
import overview from './overview/routes.ts'
import schedules from './schedule/routes.ts'
import { loggerOptions } from './startup/log.ts'
import support from './support/routes.ts'
import { type Traces, untraced } from './traces/traces.ts'
import usage from './usage/routes.ts'
import workers from './workers/routes.ts'

declare module 'fastify' {
  interface FastifyInstance {
    config: Config
    outageLog: OutageLog
    /** SQL functions, which make all changes. Calls for an account use at most three quarters of the connections at a time. */
    fn: Functions
    /** The same without that limit, for statements that serve many accounts. */
    shared: Functions
    /** Begins a transaction of an account with its first call, after calling `first`. */
    transaction: ReturnType<typeof createTransactions>
    /** The views of schema `cue`, for all reads. */
    db: Kysely<DB>
    clock: Clock
    /** The database's current time; in tests, the test's. */
    now: () => Date
    /** Rules for callback addresses. */
    rules: AddressRules
    metrics: Metrics
    traces: Traces
    /** Reads the service's health from the database; null if it does not answer. */
    lookAtHealth: () => Promise<Found | null>
    /** The apps of all cells by number, including this one. */
    cells: Pick<FastifyInstance, 'config' | 'db' | 'fn' | 'lookAtHealth' | 'lookAtFigures' | 'measure'>[]
    /** Responds with 404, or with 405 if the path exists for other methods. */
    refuseUnknown: (request: FastifyRequest, reply: FastifyReply) => FastifyReply
    /** Aborted when the service begins to stop. Handlers that hold a request open then respond. */
    closing: AbortSignal
    /** Requests that wait, in handlers of the API. */
    waiting: Waiting
  }
}

export type Options = {
  config: Config
  pool: pg.Pool
  /** Created from the configuration by default. */
  rules?: AddressRules
  /** The registry shared with the engine of the same process. */
  metrics?: Metrics
  /** None by default. */
  traces?: Traces
  /** For tests: the time passed to SQL functions and returned by `app.now`. */
  clock?: () => Date
  /** Logs database outages for the whole replica. */
  outageLog?: OutageLog
  logger?: FastifyBaseLogger
  /** Destination of log lines if no logger is given; stdout by default. */
  logStream?: { write: (line: string) => void }
  /** Registered before all routes, for the generator of the API description. */
  watchRoutes?: FastifyPluginAsync
  patience?: Patience
  responseLimits?: ResponseLimits
}

/** Builds the service. It doesn't listen, and uses the database only when a request needs it. */
export const build = async (options: Options) => {
  const { config, pool, rules, clock: fixed, logger, logStream, patience, responseLimits, outageLog } = options
  const { metrics = createMetrics(), traces = untraced } = options
  const logging = { ...loggerOptions(config.logLevel), stream: logStream, formatters: { log: traces.line } }
  const log = logger ? { loggerInstance: logger } : { logger: logging }
  const server: FastifyServerOptions = { ...serverOptions(patience), ...log, trustProxy: hops(config.trustProxy) }
  const app = Fastify(server).withTypeProvider<TypeBoxTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)

  const clock = createClock(fixed)
  app.decorate('config', config)
  app.decorate('outageLog', outageLog ?? createOutageLog(app.log))
  const limits = createTurns(Math.max(1, Math.floor(pool.options.max * 0.75)))
  app.decorate('fn', traces.functions(createFunctions(pool, fixed, limits)))
  app.decorate('transaction', createTransactions(pool, limits, { clock: fixed, trace: traces.functions }))
  app.decorate('shared', createFunctions(pool, fixed))
  app.decorate('db', new Kysely<DB>({ dialect: new PostgresDialect({ pool }), log: traces.queries }).withSchema('cue'))
  app.decorate('clock', clock)
  app.decorate('now', clock.now)
  app.decorate('rules', rules ?? createAddressRules({ allowCidrs: config.callbackAllowCidrs, allowHttp: config.callbackAllowHttp }))
  app.decorate('metrics', metrics)
  app.decorate('traces', traces)
  metrics.watchPool('api', pool)
  app.decorate('cells', [app])
  app.decorate(
    'lookAtHealth',
    createLook(app, async () => {
      const [health, last_taken_at, held] = await Promise.all([app.fn.serviceHealth({}), app.fn.lastTakenAt({}), app.fn.heldReason({})])
      return { ...health, last_taken_at, held }
    })
  )

  if (!fixed) followDatabase(app)
  await app.register(traces.requests)
  await app.register(securityHeaders)
  await app.register(http, { responseLimits })
  await app.register(auth)
  await app.register(lists)
  await app.register(body)
  if (options.watchRoutes) await app.register(options.watchRoutes)
  await app.register(description)

  await app.register(docs)
  await app.register(health)
  await app.register(metricsRoutes)
  if (!config.roles.api) return app // a replica with only the engine serves just these
  const waiting = createWaiting({ config, fn: app.fn, now: app.now, log: app.log, closing: app.closing })
  app.decorate('waiting', waiting)
  announceEvents(app)
  app.addHook('onClose', () => waiting.close())
  await app.register(echo)
  await app.register(cues)
  await app.register(executions)
  await app.register(approvals)
  await app.register(operations)
  await app.register(schedules)
  await app.register(calendars)
  await app.register(gates)
  await app.register(workers)
  await app.register(outcomes)
  await app.register(costs)
  await app.register(overview)
  await app.register(alerts)
  await app.register(channels)
  await app.register(events)
  await app.register(eventEndpoints)
  await app.register(mcp)
  await app.register(accounts)
  await app.register(usage)
  await app.register(billing)
  await app.register(support)
  await app.register(memory)
  await app.register(blog)
  await app.register(guide)
  await app.register(operator)
  await app.register(dashboard)
  return app
}

/** Fastify takes a number of proxies as a function of the hop; the nearest is hop 0. */
const hops = (trust: Config['trustProxy']) => (typeof trust === 'number' ? (_address: string, hop: number) => hop < trust : trust)

export type App = Awaited<ReturnType<typeof build>>
