/** Figures on the whole service, for its operator. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { sql } from 'kysely'
import { type Static, Type } from 'typebox'
import { refuseOtherOrigins } from '../accounts/cookies.ts'
import { clearOperatorCookie, isLocalOperator, setOperatorCookie } from '../accounts/operator.ts'
import { version } from '../config.ts'
import type { ReadOperatorRow } from '../database/functions.ts'
import { ApiError, invalid, toApiError } from '../errors.ts'
import { createLook } from '../health/cached-health.ts'
import { judge } from '../health/check.ts'
import { questions } from './on-call.ts'
import * as schemas from './schemas.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Reads the figures of this cell; null if its database does not respond. */
    lookAtFigures: () => Promise<(ReadOperatorRow & { jobs: { queue: string; waiting: number }[] }) | null>
  }
}

/** Sizes of partitions and busy accounts take longer to read than health. */
const patienceMs = 10_000
const refusal =
  'Only for the operator: send OPERATOR_TOKEN as bearer token. With an embedded database, sign in with the link that `npm start` prints.'

type Cell = FastifyInstance['cells'][number]
const unknownAccount = () => new ApiError('not_found', schemas.unknownAccount)

/** Who did something, for the audit log and whoever asks. */
const actorOf = ({ caller }: FastifyRequest): string => caller?.actor ?? 'operator'

const routes: FastifyPluginAsyncTypebox = async app => {
  const look = createLook(
    app,
    async () => {
      const [figures, jobs] = await Promise.all([app.fn.readOperator({}), app.fn.jobCounts({})])
      return { ...figures, jobs }
    },
    patienceMs
  )
  app.decorate('lookAtFigures', look)

  /** @throws ApiError unless the request has the operator's token, or comes from the account of an embedded database */
  const requireOperator = async ({ caller }: FastifyRequest): Promise<void> => {
    if (!caller) return
    const account = await app.db.selectFrom('account_view').select('email').where('id', '=', caller.account_id).executeTakeFirst()
    if (!isLocalOperator(account?.email ?? '', app.config)) throw new ApiError('insufficient_scope', refusal)
  }
  // No handler can forget to ask.
  app.addHook('onRoute', route => {
    if (route.config?.operator) route.preHandler = requireOperator
  })

  app.get(
    '/v1/operator',
    {
      config: { scope: 'account', operator: true },
      schema: {
        operationId: 'getOperator',
        summary: 'Get figures on the whole service, for its operator',
        description: 'With OPERATOR_TOKEN; with an embedded database, also for the account that the link of `npm start` opens.',
        response: { 200: schemas.Operator }
      }
    },
    async () => {
      const now = app.now()
      const looks = app.cells.map(async ({ config, lookAtHealth, lookAtFigures }) => {
        const [health, figures] = await Promise.all([lookAtHealth(), lookAtFigures()])
        const { status, reason = null } = judge(health, now)
        return { cell: config.cell, status, reason, figures }
      })
      const [cells, holds] = await Promise.all([Promise.all(looks), readHolds()])
      const hold = holds.find(({ account_id }) => account_id === null) ?? null
      const held_accounts = holds.filter(({ account_id }) => account_id !== null)
      const list = Object.entries(questions).map(([name, { text, needsCue = false }]) => ({ name, text, needs_cue: needsCue }))
      return { version, timestamp: now, hold, held_accounts, questions: list, cells } as unknown as Static<typeof schemas.Operator>
    }
  )

  app.post(
    '/v1/operator/hold',
    {
      config: { scope: 'account', operator: true, errors: ['not_found'] },
      schema: {
        operationId: 'hold',
        summary: 'Hold the service, or one account',
        description:
          'Nothing is taken, sent or claimed until it is released (claims: 409 `service_held`); what is in flight ends. `GET /status` stays 200. Repeated, ' +
          'it replaces the reason. Slots that come due meanwhile follow `catch_up`, or run late if the hold was short.',
        body: schemas.Hold,
        response: { 200: schemas.Held }
      }
    },
    async request => {
      const { reason, account_id } = request.body
      const by = actorOf(request)
      const [held] = await inCells(account_id, ({ fn }, account_id) => fn.hold({ reason, account_id, actor: by }))
      app.log.warn({ by, reason, held_account_id: account_id }, 'held')
      return held as Static<typeof schemas.Held>
    }
  )

  app.post(
    '/v1/operator/release',
    {
      config: { scope: 'account', operator: true, errors: ['not_found'] },
      schema: {
        operationId: 'release',
        summary: 'Release the service, or one account',
        description: 'Deliveries and claims resume.',
        body: schemas.Release,
        response: { 200: schemas.Released }
      }
    },
    async request => {
      const account_id = request.body?.account_id
      const by = actorOf(request)
      const released = await inCells(account_id, ({ fn }, account_id) => fn.release({ account_id, actor: by }))
      app.log.warn({ by, released_account_id: account_id }, 'released')
      return { released: released.includes(true) }
    }
  )

  app.get(
    '/v1/operator/on-call/:question',
    {
      config: { scope: 'account', operator: true, errors: ['cue_not_found'] },
      schema: {
        operationId: 'answerOnCall',
        summary: 'Answer a question of the operator',
        description: Object.entries(questions)
          .map(([name, { text }]) => `\`${name}\`: ${text}`)
          .join('\n\n'),
        params: schemas.OnCallParams,
        querystring: schemas.OnCallQuery,
        response: { 200: schemas.Answer }
      }
    },
    async request => {
      const { text, needsCue, answer } = questions[request.params.question]!
      const { cue_id = '' } = request.query
      if (needsCue && !cue_id) throw invalid([{ type: 'missing', loc: ['query', 'cue_id'], msg: 'Field required', input: null }])
      const reads = await Promise.allSettled(app.cells.map(cell => answer(cell, cue_id)))
      const failures = reads.flatMap(read => (read.status === 'rejected' ? [read.reason] : []))
      if (failures.length === reads.length) throw failures[0]
      const isElsewhere = (error: unknown) => toApiError(error).code === 'cue_not_found'
      const rowsOf = (read: (typeof reads)[number]) => {
        if (read.status === 'fulfilled') return read.value
        return isElsewhere(read.reason) ? [] : [{ error: toApiError(read.reason).message }]
      }
      const rows = reads.flatMap((read, n) =>
        rowsOf(read).map(row => ({ ...(reads.length > 1 && { cell: app.cells[n]!.config.cell }), ...row }))
      )
      return { question: text, rows: rows as Record<string, unknown>[] }
    }
  )

  const accounts = (db: Cell['db']) => db.selectFrom('account_limits').selectAll()

  app.get(
    '/v1/operator/accounts',
    {
      config: { scope: 'account', operator: true },
      schema: {
        operationId: 'listAccounts',
        summary: 'Find accounts, with their plans and limits',
        description: 'The first 100 by email address.',
        querystring: schemas.AccountsQuery,
        response: { 200: schemas.Accounts }
      }
    },
    async request => {
      const search = request.query.search?.trim().toLowerCase() ?? ''
      const reads = app.cells.map(({ db }) =>
        accounts(db)
          .where(sql<boolean>`strpos(lower(email), ${search}) > 0 or id::text = ${search}`)
          .orderBy(sql`lower(email)`)
          .limit(100)
          .execute()
      )
      const matches = (await Promise.all(reads)).flat() as Static<typeof schemas.Account>[]
      return { accounts: matches.sort((a, b) => (a.email < b.email ? -1 : 1)).slice(0, 100) }
    }
  )

  app.patch(
    '/v1/operator/accounts/:account_id',
    {
      config: { scope: 'account', operator: true, errors: ['not_found'] },
      schema: {
        operationId: 'changeAccount',
        summary: 'Change the plan and the limits of an account',
        description: 'If a limit on cues is lower than before, the newest ones above it are paused, and a mail lists them.',
        params: schemas.AccountParams,
        body: schemas.ChangeAccount,
        response: { 200: schemas.Account }
      }
    },
    async request => {
      const by = { actor: actorOf(request), ip: request.ip }
      const [account] = await inCells(request.params.account_id, async ({ db, fn }, account_id = '') => {
        await fn.changePlan({ ...request.body, account_id, ...by })
        return accounts(db).where('id', '=', account_id).executeTakeFirst()
      })
      if (!account) throw unknownAccount()
      return account as Static<typeof schemas.Account>
    }
  )

  /** They are not cached: whoever has pressed the button wants to see it. */
  const readHolds = async () => {
    const reads = app.cells.map(({ db }) => db.selectFrom('current_holds').selectAll().orderBy('since').limit(1000).execute())
    return (await Promise.allSettled(reads)).flatMap(read => (read.status === 'fulfilled' ? read.value : []))
  }

  /** Does something in the cell of an account, or without one in all cells. */
  const inCells = async <T>(account_id: string | null | undefined, act: (cell: Cell, account_id?: string) => Promise<T>): Promise<T[]> => {
    if (account_id == null) return Promise.all(app.cells.map(cell => act(cell)))
    for (const cell of app.cells)
      if (await cell.db.selectFrom('account_view').select('id').where('id', '=', account_id).executeTakeFirst())
        return [await act(cell, account_id)]
    throw unknownAccount()
  }

  app.post(
    '/v1/operator/session',
    {
      config: { public: true, errors: ['not_authenticated', 'cross_origin_refused'] },
      schema: {
        operationId: 'openOperatorSession',
        summary: 'Let a browser read the operator’s figures for 12 hours',
        description: 'Sets an HttpOnly cookie for `GET /v1/operator`. A new OPERATOR_TOKEN makes it invalid.',
        body: schemas.OpenOperatorSession,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      refuseOtherOrigins(request.raw, app.origins)
      const { operatorToken } = app.config
      if (operatorToken === null) throw new ApiError('not_authenticated', 'This service has no OPERATOR_TOKEN.')
      if (!app.hasToken(`Bearer ${request.body.operator_token}`, operatorToken, request.ip))
        throw new ApiError('not_authenticated', 'Wrong operator token.')
      setOperatorCookie(reply, { ...app.config, operatorToken }, app.now())
      return reply.code(204).send(null)
    }
  )

  app.delete(
    '/v1/operator/session',
    {
      config: { public: true },
      schema: {
        operationId: 'endOperatorSession',
        summary: 'Remove the operator’s cookie',
        description: 'Signs the browser out. OPERATOR_TOKEN stays valid.',
        response: { 204: Type.Null() }
      }
    },
    async (_, reply) => {
      clearOperatorCookie(reply, app.config)
      return reply.code(204).send(null)
    }
  )
}

export default fp(routes, { name: 'operator' })
