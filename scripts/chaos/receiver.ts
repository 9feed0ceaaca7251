/**
 * Receives the webhooks, in its own process, and records every request. The path determines the response: `/500/120` means after 120 ms,
 * with 500 for a slot's first request and 200 from then on.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answers } from '../bench/probe.ts'

/** A received request. Instants in epoch milliseconds. */
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

let sends: Send[] = []
const seen = new Set<string>()
const delivered = new Set<string>()
let awaited: { count: number; resolve: () => void } | undefined

const receive = (request: IncomingMessage, response: ServerResponse) => {
  const header = (name: string) => String(request.headers[name])
  const [, first, ms] = (request.url ?? '').split('/')
  const send: Send = {
    execution_id: header('x-service-execution-id'),
    cue_id: header('x-service-cue-id'),
    scheduled_for: Date.parse(header('x-service-scheduled-for')),
    attempt: Number(header('x-service-attempt')),
    token: header('authorization').replace('Bearer ', ''),
    at: Date.now(),
    status: null
  }
  sends.push(send)
  const slot = `${send.cue_id} ${send.scheduled_for}`
  const status = seen.has(slot) ? 200 : Number(first)
  seen.add(slot)
  response.on('error', () => {}) // the sender has gone
  response.on('finish', () => {
    send.status = status
    if (status === 200) delivered.add(slot)
    if (awaited && delivered.size >= awaited.count) awaited.resolve()
  })
  const answer = () =>
    response.writeHead(status, { 'content-type': 'application/json', ...(status === 429 && { 'retry-after': '1' }) }).end('{"ok":true}')
  request.resume().on('end', () => setTimeout(answer, Number(ms)))
}

const server = createServer(receive)
server.keepAliveTimeout = 60_000
server.requestTimeout = 0

/** Listens and returns the port. */
answers.listen = () =>
  new Promise(resolve => {
    server.listen(0, '127.0.0.1', 2048, () => resolve((server.address() as AddressInfo).port))
  })

answers.reset = () => {
  sends = []
  seen.clear()
  delivered.clear()
}

/** Resolves with the number of delivered slots when there are `count`, or at the time limit. */
answers.wait = async ({ count, limitMs }: { count: number; limitMs: number }) => {
  await new Promise<void>(resolve => {
    awaited = { count, resolve }
    setTimeout(resolve, limitMs)
    if (delivered.size >= count) resolve()
  })
  awaited = undefined
  return delivered.size
}

answers.sends = () => sends
