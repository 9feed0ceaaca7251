/** A connection to PostgreSQL that can fail like a network. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export type Wire = Awaited<ReturnType<typeof layWire>>

/** Creates a proxy for the database; `url` leads through it. */
export const layWire = async (databaseUrl: string) => {
  let target = new URL(databaseUrl)
  const pairs = new Set<{ ends: [Socket, Socket]; isSilent: boolean }>()
  let state: 'up' | 'deaf' | 'down' | 'stalled' = 'up'
  const stalled: (() => void)[] = []
  const pass = (event: () => void) => void (state === 'stalled' ? stalled.push(event) : event())

  const listener = createServer(client => {
    if (state === 'down') return client.resetAndDestroy()
    const server = connect(Number(target.port), target.hostname)
    const pair = { ends: [client, server] as [Socket, Socket], isSilent: false }
    pairs.add(pair)
    const end = () => {
      if (pair.isSilent) return
      for (const socket of pair.ends) socket.destroy()
      pairs.delete(pair)
    }
    for (const socket of pair.ends) {
      socket.setNoDelay().on('error', () => {})
      socket.on('close', () => pass(end))
    }
    client.on('data', data => pair.isSilent || pass(() => server.write(data)))
    server.on('data', data => pair.isSilent || state === 'deaf' || pass(() => client.write(data)))
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')

  const cut = () => {
    for (const { ends } of pairs) for (const socket of ends) socket.destroy()
    pairs.clear()
  }
  const during = async (fault: typeof state, until: number | Promise<unknown>) => {
    state = fault
    if (fault === 'down') cut()
    await (typeof until === 'number' ? delay(until) : until)
    state = 'up'
    if (fault === 'deaf') cut()
    for (const event of stalled.splice(0)) event()
  }

  return {
    url: Object.assign(new URL(databaseUrl), { port: String((listener.address() as AddressInfo).port) }).href,
    /** Statements reach the server and are committed, but its replies are lost. Then all connections break. */
    loseReplies: (ms: number) => during('deaf', ms),
    /** All connections break, and new ones fail for a while, or until something has happened. */
    interrupt: (until: number | Promise<unknown>) => during('down', until),
    /** Nothing arrives for a while; then everything does. */
    stall: (ms: number) => during('stalled', ms),
    /** New connections lead to another server, as when an address follows the primary. Existing ones stay. */
    lead: (url: string) => {
      target = new URL(url)
    },
    /** Number of open connections. */
    get open() {
      return pairs.size
    },
    /** Existing connections stay open but transfer nothing any more. New ones work. */
    silence: () => {
      for (const pair of pairs) pair.isSilent = true
    },
    close: () => {
      listener.close()
      cut()
    }
  }
}
