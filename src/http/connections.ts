/** Connections: how many of their requests are open, and whether their clients are still there. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Maximum open requests of a connection, which a pipelining client may exceed with a single packet. */
export const PIPELINED = 100

const openRequests = new WeakMap<Socket, number>()

/** Returns false for a request of a connection that has too many, and is therefore closed. */
export const isWithinPipeline = ({ raw: { socket } }: FastifyRequest): boolean => {
  if ((openRequests.get(socket) ?? 0) > PIPELINED) socket.destroy()
  return !socket.destroyed
}

/**
 * Counts the open requests of a server's connections, also those that have not reached a route. Returns a function that closes the connections
 * without any. To Node, one that has had no request yet is not idle, so it would wait for it when closing.
 */
export const watchConnections = (server: Server): (() => void) => {
  const sockets = new Set<Socket>()
  server.on('connection', socket => sockets.add(socket.once('close', () => sockets.delete(socket))))
  server.prependListener('request', ({ socket }, response) => {
    openRequests.set(socket, (openRequests.get(socket) ?? 0) + 1)
    response.once('close', () => openRequests.set(socket, openRequests.get(socket)! - 1))
  })
  return () => {
    for (const socket of sockets) if (!openRequests.get(socket)) socket.destroy()
  }
}

/** Returns a signal that is aborted when the client disconnects before the response is sent. */
export const goneSignal = (reply: FastifyReply): AbortSignal => {
  const gone = new AbortController()
  const abort = () => gone.abort()
  reply.raw.once('close', abort)
  reply.raw.once('finish', () => reply.raw.off('close', abort))
  return gone.signal
}
