/**
 * Receives webhooks, in its own process. The path decides: /hook is counted and answered at once; /hang is held until it is released; /uncounted is
 * not recorded; /500/120 is recorded in full and answered after 120 ms, with 500 for an execution's first request and 200 from then on: 0 is no answer,
 * 502 is for all requests, and /200/120/0.05 reports costs. It reads bare sockets, because receivers normally run elsewhere and should cost as little CPU as possible here.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { answers } from './probe.ts'

/** Arrival and due times of the requests to /hook in the order of arrival, without duplicates, in epoch milliseconds. */
export type Arrivals = { at: number[]; due: number[]; duplicates: number }

/** A request to a path with a status. Instants in epoch milliseconds. */
export type Send = {
  execution_id: string
  cue_id: string
  scheduled_for: number
  attempt: number
  /** The execution token, which only the sending replica's secret can produce. */
  token: string
  at: number
  /** The status sent; null before that, or if the sender had gone. */
  status: number | null
}

/** Ids of deliveries, in 256 sets by their ends: a set of a million would pause to grow. */
let seen = new Map<string, Set<string>>()
let arrivals: Arrivals = { at: [], due: [], duplicates: 0 }
let sends: Send[] = []
let count = 0
let awaited: { count: number; resolve: () => void } | undefined
const held = new Set<Socket>()

/** Whether an id is new. Keeps a copy: a part of a string keeps all of it in memory, and collecting that takes seconds. */
const isNew = (id: string) => {
  const end = id.slice(-2)
  const alike = seen.get(end) ?? new Set()
  if (alike.has(id)) return false
  seen.set(end, alike.add(Buffer.from(id, 'latin1').toString('latin1')))
  return true
}

const countOne = () => {
  count++
  if (awaited && count >= awaited.count) awaited.resolve()
}

const response = (status: number, body = '{"ok":true}', headers = '') =>
  `HTTP/1.1 ${status} Status\r\ncontent-type: application/json\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`
const ok = Buffer.from(response(200))

const headerOf = (head: string, pattern: RegExp) => pattern.exec(head)?.[1] ?? ''
const header = (name: string) => new RegExp(`\\r\\n(?:${name}): ([^\\r]*)`, 'i')
const length = header('content-length')
const id = header('x-service-execution-id|x-bench-job')
const due = header('x-service-scheduled-for|x-bench-due')
const [cue, attempt, token] = [header('x-service-cue-id'), header('x-service-attempt'), header('authorization')]

const noteArrival = (head: string) => {
  if (!isNew(headerOf(head, id))) return void arrivals.duplicates++
  arrivals.at.push(Date.now())
  arrivals.due.push(Date.parse(headerOf(head, due)))
  countOne()
}

const noteSend = async (socket: Socket, head: string, status: number, ms: number, amount?: string) => {
  const send: Send = {
    execution_id: headerOf(head, id),
    cue_id: headerOf(head, cue),
    scheduled_for: Date.parse(headerOf(head, due)),
    attempt: Number(headerOf(head, attempt)),
    token: headerOf(head, token).replace('Bearer ', ''),
    at: Date.now(),
    status: null
  }
  sends.push(send)
  const answered = isNew(send.execution_id) || status === 502 ? status : 200
  await delay(ms)
  if (!socket.writable || answered === 0) return
  const body = amount && `{"success":true,"costs":[{"amount":"${amount}","unit":"usd"}]}`
  socket.write(response(answered, body, answered === 429 ? 'retry-after: 1\r\n' : ''), error => {
    if (error) return
    send.status = answered
    if (answered === 200 && isNew(`delivered ${send.execution_id}`)) countOne()
  })
}

const receive = (socket: Socket, head: string) => {
  if (head.startsWith('POST /hook ')) noteArrival(head)
  else if (head.startsWith('POST /hang ')) return void held.add(socket)
  else if (!head.startsWith('POST /uncounted ')) {
    const [, status, ms, amount] = /^\w+ \/(\d+)\/(\d+)(?:\/([\d.]+))? /.exec(head) ?? []
    return void noteSend(socket, head, Number(status), Number(ms), amount)
  }
  socket.write(ok)
}

const server = createServer({ noDelay: true }, socket => {
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    text += chunk
    for (let at = text.indexOf('\r\n\r\n'); at >= 0; at = text.indexOf('\r\n\r\n')) {
      const head = text.slice(0, at + 2)
      const end = at + 4 + Number(headerOf(head, length))
      if (text.length < end) return
      text = text.slice(end)
      receive(socket, head)
    }
  })
  socket.on('close', () => held.delete(socket))
  socket.on('error', () => {})
})

Object.assign(answers, {
  /** Listens and returns the port. */
  listen: () =>
    new Promise(resolve => {
      server.listen(0, '127.0.0.1', 2048, () => resolve((server.address() as AddressInfo).port))
    }),

  reset: () => {
    seen = new Map()
    arrivals = { at: [], due: [], duplicates: 0 }
    sends = []
    count = 0
  },

  /** Resolves with the number of deliveries when there are this many, or at the time limit. */
  wait: async ({ count: expected, limitMs }: { count: number; limitMs: number }) => {
    const reached = new Promise<void>(resolve => {
      awaited = { count: expected, resolve }
    })
    if (count < expected) await Promise.race([reached, delay(limitMs, undefined, { ref: false })])
    awaited = undefined
    return count
  },

  arrivals: () => arrivals,
  sends: () => sends,
  count: () => count,

  /** Responds to the held requests. */
  release: () => {
    for (const socket of held) socket.write(response(200, ''))
    held.clear()
  }
})
