/** Responses that are the same for everyone until the next release: made once, with an ETag. */
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

export type Fixed = { bytes: Buffer; etag: string }

/** Makes a fixed response: its bytes and their ETag. */
export const fixed = (content: string | Buffer): Fixed => {
  const bytes = Buffer.from(content)
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
}

/** Sends the bytes, or 304 if the client has them: its If-None-Match contains the ETag. */
export const sendFixed = (request: FastifyRequest, reply: FastifyReply, { bytes, etag }: Fixed): FastifyReply => {
  reply.header('etag', etag)
  const tags = request.headers['if-none-match']?.split(',').map(tag => tag.trim().replace(/^W\//, ''))
  return tags?.some(tag => tag === etag || tag === '*') ? reply.code(304).send() : reply.send(bytes)
}
