/** Figures on the whole service, for its operator. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import fp from 'fastify-plugin'
import { type Static, Type } from 'typebox'
import { refuseOtherOrigins } from '../accounts/cookies.ts'
import { clearOperatorCookie, isLocalOperator, setOperatorCookie } from '../accounts/operator.ts'
import { version } from '../config.ts'
import type { ReadOperatorRow } from '../database/functions.ts'
import { ApiError } from '../errors.ts'
import { createLook } from '../health/cached-health.ts'
import { judge } from '../health/check.ts'
import { ErrorBody } from '../schemas.ts'
import * as schemas from './schemas.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Reads the figures of this cell; null if its database does not respond. */
    lookAtFigures: () => Promise<(ReadOperatorRow & { jobs: { queue: string; waiting: number }[] }) | null>
  }
}

const tags = ['service']
/** Sizes of partitions and busy accounts take longer to read than health. */
const patienceMs = 10_000
const refusal =
  'Only for the operator: send OPERATOR_TOKEN as bearer token. With an embedded database, sign in with the link that `npm start` prints.'

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

  app.get(
    '/v1/operator',
    {
      config: { scope: 'account', operator: true },
      schema: {
        tags,
        summary: 'Get figures on the whole service, for its operator',
        description: 'With OPERATOR_TOKEN; with an embedded database, also for the account that the link of `npm start` opens.',
        response: { 200: schemas.Operator, '4xx': ErrorBody }
      }
    },
    async ({ caller }) => {
      if (caller) {
        const account = await app.db.selectFrom('account_view').select('email').where('id', '=', caller.account_id).executeTakeFirst()
        if (!isLocalOperator(account?.email ?? '', app.config)) throw new ApiError('insufficient_scope', refusal)
      }
      const now = app.now()
      const cells = app.cells.map(async ({ config, lookAtHealth, lookAtFigures }) => {
        const [health, figures] = await Promise.all([lookAtHealth(), lookAtFigures()])
        const { status, reason = null } = judge(health, now)
        return { cell: config.cell, status, reason, figures }
      })
      return { version, timestamp: now, cells: await Promise.all(cells) } as Static<typeof schemas.Operator>
    }
  )

  app.post(
    '/v1/operator/session',
    {
      config: { public: true, errors: ['not_authenticated', 'cross_origin_refused'] },
      schema: {
        tags,
        summary: 'Let a browser read the operator’s figures for 12 hours',
        description: 'Sets an HttpOnly cookie for `GET /v1/operator`. A new OPERATOR_TOKEN makes it invalid.',
        body: schemas.OpenOperatorSession,
        response: { 204: Type.Null(), '4xx': ErrorBody }
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
      schema: { tags, summary: 'Remove the operator’s cookie', response: { 204: Type.Null() } }
    },
    async (_, reply) => {
      clearOperatorCookie(reply, app.config)
      return reply.code(204).send(null)
    }
  )
}

export default fp(routes, { name: 'operator' })
