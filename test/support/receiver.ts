import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { eventually } from './eventually.ts'

export type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: string; at: Date }
export type Answer = { status?: number; headers?: Record<string, string>; body?: string | object }
/** Returns the response to the n-th request, from 0. A promise delays the response; one that never resolves hangs. */
export type Script = (request: Received, n: number) => Answer | Promise<Answer>

/**
 * A real HTTP server on this machine that keeps the requests it receives. Responds with 200 `{}` unless a script, or `answer`, says otherwise.
 * Closed at the end of the test, including hanging requests.
 */
export const receiver = async (t: Test, script: Script = () => ({})) => {
  const requests: Received[] = []
  let current = script
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url: path = '', headers } = request
    const received = { method, path, headers, body: Buffer.concat(chunks).toString(), at: new Date() }
    const n = requests.push(received) - 1
    const { status = 200, headers: own = {}, body = {} } = await current(received, n)
    response.writeHead(status, { ...(typeof body === 'object' && { 'content-type': 'application/json' }), ...own })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  server.on('request', (_, response) => response.on('error', () => {})) // the sender hung up
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests,
    /** Sets the response to further requests. */
    answer: (next: Script | Answer) => {
      current = typeof next === 'function' ? next : () => next
    },
    /** Waits until this many have arrived, and returns them. */
    received: async (count = 1, limitMs?: number): Promise<Received[]> => {
      await eventually(() => requests.length >= count, limitMs)
      return requests
    }
  }
}
