/** Requests with an Idempotency-Key: the effect happens once, and a repetition gets the stored response. */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Functions } from './functions.ts'

const name = 'idempotency-key'

/** The header, for a route's schema. */
export const IdempotencyKey = Type.Object({
  [name]: Type.Optional(
    Type.String({
      pattern: '^[\\x21-\\x7e]{1,255}$',
      description: 'Repeating the request with this key within 24 hours returns the first response and does nothing.'
    })
  )
})

/** The errors that it adds to a route. */
export const idempotencyErrors = ['idempotency_key_conflict', 'idempotency_key_in_use'] as const

const noBody = createHash('sha256').digest()

type Stored = { status: number; body: string }

/** Ends a request whose response is stored. */
class Replay extends Error {
  readonly stored: Stored
  constructor(stored: Stored) {
    super('this request was answered before')
    this.stored = stored
  }
}

type Caller = { account_id: string }

/**
 * Runs the effect of a request and sends its result. With an Idempotency-Key, the effect's calls of `fn`, its result and the key are stored in one
 * transaction, which begins with its first call. An effect must not wait for other connections or for the network after that. What it throws is not
 * stored.
 */
export const idempotently = async (
  app: FastifyInstance,
  request: FastifyRequest & { caller: Caller },
  reply: FastifyReply,
  effect: (fn: Functions | null) => Promise<unknown>
): Promise<FastifyReply> => {
  const key = request.headers[name]
  if (typeof key !== 'string') return reply.send(await effect(null))
  const { account_id } = request.caller
  const identity = { account_id, route: routeOf(request), key, request_hash: request.bodyHash ?? noBody }
  const stored = await app.fn.storedResponse(identity)
  if (stored) return replay(reply, stored)
  const transaction = app.transaction(account_id, async fn => {
    const earlier = await fn.beginIdempotent(identity)
    if (earlier) throw new Replay(earlier)
  })
  try {
    const body = String(reply.serialize(await effect(transaction.fn)))
    await transaction.commit(fn => fn.endIdempotent({ ...identity, status: reply.statusCode, body }))
    return reply.type(json).send(body)
  } catch (error) {
    await transaction.rollback()
    if (error instanceof Replay) return replay(reply, error.stored)
    throw error
  }
}

const json = 'application/json; charset=utf-8'

const replay = (reply: FastifyReply, { status, body }: Stored) =>
  reply.code(status).header('idempotency-replayed', 'true').type(json).send(body)

/** The method and path with its ids. */
const routeOf = ({ method, routeOptions: { url = '' }, params }: FastifyRequest) =>
  `${method} ${url.replace(/:(\w+)/g, (_, id: string) => (params as Record<string, string>)[id]!)}`
