/** Connects to receivers, for undici's agents. */
import type { LookupFunction, Socket } from 'node:net'
import { buildConnector } from 'undici'

type Options = {
  lookup: LookupFunction
  /** Certificates to trust instead of the usual ones, in PEM. */
  ca?: string | undefined
}

/** A request closes the socket that it opens when its time is up; this is for one that undici opens later, because an idle one was closed. */
const CONNECT_TIMEOUT_MS = 3_600_000

export const createSockets = ({ lookup, ca }: Options) => {
  const connectSocket = buildConnector({
    allowH2: false,
    timeout: CONNECT_TIMEOUT_MS,
    lookup,
    autoSelectFamily: true,
    // The default of 250 ms is too short for receivers at the other end of the world.
    autoSelectFamilyAttemptTimeout: 1000,
    maxCachedSessions: 1000,
    ca
  })
  let open = 0
  let isFirstUse = false
  let latest: Socket | undefined

  const connect: buildConnector.connector = (options, callback) => {
    const onConnect: buildConnector.Callback = (...result) => {
      if (result[1]) acceptContinue(result[1])
      isFirstUse = true
      callback(...result)
      isFirstUse = false
    }
    open++
    // undici's declaration lacks the result.
    latest = connectSocket(options, onConnect) as unknown as Socket
    latest.once('close', () => open--)
  }

  return {
    connect,
    /** Number of sockets, idle ones included. */
    get open() {
      return open
    },
    /** Whether the request that is just being sent is the first on its connection. */
    get isFirstUse() {
      return isFirstUse
    },
    /** Dispatches a request, and returns the socket that is opened for it; undefined if an idle one is used. */
    openedBy: (dispatch: () => void): Socket | undefined => {
      latest = undefined
      dispatch()
      return latest
    }
  }
}

export type Sockets = ReturnType<typeof createSockets>

/** undici skips all interim responses but a 100 that it didn't ask for, which it takes for an error: it gets to see a 102. */
const acceptContinue = (socket: Socket): void => {
  const { read } = socket
  let requested = 0
  let begun = 0
  socket.read = size => {
    const bytes: Buffer | null = read.call(socket, size)
    requested = socket.bytesWritten
    if (bytes && begun !== requested && !renameContinue(bytes)) begun = requested
    return bytes
  }
}

/** Renames the interim responses at the beginning, in place. Returns whether a response may begin after these bytes. */
const renameContinue = (bytes: Buffer): boolean => {
  for (let at = 0, end = 0; end >= 0 && at < bytes.length; at = end + 4) {
    const line = bytes.toString('latin1', at, at + 12)
    if (!/^HTTP\/1\.[01] 1\d\d$/.test(line) || line.endsWith('101')) return false
    if (line.endsWith('100')) bytes[at + 11] = 0x32
    end = bytes.indexOf('\r\n\r\n', at)
  }
  return true
}
