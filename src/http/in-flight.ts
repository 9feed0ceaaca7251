/** Bytes of responses that clients have not read yet, and their limits. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createCounts } from '../cache/counts.ts'
import { ApiError } from '../errors.ts'
import { subjectOf } from './address-subject.ts'

/** Smaller responses are not counted: a connection has few of them, since no further requests are read while they wait. */
const COUNTED_FROM = 16 * 1024

/** Maximum bytes of counted responses: of one account (or address, without an account) and of all. */
export type ResponseLimits = { account: number; all: number }
export const responseLimits: ResponseLimits = { account: 16 * 1024 * 1024, all: 64 * 1024 * 1024 }

declare module 'fastify' {
  interface FastifyRequest {
    /** Bytes counted for the response of this request. */
    responseBytes: number
  }
}

/** Makes the count of one server. */
export const createInFlight = (limits: ResponseLimits = responseLimits) => {
  const unread = createCounts()
  return {
    /**
     * Counts a response until the kernel has all of it or its connection is closed. If it is counted again, the larger size counts.
     * @throws ApiError unavailable if too much is in flight
     */
    add: (request: FastifyRequest, reply: FastifyReply, bytes: number): void => {
      const more = bytes - request.responseBytes
      if (bytes < COUNTED_FROM || more <= 0 || reply.raw.destroyed) return
      const subject = request.caller?.account_id ?? subjectOf(request.ip)
      if (unread.of(subject) + more > limits.account) throw tooMuch('of this account')
      if (unread.total + more > limits.all) throw tooMuch('of all accounts')
      if (request.responseBytes === 0) reply.raw.once('close', () => unread.add(subject, -request.responseBytes))
      request.responseBytes = bytes
      unread.add(subject, more)
    },
    /** Bytes in flight of all accounts. */
    get bytes() {
      return unread.total
    }
  }
}
export type InFlight = ReturnType<typeof createInFlight>

const tooMuch = (whose: string) =>
  new ApiError('unavailable', `Too many unread large responses ${whose}. Read those first, or retry after the time in Retry-After.`, {
    headers: { 'retry-after': '2' }
  })
