/**
 * Bounds the sockets that are open without a request. While there are too many, a new one is closed after its request. One that was idle before
 * is kept: the receiver's next request would open another, which costs more than the request itself, and none would be saved.
 */
import type { Agent } from 'undici'

export type Receiver = {
  /** Counts a request. Returns whether to keep its socket afterwards. */
  begin: () => boolean
  /** The request has ended. */
  end: () => void
}

/** @param most idle sockets of all receivers from which on they are too many */
export const createIdleSockets = (most: number) => {
  let sockets = 0
  let running = 0

  /** Watches an agent's sockets. The returned function finds the receiver of an origin. */
  return (agent: Agent): ((origin: string) => Receiver) => {
    const receivers = new Map<string, Receiver & { opened: (change: 1 | -1) => void }>()

    const add = (origin: string) => {
      let own = 0
      let ownRunning = 0
      const forget = () => {
        if (own === 0 && ownRunning === 0) receivers.delete(origin)
      }
      const receiver = {
        begin: () => {
          const hasIdle = own > ownRunning
          ownRunning++
          running++
          return hasIdle || sockets - running <= most
        },
        end: () => {
          ownRunning--
          running--
          forget()
        },
        opened: (change: 1 | -1) => {
          own += change
          sockets += change
          forget()
        }
      }
      receivers.set(origin, receiver)
      return receiver
    }

    const receiverOf = (origin: string) => receivers.get(origin) ?? add(origin)
    agent.on('connect', ({ origin }) => receiverOf(origin).opened(1))
    agent.on('disconnect', ({ origin }) => receiverOf(origin).opened(-1))
    return receiverOf
  }
}
