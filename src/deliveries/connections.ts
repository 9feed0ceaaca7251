/** Keeps connections to receivers open for a while after a response, and uses them again. */
import { Connection } from './connection.ts'
import type { Dial, Receiver } from './dial.ts'
import type { Exchange } from './exchange.ts'

type Options = {
  dial: Dial
  /** If more connections are idle, those that have been for longest are closed. */
  mostIdle: number
  /** How long a connection may be idle, in milliseconds. */
  idleMs: number
}

/** Connections closed per turn of the event loop: closing takes 0.03 ms each. */
const closedPerTurn = 20
/** How often connections that have been idle for too long are looked for. */
const sweepMs = 500
/** A connection is not used in the second before its receiver closes it. */
const marginMs = 1000

export const createConnections = ({ dial, mostIdle, idleMs }: Options) => {
  const all = new Set<Connection>()
  // Idle connections → until when they may be used, on the clock of performance.now(); longest idle first.
  const idle = new Map<Connection, number>()
  // By origin, the one used last at the end.
  const idleOf = new Map<string, Connection[]>()
  // After their first response. They become idle when all is read that has arrived: some receivers close without saying so.
  let resting: { connection: Connection; until: number }[] = []
  let sweep: NodeJS.Timeout | undefined
  let isTrimming = false
  let isDestroyed = false

  const leaveIdle = (connection: Connection) => {
    if (!idle.delete(connection)) return
    const list = idleOf.get(connection.origin)!
    list.splice(list.lastIndexOf(connection), 1)
    if (list.length === 0) idleOf.delete(connection.origin)
  }

  const onEnd = (connection: Connection) => {
    all.delete(connection)
    leaveIdle(connection)
  }

  const onRest = (connection: Connection, keptMs: number) => {
    const until = performance.now() + Math.min(keptMs - marginMs, idleMs)
    if (connection.staysOpen) keep(connection, until)
    else if (resting.push({ connection, until }) === 1) setImmediate(() => setImmediate(rest))
  }

  const rest = () => {
    const rested = resting
    resting = []
    for (const { connection, until } of rested) {
      if (!all.has(connection)) continue
      connection.staysOpen = true
      keep(connection, until)
    }
  }

  const keep = (connection: Connection, until: number) => {
    idle.set(connection, until)
    const list = idleOf.get(connection.origin)
    if (list) list.push(connection)
    else idleOf.set(connection.origin, [connection])
    sweep ??= setTimeout(trim, sweepMs)
    if (idle.size <= mostIdle || isTrimming) return
    isTrimming = true
    setImmediate(trim)
  }

  /** Closes the idle connections that are too many or too old, a few per turn. */
  const trim = () => {
    const now = performance.now()
    let closed = 0
    for (const [connection, until] of idle) {
      if (closed === closedPerTurn) break
      if (idle.size <= mostIdle && until > now) continue
      connection.close()
      closed++
    }
    isTrimming = closed === closedPerTurn
    if (isTrimming) return void setImmediate(trim)
    clearTimeout(sweep)
    sweep = idle.size > 0 ? setTimeout(trim, sweepMs) : undefined
  }

  const idleTo = (origin: string): Connection | undefined => {
    for (;;) {
      const connection = idleOf.get(origin)?.at(-1)
      if (!connection) return undefined
      const isUsable = idle.get(connection)! > performance.now()
      leaveIdle(connection)
      if (isUsable) return connection
      connection.close()
    }
  }

  const open = (receiver: Receiver): Connection => {
    const connection = new Connection({ receiver, dial, onRest, onEnd })
    all.add(connection)
    return connection
  }

  return {
    /** Number of connections, idle or with a request. */
    get size() {
      return all.size
    },

    /** Sends a request on an idle connection to its receiver unless it needs a new one. The head ends with an empty line. */
    send: (receiver: Receiver, head: string, body: string, exchange: Exchange, isNew = false): void => {
      if (isDestroyed) throw new Error('sending has stopped')
      const connection = (isNew ? undefined : idleTo(receiver.origin)) ?? open(receiver)
      connection.send(head, body, exchange)
    },

    /** Ends the open requests, each with an error, and closes all connections. */
    destroy: (): void => {
      isDestroyed = true
      clearTimeout(sweep)
      for (const connection of all) connection.close()
    }
  }
}
