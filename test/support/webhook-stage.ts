/** Setup for tests of outgoing webhooks: receivers of requests and of raw bytes, and a client that may call them. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { type AddressOptions, createAddressRules } from '../../src/deliveries/address.ts'
import type { Handle } from '../../src/deliveries/exchange.ts'
import { createWebhookClient, type WebhookOptions, type WebhookRequest, type WebhookResult } from '../../src/deliveries/webhook.ts'

export const OK = 'HTTP/1.1 200 OK\r\n'

/** Listens on loopback until the test ends, and counts connections. */
export const listen = async (t: Test, server: Server) => {
  const sockets = new Set<Socket>()
  const counts = { connections: 0, open: 0 }
  server.on('connection', (socket: Socket) => {
    counts.connections++
    counts.open++
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => counts.open--)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return Object.assign(counts, { port: (server.address() as AddressInfo).port })
}

interface Received {
  method: string
  url: string
  headers: IncomingMessage['headers']
  rawHeaders: string[]
  body: string
}

/** An HTTP server that records its requests and responds as scripted. */
export const receiver = async (
  t: Test,
  answer: (response: ServerResponse, received: Received) => unknown = response => response.end('ok')
) => {
  const requests: Received[] = []
  const listener: RequestListener = async (request, response) => {
    const received = {
      method: request.method!,
      url: request.url!,
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      body: await text(request)
    }
    requests.push(received)
    await answer(response, received)
  }
  const counts = await listen(t, createServer(listener))
  return Object.assign(counts, { requests, url: `http://127.0.0.1:${counts.port}/hook` })
}

/** A server that sends raw bytes. */
export const rawReceiver = async (t: Test, speak: (socket: Socket) => unknown) => {
  const counts = await listen(t, createTcpServer(speak))
  return Object.assign(counts, { url: `http://127.0.0.1:${counts.port}/hook` })
}

/** A client that may call loopback and fills in members of a request omitted by a test. */
export const client = (t: Test, rules: Partial<AddressOptions> = {}, options: Partial<WebhookOptions> = {}) => {
  const { post, destroy } = createWebhookClient({
    rules: createAddressRules({ allowCidrs: ['127.0.0.0/8', '::1/128'], allowHttp: true, ...rules }),
    ...options
  })
  t.teardown(destroy)
  return (url: string, request: Partial<WebhookRequest> = {}, handle?: Handle): Promise<WebhookResult> =>
    post({ url, method: 'POST', headers: {}, body: '{"a": 1}', timeoutMs: 10_000, ...request }, handle)
}
