/**
 * Interim responses that undici would take for an error. It destroys the connection on a 100 Continue that it didn't ask for, but skips all
 * other interim responses: so a response that begins with a 100 is shown to it as a 102. One whose status line arrives in pieces isn't
 * recognized.
 */
import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'

type Connector = ReturnType<typeof buildConnector>

/** Wraps an undici connector: its sockets show a 100 Continue as a 102. */
export const skippingContinue =
  (connect: Connector): Connector =>
  (options, callback) =>
    connect(options, (...[error, socket]: Parameters<typeof callback>) => {
      if (socket) renameContinue(socket)
      callback(...([error, socket] as Parameters<typeof callback>))
    })

const renameContinue = (socket: Socket): void => {
  let isStart = true
  const { read, write } = socket
  socket.write = ((...args: Parameters<typeof write>) => {
    isStart = true
    return write.apply(socket, args)
  }) as typeof write
  socket.read = size => {
    const chunk: Buffer | null = read.call(socket, size)
    if (isStart && chunk) isStart = renameLeading(chunk)
    return chunk
  }
}

/** Renames the interim responses that a chunk begins with, in place. Returns whether the next chunk begins a response, too. */
const renameLeading = (chunk: Buffer): boolean => {
  for (let at = 0; at < chunk.length; ) {
    // The status of most responses doesn't begin with a 1.
    if (chunk[at + 9] !== 0x31) return false
    const line = chunk.toString('latin1', at, at + 12)
    if (!/^HTTP\/1\.[01] 1\d\d$/.test(line) || line.endsWith('101')) return false
    if (line.endsWith('100')) chunk[at + 11] = 0x32
    const end = chunk.indexOf('\r\n\r\n', at)
    if (end < 0) return true
    at = end + 4
  }
  return true
}
