/** Workers: claimable executions, claims, leases and the registry. */
import { isUtf8 } from 'node:buffer'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sql } from 'kysely'
import { type Static, Type } from 'typebox'
import { constants } from '../catalog.ts'
import type { ClaimExecutionsRow } from '../database/functions.ts'
import { MAX_WAIT_SECONDS } from '../database/long-poll.ts'
import { shareReads } from '../database/shared-read.ts'
import { deriveKey, executionToken } from '../deliveries/signature.ts'
import { ApiError, invalid } from '../errors.ts'
import { goneSignal } from '../http/connections.ts'
import { Json } from '../json/canonical-json.ts'
import { PAGE_BYTES } from '../schemas.ts'
import { sent } from '../templates/sent.ts'
import { claimLease, createClaiming } from './claiming.ts'
import * as schemas from './schemas.ts'
import { claimTokenOf } from './token.ts'

const anonymous = 'anonymous-worker'
/** Upper bound for what a response has of an execution besides its payload: names and tasks have at most 255 characters. */
const restBytes = 8192
const sizeOf = (executions: { payload: string }[]) => executions.reduce((sum, { payload }) => sum + payload.length + restBytes, 0)

const claimRoutes: FastifyPluginAsyncTypebox = async app => {
  const { waiting } = app
  const claimNext = app.traces.call('claimNext', createClaiming(app.shared))
  const claimablePage = shareReads((query: Parameters<typeof app.fn.claimablePage>[0]) =>
    app.readList(query.account_id, () => app.fn.claimablePage(query))
  )
  const tokenKey = deriveKey(app.config.sessionSecret, 'execution-token')

  const shown = ({ payload, ...claim }: ClaimExecutionsRow) => ({
    claimed: true,
    ...claim,
    payload: new Json(payload),
    lease_seconds: constants.claimLeaseMs / 1000,
    execution_token: executionToken(tokenKey, claim.execution_id)
  })

  app.get(
    '/v1/executions/claimable',
    {
      config: { scope: ['read', 'worker'] },
      schema: {
        operationId: 'listClaimable',
        summary: 'List claimable executions, oldest first',
        description: 'Claims nothing: `POST /v1/executions/claim` does.',
        querystring: schemas.ClaimableQuery,
        response: { 200: schemas.Claimable }
      }
    },
    async (request, reply) => {
      const { task, limit, wait } = request.query
      const { account_id } = request.caller
      const ask = () => claimablePage({ account_id, task, limit })
      const executions = (await waiting.until({ account_id, waitMs: wait * 1000, signal: goneSignal(reply), ask })).map(sent)
      // Before the response is made: a wake-up may cause hundreds of them.
      app.inFlight.add(request, reply, sizeOf(executions))
      const has_more = executions[0]?.has_more ?? false
      return { executions: executions.map(({ payload, ...execution }) => ({ ...execution, payload: new Json(payload) })), has_more }
    }
  )

  app.post(
    '/v1/executions/:execution_id/claim',
    {
      config: { scope: 'worker', errors: ['already_claimed', 'service_held'] },
      schema: {
        operationId: 'claimExecution',
        summary: 'Claim one execution for a worker',
        description: 'One caller wins, the others get `already_claimed`. The claim lasts 15 minutes, and heartbeats extend it.',
        params: schemas.ClaimParams,
        body: schemas.ClaimRequest,
        response: { 200: schemas.Claim }
      }
    },
    async (request, reply) => {
      const worker_id = request.body?.worker_id ?? anonymous
      const claims = (await app.fn.claimExecutions({ worker_id, lease: claimLease, ...request.params, ...request.caller })).map(sent)
      if (claims.length === 0) throw new ApiError('already_claimed', 'This execution is already claimed or not pending. Claim another one.')
      await makeRoom(request, reply, claims)
      return shown(claims[0]!)
    }
  )

  app.post(
    '/v1/executions/claim',
    {
      config: { scope: 'worker', errors: ['nothing_claimable', 'service_held'] },
      schema: {
        operationId: 'claimNext',
        summary: 'Claim the next execution, or several at once',
        description:
          'Waits up to `wait` seconds for work; without any, `nothing_claimable`. The claim lasts 15 minutes, and heartbeats extend it.',
        body: schemas.ClaimNextRequest,
        response: { 200: schemas.Claims }
      }
    },
    async (request, reply) => {
      const { worker_id = anonymous, task, tasks, wait = 0, limit } = request.body ?? {}
      if (task && tasks)
        throw invalid([{ type: 'value_error', loc: ['body', 'tasks'], msg: 'Give either task or tasks, not both', input: tasks }])
      const { account_id } = request.caller
      const names = tasks ?? (task ? [task] : undefined)
      const ask = () => claimNext({ account_id, worker_id, tasks: names, limit: limit ?? 1 })
      const signal = goneSignal(reply)
      const claims = (await waiting.until({ account_id, waitMs: wait * 1000, signal, ask })).map(sent)
      if (signal.aborted) await giveBack(account_id, claims)
      else signal.addEventListener('abort', () => giveBack(account_id, claims))
      if (claims.length === 0)
        throw new ApiError(
          'nothing_claimable',
          `No execution is claimable now. Long-poll: wait up to \`wait\` seconds (max ${MAX_WAIT_SECONDS}) for work.`
        )
      await makeRoom(request, reply, claims)
      return limit === undefined ? shown(claims[0]!) : { executions: claims.map(shown) }
    }
  )

  /** Reserves room for the response, or releases the claims. @throws ApiError unavailable */
  const makeRoom = async (request: FastifyRequest, reply: FastifyReply, claims: ClaimExecutionsRow[]) => {
    try {
      app.inFlight.add(request, reply, sizeOf(claims))
    } catch (error) {
      await giveBack(request.caller.account_id, claims)
      throw error
    }
  }

  /** Releases claims that no client received, instead of waiting for their leases to expire. */
  const giveBack = async (account_id: string, claims: ClaimExecutionsRow[]) => {
    const releases = claims.map(({ execution_id, claim_token }) => app.fn.releaseExecution({ account_id, execution_id, claim_token }))
    for (const release of await Promise.allSettled(releases)) {
      if (release.status === 'rejected') app.log.warn({ err: release.reason }, 'undelivered claim not released; its lease must expire')
    }
  }
}

const leaseRoutes: FastifyPluginAsyncTypebox = async app => {
  app.post(
    '/v1/executions/:execution_id/heartbeat',
    {
      config: { scope: 'worker', executionToken: true, errors: ['claim_lost', 'execution_not_claiming', 'not_execution_owner'] },
      schema: {
        operationId: 'heartbeatExecution',
        summary: 'Extend the lease of a claim',
        description: 'To 15 minutes from now. `claim_lost` means: stop working, the execution belongs to another worker or has ended.',
        params: schemas.ExecutionParams,
        headers: schemas.HeartbeatHeaders,
        response: { 200: schemas.Extended }
      }
    },
    async request => {
      const worker_id = request.headers['x-worker-id']
      const claim_token = claimTokenOf(request.headers)
      if (worker_id === undefined && claim_token === undefined && !isOwnToken(request)) {
        throw invalid([{ type: 'missing', loc: ['header', 'X-Worker-Id'], msg: 'Field required', input: null }])
      }
      const beat = (name?: string) =>
        app.fn.heartbeatExecution({ worker_id: name, claim_token, lease: claimLease, ...request.params, ...request.caller })
      const lease_extended_until = await beat(worker_id).catch(error => {
        const name = asUtf8(worker_id)
        if (error.code !== 'QU017' || name === undefined || name === worker_id) throw error
        return beat(name)
      })
      return { acknowledged: true, lease_extended_until }
    }
  )

  app.post(
    '/v1/executions/:execution_id/release',
    {
      config: { scope: 'worker', errors: ['claim_lost', 'execution_not_claiming'] },
      schema: {
        operationId: 'releaseExecution',
        summary: 'Release a claim',
        description: 'The execution can be claimed again at once. At most 100 times per execution.',
        params: schemas.ExecutionParams,
        headers: schemas.ReleaseHeaders,
        response: { 200: schemas.Released }
      }
    },
    async request => {
      await app.fn.releaseExecution({ claim_token: claimTokenOf(request.headers)!, ...request.params, ...request.caller })
      return { released: true, execution_id: request.params.execution_id, status: 'pending' }
    }
  )
}

const registryRoutes: FastifyPluginAsyncTypebox = async app => {
  app.post(
    '/v1/worker/heartbeat',
    {
      config: { scope: 'worker' },
      schema: {
        operationId: 'heartbeatWorker',
        summary: 'Register a worker, or send its heartbeat',
        description:
          'A worker is `active` for 3 minutes after a heartbeat, `stale` for 15, then `dead`. An expired lease is kept while its worker is active.',
        body: schemas.Heartbeat,
        response: { 200: schemas.Acknowledged }
      }
    },
    async request => {
      await app.fn.heartbeatWorker({ ...request.body, ...request.caller })
      return { acknowledged: true }
    }
  )

  app.get(
    '/v1/workers',
    {
      config: { scope: ['read', 'worker'], isList: true },
      schema: {
        operationId: 'listWorkers',
        summary: 'List workers, most recent heartbeat first',
        description: 'With the tasks that they handle, and whether they are alive.',
        querystring: schemas.ListWorkers,
        response: { 200: schemas.Workers }
      }
    },
    async request => {
      const { limit, offset } = request.query
      const registered = app.db.selectFrom('worker_view').where('account_id', '=', request.caller.account_id)
      const page = registered.select(['worker_id', 'last_heartbeat', 'handlers', 'registered_since']).orderBy('last_heartbeat', 'desc')
      const [{ rows }, { total }] = await Promise.all([
        sql<Registered>`
          select worker_id, last_heartbeat, handlers, registered_since from (
            select *, row_number() over w as place, sum(octet_length(handlers::text) + 512) over w as bytes
              from (${page.orderBy('worker_id').limit(limit).offset(offset)}) as page window w as (order by last_heartbeat desc, worker_id)) as sized
           where place = 1 or bytes <= ${PAGE_BYTES} order by place`.execute(app.db),
        registered.select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow()
      ])
      return { workers: rows.map(row => withStatus(row, app.now())), total }
    }
  )

  app.delete(
    '/v1/workers/:worker_id',
    {
      config: { scope: 'worker' },
      schema: {
        operationId: 'deleteWorker',
        summary: 'Remove a worker',
        description: 'Its claims are released. A further heartbeat registers it again.',
        params: schemas.WorkerParams,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      await app.fn.deleteWorker({ ...request.params, ...request.caller })
      return reply.code(204).send(null)
    }
  )
}

type Worker = Static<typeof schemas.Workers>['workers'][number]
type Registered = Pick<Worker, 'worker_id' | 'last_heartbeat' | 'handlers' | 'registered_since'>

const withStatus = (worker: Registered, now: Date): Worker => {
  const seconds = Math.max(0, Math.floor((now.getTime() - worker.last_heartbeat.getTime()) / 1000))
  const isWithin = (ms: number) => seconds * 1000 < ms
  const heartbeat_status = isWithin(constants.workerTimeoutMs) ? 'active' : isWithin(constants.claimLeaseMs) ? 'stale' : 'dead'
  return { ...worker, seconds_since_heartbeat: seconds, heartbeat_status }
}

const isOwnToken = (request: FastifyRequest) => request.caller.actor.startsWith('execution:')

/** Header values are decoded as Latin-1, but most programs send UTF-8. Undefined if it isn't UTF-8. */
const asUtf8 = (header = ''): string | undefined => {
  const bytes = Buffer.from(header, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : undefined
}

const routes: FastifyPluginAsyncTypebox = async app => {
  for (const plugin of [claimRoutes, leaseRoutes, registryRoutes]) await app.register(plugin)
}

export default routes
