/**
 * Receives the bench's webhooks, in a process of its own: notes when each delivery came and answers 200. What is posted to /hang is held
 * until it is released, and not noted.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { quantile } from './figures.ts'
import { answers } from './probe.ts'

/** Instants in epoch milliseconds, lateness in milliseconds. */
export type Received = { count: number; duplicates: number; last: number; late: { p50: number; p99: number; max: number } }

/** By the id that a sender gives a delivery: when it came, and when it was due, as its headers have it. */
const seen = new Map<string, { at: number; due: string }>()
const held = new Set<ServerResponse>()
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

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    if (request.url === '/hang') return held.add(response)
    const { headers } = request
    note(
      String(headers['x-service-execution-id'] ?? headers['x-bench-job']),
      String(headers['x-service-scheduled-for'] ?? headers['x-bench-due'])
    )
    return response.writeHead(200, { 'content-type': 'application/json', 'content-length': 11 }).end('{"ok":true}')
  })
})
server.keepAliveTimeout = 60_000
server.requestTimeout = 0

const received = (): Received => {
  const late = [...seen.values()].map(({ at, due }) => at - Date.parse(due)).sort((a, b) => a - b)
  return {
    count: seen.size,
    duplicates,
    last,
    late: { p50: quantile(late, 0.5), p99: quantile(late, 0.99), max: late.at(-1) ?? Number.NaN }
  }
}

/** Listens, and tells the port. */
answers.listen = () =>
  new Promise(resolve => {
    server.listen(0, '127.0.0.1', 2048, () => resolve((server.address() as AddressInfo).port))
  })

answers.reset = () => {
  seen.clear()
  duplicates = last = 0
}

/** Resolves when so many deliveries have come. */
answers.wait = async (count: number) => {
  await new Promise<void>(resolve => {
    awaited = { count, resolve }
    if (seen.size >= count) resolve()
  })
  awaited = undefined
  return received()
}

answers.received = received

/** Answers what hangs. */
answers.release = () => {
  for (const response of held) response.end()
  held.clear()
}
