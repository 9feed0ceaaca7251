/** Connections: which are idle, how many of their requests are under way, and whether their clients still read. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

/** Maximum open requests of a connection. Further pipelined ones stay in the kernel's buffers, and so with the client. */
export const PIPELINED = 16

/**
 * How much is read, over all connections together, of bodies whose requests are already answered: clients that send everything first must
 * get their response. At 64 KB a read it's 25 MB per second, a few percent of a CPU.
 */
const dropped = { reads: 4, everyMs: 10 }

type Connection = {
  socket: Socket
  underWay: number
  /** Continues to read. */
  next: () => void
  /** The request that was answered before its body was read. */
  answered: IncomingMessage | undefined
  /** Data that came with earlier requests, to be read when those have ended. */
  held: Buffer | undefined
  /** The end of the data read last, since the end of a header may be split across two reads. */
  tail: Buffer
  /** Bytes left to send, and since when their number has not changed. */
  unsent: number
  unsentSince: number
}

/** Undeclared members of Node's sockets: `_paused` is set while the parser is paused because responses are not read. */
type Internals = { _paused?: boolean; _handle?: { writeQueueSize?: number } | null }

const headerEnd = '\r\n\r\n'
const tailLength = headerEnd.length - 1
const shortestRequest = 'GET / HTTP/1.1\r\n\r\n'.length

/**
 * Watches the connections of a server that does not listen yet: reads at most `PIPELINED` requests of a connection ahead, and closes a connection
 * whose client has accepted no data for `stalledMs` although there is some to send.
 * @returns a function that closes the idle connections. To Node, a connection without a request yet is not idle, so it would wait for it when closing.
 */
export const watchConnections = (server: Server, stalledMs: number): (() => void) => {
  const connections = new Map<Socket, Connection>()
  const dropInTurn = createPace(dropped)

  server.on('connection', (socket: Socket & Internals) => {
    socket.on('close', () => connections.delete(socket))

    // The parser would take all that one read returns, which may be thousands of requests, so it gets the data in pieces.
    const parse = socket.listeners('data')[0] as (data: Buffer) => void
    socket.removeListener('data', parse)
    let isParsing = false
    const next = () => {
      if (isParsing) return
      isParsing = true
      while (connection.held && connection.underWay < PIPELINED && !socket._paused && !socket.destroyed) {
        const data = connection.held
        const end = endOf(data, PIPELINED - connection.underWay, connection.tail)
        connection.held = end < data.length ? data.subarray(end) : undefined
        keepTail(connection.tail, data, end)
        parse.call(socket, data.subarray(0, end))
      }
      isParsing = false
      if (connection.held) socket.pause()
      else if (socket.isPaused() && !socket._paused) socket.resume()
    }
    const tail = Buffer.alloc(tailLength)
    const connection: Connection = { socket, underWay: 0, next, answered: undefined, held: undefined, tail, unsent: 0, unsentSince: 0 }
    connections.set(socket, connection)
    socket.on('data', (data: Buffer) => {
      connection.held = connection.held ? Buffer.concat([connection.held, data]) : data
      if (!connection.answered || connection.answered.complete) return next()
      socket.pause()
      dropInTurn(next)
    })
    socket.on('drain', next)
  })

  server.on('request', (request, response) => {
    const connection = connections.get(request.socket)
    if (!connection) return
    connection.underWay++
    response.on('close', () => {
      connection.underWay--
      if (!request.complete) connection.answered = request
      connection.next()
    })
  })

  const closeStalled = () => {
    const now = performance.now()
    for (const connection of connections.values()) {
      const { socket } = connection
      const unsent = (socket as Internals)._handle?.writeQueueSize ?? 0
      if (unsent === 0 || unsent !== connection.unsent) Object.assign(connection, { unsent, unsentSince: now })
      else if (now - connection.unsentSince >= stalledMs) socket.destroy()
    }
  }
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => {
    timer = setInterval(closeStalled, Math.min(5000, stalledMs / 4)).unref()
  })
  server.on('close', () => clearInterval(timer))
  return () => {
    for (const { socket, underWay } of connections.values()) if (underWay === 0) socket.destroy()
  }
}

/** Returns a function that queues calls; a few run at a time, in order. */
const createPace = ({ reads, everyMs }: typeof dropped) => {
  const queue: (() => void)[] = []
  let isRunning = false
  const tick = () => {
    for (const call of queue.splice(0, reads)) call()
    isRunning = queue.length > 0
    if (isRunning) setTimeout(tick, everyMs)
  }
  return (call: () => void): void => {
    queue.push(call)
    if (!isRunning) setTimeout(tick, everyMs)
    isRunning = true
  }
}

/** Keeps the last bytes before `end`, in the same memory: a part of the data would keep all of it. */
const keepTail = (tail: Buffer, data: Buffer, end: number) => {
  const kept = Math.max(0, tailLength - end)
  tail.copy(tail, 0, tailLength - kept)
  data.copy(tail, kept, end - (tailLength - kept), end)
}

/** Where to cut the data so that at most this many requests begin in it: after the header of the last one. */
const endOf = (data: Buffer, requests: number, tail: Buffer): number => {
  if (data.length < requests * shortestRequest) return data.length
  let end = 0
  let left = requests
  // A header that began in the previous read.
  const isSplit = data[0] === headerEnd.charCodeAt(0) || data[0] === headerEnd.charCodeAt(1)
  const across = isSplit ? Buffer.concat([tail, data.subarray(0, tailLength)]).indexOf(headerEnd) : -1
  if (across >= 0) {
    end = across + headerEnd.length - tailLength
    left--
  }
  for (; left > 0; left--) {
    const at = data.indexOf(headerEnd, end)
    if (at < 0) return data.length
    end = at + headerEnd.length
  }
  return end
}

/** Returns a signal that is aborted when the client disconnects before the response is sent. */
export const goneSignal = (reply: FastifyReply): AbortSignal => {
  const gone = new AbortController()
  const abort = () => gone.abort()
  reply.raw.once('close', abort)
  reply.raw.once('finish', () => reply.raw.off('close', abort))
  return gone.signal
}
