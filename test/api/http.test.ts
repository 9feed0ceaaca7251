/** HTTP over real sockets: bodies in pieces, aborted, late or too large, invalid HTTP, and a graceful stop. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import type { App } from '../../src/app.ts'
import { Strict } from '../../src/schemas.ts'
import { exactly } from '../support/exactly.ts'
import { build, error, eventually } from '../support/setup.ts'

type Line = { msg: string; level: number; route?: string; status?: number; err?: unknown }

/** The service on a port, with a route that measures a body and one that waits to be released. */
const listening = async (t: Test, options: Parameters<typeof build>[2] = {}, prepare = (_: App): unknown => undefined) => {
  const log: Line[] = []
  const logStream = { write: (line: string) => void log.push(JSON.parse(line)) }
  const { app, account } = await build(t, undefined, { env: { LOG_LEVEL: 'info' }, logStream, ...options })
  const gate = Promise.withResolvers<void>()
  const config = { exempt: true }
  app.post('/size', { config, schema: { body: Strict({ text: Type.String() }) } }, async ({ body }) => ({ length: body.text.length }))
  app.get('/held', { config }, async () => {
    await gate.promise
    return { held: true }
  })
  prepare(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return { app, account, port, log, release: () => gate.resolve(), send: (...pieces: (string | Buffer)[]) => send(port, pieces) }
}

/** Writes to a connection of its own, and gives what came back until the service closed it. */
const send = async (port: number, pieces: (string | Buffer)[]) => {
  const socket = connect(port, '127.0.0.1')
  const answer = read(socket)
  for (const piece of pieces) if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
  return answer
}

const read = async (socket: Socket) => {
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', data => {
    text += data
  })
  socket.on('error', () => {})
  await new Promise(resolve => socket.on('close', resolve))
  const [head = '', body = ''] = text.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body: /^{.*}$/.test(body) ? JSON.parse(body) : body }
}

const head = (method: string, path: string, ...headers: string[]) =>
  [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Content-Type: application/json', ...headers, '\r\n'].join('\r\n')

const chunk = (part: Buffer) => Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')])

t.test('reads a chunked body completely, even if a character is split', async t => {
  const { send } = await listening(t)
  const bytes = Buffer.from('{"text": "grüße"}')
  const pieces = [chunk(bytes.subarray(0, 13)), chunk(bytes.subarray(13)), '0\r\n\r\n']
  const answer = await send(head('POST', '/size', 'Connection: close', 'Transfer-Encoding: chunked'), ...pieces)
  exactly(t, answer, { status: 200, body: { length: 5 } })
})

/** One request by Node's client; `reused` says that its connection had served one before. */
const ask = async (port: number, { method = 'GET', path = '/held', agent = new Agent(), headers = {} }, body?: string) => {
  const outgoing = request({ host: '127.0.0.1', port, method, path, agent, headers: { 'content-type': 'application/json', ...headers } })
  outgoing.end(body)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  let text = ''
  for await (const part of incoming) text += part
  return { status: incoming.statusCode, headers: incoming.headers, body: JSON.parse(text), reused: outgoing.reusedSocket }
}

const textOf = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes - '{"text":""}'.length) })
const limit = 16 * 1024

for (const [name, headers] of [
  ['known', {}],
  ['unknown', { 'transfer-encoding': 'chunked' }]
] as const) {
  t.test(`rejects a body over 16 KB with 413 if its length is ${name}, and the connection continues`, async t => {
    const { port } = await listening(t)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const to = { method: 'POST', path: '/size', agent, headers }
    const message = 'Request body too large: the maximum here is 16 KB.'
    const { status, body } = await ask(port, to, textOf(limit + 1))
    t.same([status, body], [413, { error: { code: 'payload_too_large', message, status: 413 } }])
    exactly(t, await ask(port, to, textOf(limit)), { status: 200, body: { length: limit - 11 }, reused: true })
  })
}

t.test('disconnects a client that keeps sending after a rejection', async t => {
  const { port } = await listening(t, { patience: { headers: 200, request: 400 } })
  const socket = connect(port, '127.0.0.1')
  const answer = read(socket)
  const large = Buffer.alloc(2 ** 20)
  socket.write(head('POST', '/size', 'Content-Length: 1000000000000'))
  const pump = () => {
    while (!socket.destroyed && socket.write(large));
  }
  socket.on('drain', pump)
  pump()
  exactly(t, await answer, { status: 413, body: /payload_too_large/ })
})

t.test('an aborted body is not logged as an error', async t => {
  const { port, log } = await listening(t)
  const socket = connect(port, '127.0.0.1')
  socket.write(`${head('POST', '/size', 'Content-Length: 100')}{"te`)
  await once(socket, 'ready')
  socket.end()
  await eventually(() => log.some(line => line.msg === 'request aborted by the client' && line.route === '/size'))
  t.notOk(
    log.some(line => line.level > 30),
    'no warning and no error'
  )
})

t.test('responds with 408 to headers or a body that arrive too late', async t => {
  const { send, log } = await listening(t, { patience: { headers: 200, request: 400 } })
  const late = { status: 408, head: /x-request-id: /, body: { error: { code: 'validation_error', status: 408 } } }
  exactly(t, await send('GET /health HT'), late)
  exactly(t, await send(''), { status: 408 }, 'nothing at all')
  exactly(t, await send(`${head('POST', '/size', 'Content-Length: 100')}{"te`), late)
  t.notOk(log.some(line => line.level > 30))
})

t.test('sends a response that takes longer than the time limit for requests', async t => {
  const { port, release } = await listening(t, { patience: { headers: 100, request: 200 } })
  const answer = ask(port, {})
  await ask(port, { path: '/health' })
  setTimeout(release, 500)
  exactly(t, await answer, { status: 200, body: { held: true } })
})

t.test('rejects anything that is not HTTP with the usual error format', async t => {
  const { send } = await listening(t)
  for (const [what, text, status] of [
    ['a TLS handshake', '\x16\x03\x01\x02\x00', 400],
    ['an unknown method', head('BREW', '/'), 400],
    ['two lengths', head('POST', '/size', 'Content-Length: 1', 'Content-Length: 2'), 400],
    ['a length and chunks', head('POST', '/size', 'Content-Length: 1', 'Transfer-Encoding: chunked'), 400],
    ['headers over 16 KB', head('GET', '/', `X-Long: ${'x'.repeat(20_000)}`), 431]
  ] as const) {
    exactly(
      t,
      await send(text),
      {
        status,
        head: /x-request-id: .*x-ratelimit-limit: 60.*x-ratelimit-reset: \d/s,
        body: { error: { code: 'validation_error', status } }
      },
      what
    )
  }
})

t.test('the host of a request is that of an absolute target, or else of its only Host header', async t => {
  const { send } = await listening(t)
  const get = (target: string, ...hosts: string[]) =>
    send([`GET ${target} HTTP/1.1`, ...hosts.map(host => `Host: ${host}`), 'Connection: close', '\r\n'].join('\r\n'))
  const misdirected = error('misdirected_request', 421)
  exactly(t, await get('/health', 'localhost'), { status: 200 })
  exactly(t, await get('http://localhost:1/health', 'evil.example'), { status: 200 })
  for (const target of [
    'http://evil.example/health',
    'HTTPS://evil.example/health',
    'http://evil.example?x',
    'http:///health',
    'http://x@localhost/'
  ])
    exactly(t, await get(target, 'localhost'), misdirected, target)
  exactly(t, await get('ftp://localhost/health', 'evil.example'), misdirected, 'not absolute to the router')
  for (const host of ['evil.example', '']) exactly(t, await get('//localhost/health', host), misdirected, 'a path, not a host')
  exactly(t, await send('GET /health HTTP/1.0\r\n\r\n'), misdirected, 'no host')
  for (const hosts of [
    ['localhost', 'evil.example'],
    ['localhost', 'localhost'],
    ['evil.example', 'localhost']
  ])
    exactly(t, await get('/health', ...hosts), error('validation_error', 400), hosts.join())
})

t.test('a stopping service finishes its requests and closes all connections', async t => {
  const { app, port, release } = await listening(t)
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  await ask(port, { path: '/health', agent })
  const silent = read(connect(port, '127.0.0.1'))
  const begun = once(app.server, 'request')
  const held = ask(port, { agent: new Agent({ keepAlive: true }) })
  await begun
  const closed = app.close()
  exactly(t, await silent, { head: '' })
  release()
  exactly(t, await held, { status: 200, headers: { connection: 'close' }, body: { held: true } })
  await closed
  await t.rejects(ask(port, { path: '/health' }), { code: 'ECONNREFUSED' })
})

t.test('responds with 503 to requests that arrive while stopping', async t => {
  const rest = Promise.withResolvers<void>()
  const { app, port } = await listening(t, {}, app => app.addHook('preClose', () => rest.promise))
  const closed = app.close()
  await eventually(() => app.closing.aborted)
  const headers = { connection: 'close', 'retry-after': /^\d+$/ }
  exactly(t, await ask(port, { agent: new Agent({ keepAlive: true }) }), {
    status: 503,
    headers,
    body: { error: { code: 'unavailable', status: 503 } }
  })
  rest.resolve()
  await closed
})

t.test('refuses names that clients remove from paths, from those that do not', async t => {
  const { send, account } = await listening(t)
  const call = async (method: string, path: string, body: object) => {
    const text = JSON.stringify(body)
    const headers = [`Authorization: Bearer ${account.api_key}`, 'Connection: close', `Content-Length: ${text.length}`]
    const { status, body: answer } = await send(head(method, path, ...headers), text)
    return [status, answer.detail?.[0].loc.join('.'), answer.detail?.[0].msg]
  }
  const cue = { name: 'a', cron: '@daily', worker: true }
  const execution = '01890a5d-ac96-774b-bcce-b302099a8057'
  const msg = "Input should not be '.' or '..': clients remove these from paths"
  for (const name of ['.', '..', '%2E']) {
    t.same(await call('PUT', `/v1/cues/by-key/${name}`, cue), [422, 'path.key', msg], name)
    t.same(await call('PUT', `/v1/calendars/${name}`, {}), [422, 'path.name', msg], name)
  }
  for (const worker_id of ['.', '..']) {
    t.same(await call('POST', '/v1/worker/heartbeat', { worker_id, handlers: [] }), [422, 'body.worker_id', msg])
    t.same(await call('POST', '/v1/executions/claim', { worker_id }), [422, 'body.worker_id', msg])
    t.same(await call('POST', `/v1/executions/${execution}/claim`, { worker_id }), [422, 'body.worker_id', msg])
  }
  t.same((await call('PUT', '/v1/calendars/...', {}))[0], 201)
  t.same((await call('POST', '/v1/worker/heartbeat', { worker_id: '.a', handlers: [] }))[0], 200)
})
