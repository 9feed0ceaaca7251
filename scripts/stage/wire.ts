/** A connection to PostgreSQL that can fail like a network. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export type Wire = Awaited<ReturnType<typeof layWire>>

/** Creates a proxy for the database; `url` leads through it. */
export const layWire = async (databaseUrl: string) => {
  let target = new URL(databaseUrl)
  const pairs = new Set<{ client: Socket; server: Socket; silent: boolean }>()
  let state: 'up' | 'deaf' | 'down' | 'stalled' = 'up'
  const stalled: (() => void)[] = []
  const pass = (what: () => void) => void (state === 'stalled' ? stalled.push(what) : what())

  const listener = createServer(client => {
    if (state === 'down') return client.resetAndDestroy()
    const server = connect(Number(target.port), target.hostname)
    const pair = { client, server, silent: false }
    pairs.add(pair)
    const end = () => {
      if (pair.silent) return
      for (const socket of [client, server]) socket.destroy()
      pairs.delete(pair)
    }
    for (const socket of [client, server])
      socket
        .setNoDelay()
        .on('error', () => {})
        .on('close', () => pass(end))
    client.on('data', data => pair.silent || pass(() => server.write(data)))
    server.on('data', data => pair.silent || state === 'deaf' || pass(() => client.write(data)))
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')

  const cut = () => {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
    pairs.clear()
  }

  return {
    url: Object.assign(new URL(databaseUrl), { port: String((listener.address() as AddressInfo).port) }).href,

    /** Statements reach the server and are committed, but its replies are lost. Then all connections break. */
    loseReplies: async (ms: number) => {
      state = 'deaf'
      await delay(ms)
      state = 'up'
      cut()
    },

    /** All connections break, and new ones fail for a while, or until something has happened. */
    interrupt: async (until: number | Promise<unknown>) => {
      state = 'down'
      cut()
      await (typeof until === 'number' ? delay(until) : until)
      state = 'up'
    },

    /** Nothing arrives for a while; then everything does. */
    stall: async (ms: number) => {
      state = 'stalled'
      await delay(ms)
      state = 'up'
      for (const what of stalled.splice(0)) what()
    },

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
      for (const pair of pairs) pair.silent = true
    },

    close: () => {
      listener.close()
      cut()
    }
  }
}
