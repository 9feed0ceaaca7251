/** Opens sockets to receivers: plain ones, and with undici's connector those with TLS, whose sessions it keeps. */
import { connect, type LookupFunction, type Socket } from 'node:net'
import { buildConnector } from 'undici'

/** Where to connect: `protocol` is `http:` or `https:`, `host` includes the port, `hostname` is a name or an address. */
export type Receiver = { origin: string; protocol: string; host: string; hostname: string; port: string }

type Events = {
  onOpen: () => void
  onBytes: (bytes: Buffer) => void
  /** May be called more than once, before and after the socket is open. */
  onError: (error: Error) => void
}

export type Dial = (receiver: Receiver, events: Events) => Socket

type Options = {
  lookup?: LookupFunction
  /** Certificates to trust instead of the usual ones, in PEM. */
  ca?: string | undefined
}

const readBytes = 64 * 1024
const keepAliveMs = 60_000

/** Returns a function that opens a socket. Opening has no time limit: the caller closes the socket when it has waited long enough. */
export const createDial = ({ lookup, ca }: Options): Dial => {
  const network = {
    ...(lookup && { lookup }),
    autoSelectFamily: true,
    // The default of 250 ms is too short for receivers at the other end of the world.
    autoSelectFamilyAttemptTimeout: 1000
  }
  const connectTls = buildConnector({ ...network, allowH2: false, timeout: 0, maxCachedSessions: 1000, ca })
  // All plain sockets read into it, which is cheaper than a stream of newly allocated buffers.
  const buffer = Buffer.allocUnsafe(readBytes)

  return ({ protocol, host, hostname, port }, { onOpen, onBytes, onError }) => {
    if (protocol === 'https:') {
      const onConnect: buildConnector.Callback = (...[error, socket]) => {
        if (error) return onError(error)
        socket.on('data', onBytes)
        onOpen()
      }
      // undici's declaration lacks the result.
      const socket = connectTls({ protocol, host, hostname, port }, onConnect) as unknown as Socket
      return socket.on('error', onError)
    }
    const callback = (count: number) => {
      onBytes(Buffer.from(buffer.subarray(0, count)))
      return true
    }
    return connect({
      ...network,
      host: hostname,
      port: Number(port || 80),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMs,
      onread: { buffer, callback }
    })
      .once('connect', onOpen)
      .on('error', onError)
  }
}
