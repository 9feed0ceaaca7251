/** Responses that are the same for everyone until the next release: bytes made once, and not sent to whoever has them. */
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

export type Fixed = { bytes: Buffer; etag: string }

export const fixed = (content: string | Buffer): Fixed => {
  const bytes = Buffer.from(content)
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
}

/** Sends it, or 304 to a client that names its tag. */
export const sendFixed = (request: FastifyRequest, reply: FastifyReply, { bytes, etag }: Fixed): FastifyReply => {
  reply.header('etag', etag)
  const known = request.headers['if-none-match']?.split(',').map(tag => tag.trim().replace(/^W\//, ''))
  return known?.some(tag => tag === etag || tag === '*') ? reply.code(304).send() : reply.send(bytes)
}
