/**
 * Receives the bench's webhooks, in its own process: records when each delivery arrives and responds with 200. Requests to /hang are held
 * until they are released; those and requests to /uncounted are not recorded. It reads bare sockets, because receivers normally run
 * elsewhere and should cost as little CPU as possible here.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { quantile } from './figures.ts'
import { answers } from './probe.ts'

/** Instants in epoch milliseconds, lateness in milliseconds. */
export type Received = { count: number; duplicates: number; last: number; late: { p50: number; p99: number; max: number } }

export type Tenths = { p99: number[]; duplicates: number; count: number; seconds: number }

/** Ids of the recorded deliveries, as the sender names them, in 256 sets by their ends: a set of a million would pause to grow. */
const seen = new Map<string, Set<string>>()
/** Arrival and due times of the recorded deliveries, in the order of arrival, in epoch milliseconds. */
let arrivals: number[] = []
let dues: number[] = []
const held = new Set<Socket>()
let duplicates = 0
let awaited: { count: number; resolve: () => void } | undefined

/** A copy: a part of a string keeps all of it in memory, and with a million requests, collecting garbage would take seconds. */
const copy = (text: string) => Buffer.from(text, 'latin1').toString('latin1')

const note = (id: string, due: string) => {
  const end = id.slice(-2)
  const alike = seen.get(end) ?? new Set()
  if (alike.has(id)) {
    duplicates++
    return
  }
  seen.set(end, alike.add(copy(id)))
  arrivals.push(Date.now())
  dues.push(Date.parse(due))
  if (awaited && arrivals.length >= awaited.count) awaited.resolve()
}

const answer = (body: string) =>
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
const ok = answer('{"ok":true}')
const released = answer('')

const headerOf = (head: string, pattern: RegExp) => pattern.exec(head)?.[1] ?? ''
const length = /\r\ncontent-length: (\d+)/i
const id = /\r\n(?:x-service-execution-id|x-bench-job): ([^\r]*)/i
const due = /\r\n(?:x-service-scheduled-for|x-bench-due): ([^\r]*)/i

const server = createServer({ noDelay: true }, socket => {
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    text += chunk
    for (let at = text.indexOf('\r\n\r\n'); at >= 0; at = text.indexOf('\r\n\r\n')) {
      const head = text.slice(0, at)
      const end = at + 4 + Number(headerOf(head, length))
      if (text.length < end) return
      text = text.slice(end)
      if (head.startsWith('POST /hang ')) held.add(socket)
      else if (head.startsWith('POST /uncounted ')) socket.write(ok)
      else {
        note(headerOf(head, id), headerOf(head, due))
        socket.write(ok)
      }
    }
  })
  socket.on('close', () => held.delete(socket))
  socket.on('error', () => {})
})

/** How late each delivery arrived, from one place to another, sorted. */
const lateness = (from = 0, to = arrivals.length) =>
  arrivals
    .slice(from, to)
    .map((at, n) => at - dues[from + n]!)
    .sort((a, b) => a - b)

const received = (): Received => {
  const late = lateness()
  return {
    count: arrivals.length,
    duplicates,
    last: arrivals.at(-1) ?? 0,
    late: { p50: quantile(late, 0.5), p99: quantile(late, 0.99), max: late.at(-1) ?? Number.NaN }
  }
}

/** Listens and returns the port. */
answers.listen = () =>
  new Promise(resolve => {
    server.listen(0, '127.0.0.1', 2048, () => resolve((server.address() as AddressInfo).port))
  })

answers.reset = () => {
  seen.clear()
  arrivals = []
  dues = []
  duplicates = 0
}

/** Resolves when `count` deliveries have arrived. */
answers.wait = async (count: number) => {
  await new Promise<void>(resolve => {
    awaited = { count, resolve }
    if (arrivals.length >= count) resolve()
  })
  awaited = undefined
  return received()
}

answers.received = received

answers.count = () => arrivals.length

/** Returns arrival and due time of every recorded delivery, in epoch milliseconds. */
answers.deliveries = () => arrivals.map((at, n) => ({ at, due: dues[n]! }))

/** Returns the p99 lateness of each tenth of the deliveries, in milliseconds, and the seconds between the first and the last. */
answers.tenths = () => {
  const { length: count } = arrivals
  const start = (tenth: number) => Math.floor((tenth * count) / 10)
  const p99 = Array.from({ length: 10 }, (_, i) => quantile(lateness(start(i), start(i + 1)), 0.99))
  return { p99, duplicates, count, seconds: (arrivals.at(-1)! - arrivals[0]!) / 1000 } satisfies Tenths
}

/** Responds to the held requests. */
answers.release = () => {
  for (const socket of held) socket.write(released)
  held.clear()
}
