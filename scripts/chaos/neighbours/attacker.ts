/** Attacks a replica from its own process, so that the cost of sending an attack doesn't affect the measurement. Loopback only. */
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent } from 'undici'
import { answers } from '../../stage/probe.ts'

export type AttackRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH'
  path: string
  headers?: Record<string, string>
  body?: string
}
export type Flood = {
  url: string
  requests: AttackRequest[]
  /** Requests in flight. Each worker sends the next request of the list, in a loop. */
  parallel: number
  seconds: number
  /** Leaves responses unread and their connections open. */
  unread?: boolean
  /** Number of loopback addresses from which requests are sent. */
  addresses?: number
  /** Maximum requests per second of each worker. */
  perSecond?: number
}
/** Connections that send a text this many times and then, if it drips, a byte now and then; otherwise, they never read. */
export type Connections = { url: string; text: string; times?: number; drips?: boolean; connections: number; seconds: number }
export type Damage = { requests: number; statuses: Record<string, number>; megabytes: number }

const addressOf = (n: number) => `127.0.0.${2 + (n % 250)}`

/** Sends requests as fast as they are answered, and counts the responses. */
answers.flood = async ({ url, requests, parallel, seconds, unread, addresses = 1, perSecond }: Flood): Promise<Damage> => {
  const damage: Damage = { requests: 0, statuses: {}, megabytes: 0 }
  const end = Date.now() + seconds * 1000
  const over = AbortSignal.timeout(seconds * 1000)
  const agents = Array.from(
    { length: addresses },
    (_, n) => new Agent({ connections: parallel, localAddress: addressOf(n), bodyTimeout: 0 })
  )
  let next = 0
  const one = async (request: AttackRequest, agent: Agent) => {
    const { statusCode, body } = await agent.request({ origin: url, ...request, signal: over })
    damage.statuses[statusCode] = (damage.statuses[statusCode] ?? 0) + 1
    if (unread) return void body.on('error', () => {})
    for await (const chunk of body) damage.megabytes += chunk.length / 2 ** 20
  }
  const work = async (_: unknown, worker: number) => {
    while (Date.now() < end) {
      const startedAt = Date.now()
      damage.requests++
      await one(requests[next++ % requests.length]!, agents[worker % addresses]!).catch(error => {
        const name = over.aborted ? 'unanswered' : (error.code ?? error.name)
        damage.statuses[name] = (damage.statuses[name] ?? 0) + 1
      })
      if (perSecond) await delay(Math.max(0, Math.min(startedAt + 1000 / perSecond, end) - Date.now()))
    }
  }
  await Promise.all(Array.from({ length: parallel }, work))
  await Promise.all(agents.map(agent => agent.destroy()))
  return damage
}

answers.connect = async ({ url, text, times = 1, drips, connections, seconds }: Connections): Promise<Damage> => {
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: connections }, () => connect(Number(port), hostname).on('error', () => {}))
  // A paused connection notices no end.
  for (const socket of sockets) (drips ? socket.resume() : socket.pause()).write(text.repeat(times))
  const timer = setInterval(() => {
    for (const socket of drips ? sockets : []) if (socket.writable) socket.write('[')
  }, 500)
  await delay(seconds * 1000)
  clearInterval(timer)
  const closed = sockets.filter(socket => socket.destroyed).length
  for (const socket of sockets) socket.destroy()
  return { requests: times * connections, statuses: { closed }, megabytes: 0 }
}
