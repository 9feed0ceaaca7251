/**
 * The connections to receivers: each an undici client with one request at a time, which is used again while it is open. undici's own agent goes
 * through all connections to a receiver for each request and each connection that closes, and may close thousands of idle ones at once: after
 * many slow requests to one receiver, nothing would be sent for a second.
 */
import { Client, type Dispatcher, errors } from 'undici'

/** An idle connection is in the list of its receiver. */
type Connection = { client: Client; receiver: string; peers: Map<string, Connection[]> }

export type Send = (request: Dispatcher.DispatchOptions & { origin: string }, handler: Dispatcher.DispatchHandler) => void

/** Connections closed per turn of the event loop: it takes a tenth of a millisecond each. */
const closedPerTurn = 20

/** @param mostIdle if more connections are idle, those that have been for longest are closed */
export const createConnections = (mostIdle: number) => {
  const all = new Set<Connection>()
  // Longest idle first.
  const idle = new Set<Connection>()
  let isTrimming = false
  let isDestroyed = false

  const leaveIdle = (connection: Connection) => {
    const { receiver, peers } = connection
    const list = peers.get(receiver)!
    list.splice(list.lastIndexOf(connection), 1)
    if (list.length === 0) peers.delete(receiver)
    idle.delete(connection)
  }

  const close = (connection: Connection) => {
    all.delete(connection)
    return connection.client.destroy()
  }

  const trim = () => {
    let closed = 0
    for (const connection of idle) {
      if (idle.size <= mostIdle || closed === closedPerTurn) break
      leaveIdle(connection)
      void close(connection)
      closed++
    }
    isTrimming = idle.size > mostIdle
    if (isTrimming) setImmediate(trim)
  }

  /** Keeps the connection for other requests, unless it has one. */
  const rest = (connection: Connection) => {
    const { client, receiver, peers } = connection
    const { size, connected } = client.stats
    if (size > 0 || idle.has(connection)) return
    if (!connected) return void all.delete(connection)
    const list = peers.get(receiver)
    if (list) list.push(connection)
    else peers.set(receiver, [connection])
    idle.add(connection)
    if (idle.size <= mostIdle || isTrimming) return
    isTrimming = true
    setImmediate(trim)
  }

  return {
    /** Number of connections, idle or with a request. */
    get size() {
      return all.size
    },

    /** Makes a function that sends a request on an idle connection to its origin, or on a new one with these options. */
    make: (options: Client.Options): Send => {
      const peers = new Map<string, Connection[]>()

      const open = (receiver: string): Connection => {
        const client = new Client(receiver, options)
        const connection: Connection = { client, receiver, peers }
        all.add(connection)
        client.on('disconnect', () => {
          if (!idle.has(connection)) return // rests once its request has ended
          leaveIdle(connection)
          all.delete(connection)
        })
        client.on('drain', () => rest(connection))
        return connection
      }

      return (request, handler) => {
        if (isDestroyed) throw new errors.ClientDestroyedError()
        const connection = peers.get(request.origin)?.at(-1) ?? open(request.origin)
        if (idle.has(connection)) leaveIdle(connection)
        connection.client.dispatch(request, handler)
        rest(connection) // if the request was refused, as for an invalid header
      }
    },

    /** Ends the open requests, each with an error, and closes all connections. */
    destroy: async (): Promise<void> => {
      isDestroyed = true
      idle.clear()
      await Promise.all([...all].map(close))
    }
  }
}
