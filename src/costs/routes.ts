/** Sums of the costs that an account's executions reported. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { fault, invalid } from '../errors.ts'
import { CostSums, ReadCosts } from './schemas.ts'

const DAY_MS = 86_400_000
const MOST_DAYS = 366
const LIMIT = 1000
const names = { cue: 'cue_id', tag: 'tag', day: 'day' } as const

const routes: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '/v1/costs',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'readCosts',
        summary: 'Sum the costs that executions reported',
        description: 'By cue, tag or day, and by unit. Kept for 400 days, also those of deleted cues.',
        querystring: ReadCosts,
        response: { 200: CostSums }
      }
    },
    async request => {
      const { by } = request.query
      const to = request.query.to === undefined ? app.now() : new Date(request.query.to)
      const from = request.query.from === undefined ? new Date(+to - 30 * DAY_MS) : new Date(request.query.from)
      const refuse = (rule: string) => invalid([{ ...fault([], rule), loc: ['query', 'from'] }])
      if (from >= to) throw refuse('must be before to')
      if (+to - +from > MOST_DAYS * DAY_MS) throw refuse(`must be at most ${MOST_DAYS} days before to`)
      const rows = await app.fn.readCosts({ by, from, to, limit: LIMIT + 1, ...request.caller })
      const costs = rows.slice(0, LIMIT).map(({ name, unit, amount }) => ({ [names[by]]: name, unit, amount }))
      return { costs, has_more: rows.length > LIMIT, from, to }
    }
  )
}

export default routes
