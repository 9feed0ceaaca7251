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

/** Arrival and due time of each delivery, from its headers, by the sender's id. */
const seen = new Map<string, { at: number; due: string }>()
const held = new Set<Socket>()
let duplicates = 0
let last = 0
let awaited: { count: number; resolve: () => void } | undefined

const note = (id: string, due: string) => {
  if (seen.has(id)) {
    duplicates++
    return
  }
  last = Date.now()
  seen.set(id, { at: last, due })
  if (awaited && seen.size >= awaited.count) awaited.resolve()
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

const received = (): Received => {
  const late = [...seen.values()].map(({ at, due }) => at - Date.parse(due)).sort((a, b) => a - b)
  return {
    count: seen.size,
    duplicates,
    last,
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
  duplicates = last = 0
}

/** Resolves when `count` deliveries have arrived. */
answers.wait = async (count: number) => {
  await new Promise<void>(resolve => {
    awaited = { count, resolve }
    if (seen.size >= count) resolve()
  })
  awaited = undefined
  return received()
}

answers.received = received

answers.count = () => seen.size

/** Returns arrival and due time of every recorded delivery, in epoch milliseconds. */
answers.deliveries = () => [...seen.values()].map(({ at, due }) => ({ at, due: Date.parse(due) }))

/** Returns the p99 lateness of each tenth of the deliveries, in milliseconds, and the seconds between the first and the last. */
answers.tenths = () => {
  const all = [...seen.values()]
  const p99 = Array.from({ length: 10 }, (_, i) => {
    const some = all.slice((i * all.length) / 10, ((i + 1) * all.length) / 10)
    return quantile(
      some.map(({ at, due }) => at - Date.parse(due)).sort((a, b) => a - b),
      0.99
    )
  })
  return { p99, duplicates, count: all.length, seconds: (last - all[0]!.at) / 1000 } satisfies Tenths
}

/** Responds to the held requests. */
answers.release = () => {
  for (const socket of held) socket.write(released)
  held.clear()
}
