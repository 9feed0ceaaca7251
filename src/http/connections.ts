/** Connections: how many of their requests are open, and whether their clients are still there. */
import type { RequestListener, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

/** Maximum open requests of a connection. */
export const PIPELINED = 100

const openRequests = new WeakMap<Socket, number>()

/**
 * Lets `serve` handle a server's requests, except of connections with too many, which are closed: a packet may contain a thousand requests, and
 * through Fastify, each would be logged.
 */
export const serveRequests = (server: Server, serve: RequestListener): void => {
  server.removeAllListeners('request').on('request', (request, response) => {
    const { socket } = request
    const open = (openRequests.get(socket) ?? 0) + 1
    if (open > PIPELINED) socket.destroy()
    if (socket.destroyed) return
    openRequests.set(socket, open)
    response.once('close', () => openRequests.set(socket, openRequests.get(socket)! - 1))
    serve(request, response)
  })
}

/**
 * Returns a function that closes a server's connections without open requests, including those that have not reached a route. To Node, a connection
 * that has had no request yet is not idle, so it would wait for it when closing.
 */
export const watchConnections = (server: Server): (() => void) => {
  const sockets = new Set<Socket>()
  server.on('connection', socket => sockets.add(socket.once('close', () => sockets.delete(socket))))
  return () => {
    for (const socket of sockets) if (!openRequests.get(socket)) socket.destroy()
  }
}

/** Returns a signal that is aborted when the client disconnects before the response is sent. */
export const goneSignal = (reply: FastifyReply): AbortSignal => {
  const closed = new AbortController()
  const abort = () => closed.abort()
  reply.raw.once('close', abort)
  reply.raw.once('finish', () => reply.raw.off('close', abort))
  return closed.signal
}
