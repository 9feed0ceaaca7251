/** Connections: which are idle, how many of their requests are under way, and whether their clients still read. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of one connection that are under way at once. Pipelined ones beyond that stay in the kernel, and so with the client. */
export const PIPELINED = 16

/**
 * What is read at once, over all connections, of bodies whose requests have been answered already, and how often. It's read so that clients
 * that send everything first get their response, and dropped: 25 MB a second at most, which cost few percent of a CPU.
 */
const dropped = { reads: 4, everyMs: 10 }

type Connection = {
  socket: Socket
  underWay: number
  /** Was answered before its body was read. */
  answered: IncomingMessage | undefined
  /** Came with earlier requests, and is read when they have ended. */
  held: Buffer | undefined
  /** The end of what was read last: a header may end across two reads. */
  tail: Buffer
  /** What is left to send, and since when it has been as much. */
  unsent: number
  unsentSince: number
}

/** What Node keeps of a socket and does not declare: `_paused` is set while its parser is, because responses are not read. */
type Internals = { _paused?: boolean; _handle?: { writeQueueSize?: number } | null }

const headerEnd = '\r\n\r\n'
const tailLength = headerEnd.length - 1

/**
 * Watches the connections of a server that does not listen yet: reads no more requests than `PIPELINED` ahead of a client, and closes a
 * connection whose client has accepted no data for `stalledMs` although there is some.
 * @returns the idle connections. Node counts only those as idle that have had a request, and would wait for the others.
 */
export const watchConnections = (server: Server, stalledMs: number): ReadonlySet<Socket> => {
  const connections = new Map<Socket, Connection>()
  const idle = new Set<Socket>()
  const dropInTurn = createPace(dropped)

  const count = (socket: Socket, by: 1 | -1) => {
    const connection = connections.get(socket)
    if (!connection) return
    connection.underWay += by
    if (connection.underWay > 0) idle.delete(socket)
    else idle.add(socket)
  }

  server.on('connection', (socket: Socket & Internals) => {
    const tail = Buffer.alloc(tailLength)
    const connection: Connection = { socket, underWay: 0, answered: undefined, held: undefined, tail, unsent: 0, unsentSince: 0 }
    connections.set(socket, connection)
    idle.add(socket)
    socket.on('close', () => {
      connections.delete(socket)
      idle.delete(socket)
    })

    // The parser takes whatever one read brings, which may be thousands of requests: it is given pieces of it.
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
        connection.tail = Buffer.concat([connection.tail, data.subarray(0, end).subarray(-tailLength)]).subarray(-tailLength)
        parse.call(socket, data.subarray(0, end))
      }
      isParsing = false
      if (connection.held) socket.pause()
      else if (socket.isPaused() && !socket._paused) socket.resume()
    }
    socket.on('data', (data: Buffer) => {
      connection.held = connection.held ? Buffer.concat([connection.held, data]) : data
      if (!connection.answered || connection.answered.complete) return next()
      socket.pause()
      dropInTurn(next)
    })
    socket.on('drain', next)
    socket.on('request ended', next)
  })

  server.on('request', (request, response) => {
    const { socket } = request
    count(socket, 1)
    response.on('finish', () => {
      const connection = connections.get(socket)
      if (connection && !request.complete) connection.answered = request
    })
    response.on('close', () => {
      count(socket, -1)
      socket.emit('request ended')
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
  return idle
}

/** Calls what it's given in turn, a few at a time. */
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

/** Where the data may be cut so that no more requests begin in it than these: after the header of the last. */
const endOf = (data: Buffer, requests: number, tail: Buffer): number => {
  let end = 0
  let left = requests
  // A header that began with the read before.
  const across = Buffer.concat([tail, data.subarray(0, tailLength)]).indexOf(headerEnd)
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
