/**
 * Receives the webhooks, in a process of its own, and keeps a record of every one. The path says what is answered: `/500/120` means after
 * 120 ms, and 500 the first time that a slot comes, 200 from then on.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answers } from '../bench/probe.ts'

/** One request. Instants in epoch milliseconds. */
export type Send = {
  execution_id: string
  cue_id: string
  scheduled_for: number
  attempt: number
  /** Made by the replica that sent it, from a secret of its own. */
  token: string
  at: number
  /** What was answered; null while it was not, or when the sender was gone by then. */
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
  response.on('error', () => {}) // the sender is gone
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

/** Listens, and tells the port. */
answers.listen = () =>
  new Promise(resolve => {
    server.listen(0, '127.0.0.1', 2048, () => resolve((server.address() as AddressInfo).port))
  })

answers.reset = () => {
  sends = []
  seen.clear()
  delivered.clear()
}

/** Resolves when so many slots have been delivered, or after a time, and tells how many have. */
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
