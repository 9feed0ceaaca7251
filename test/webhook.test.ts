import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { type AddressOptions, createAddressRules } from '../src/deliveries/address.ts'
import type { WebhookResult } from '../src/deliveries/exchange.ts'
import { reportIn } from '../src/deliveries/response-text.ts'
import { createWebhookClient, type WebhookOptions, type WebhookRequest } from '../src/deliveries/webhook.ts'
import { eventually } from './eventually.ts'
import { exactly } from './exactly.ts'

const OK = 'HTTP/1.1 200 OK\r\n'

// For localhost, self-signed, good until 2120.
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgd5PdX8jihKVXWMWB
ajg/QsgiDJexjkwT7nU0Cj0xVq2hRANCAASPeGGHwuXg6marcYCU5onVnOASNkfa
CUeftiPFscBMLVENifUCf7JsSsDC4XhPDNSGfrrBO1G1RD6APlk+TykN
-----END PRIVATE KEY-----`
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBYDCCAQegAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABI94YYfC5eDqZqtx
gJTmidWc4BI2R9oJR5+2I8WxwEwtUQ2J9QJ/smxKwMLheE8M1IZ+usE7UbVEPoA+
WT5PKQ2jSDBGMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAPBgNVHRMBAf8EBTADAQH/
MB0GA1UdDgQWBBR8Nd/wv6LdKDiQSLVqsWMKtp6V+TAKBggqhkjOPQQDAgNHADBE
AiBd3wQZzyvptlzBNT44MnWC12jiacc22fqpRRz3NEcangIgE0mDWyIlgpK0N6/U
mY018C2pXz83XyiGi/TU6VmGCgQ=
-----END CERTIFICATE-----`

/** Listens on loopback until the test ends, and counts connections. */
const listen = async (t: Test, server: Server) => {
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

/** An HTTP server that keeps what it received and answers as told. */
const receiver = async (t: Test, answer: (response: ServerResponse, received: Received) => unknown = response => response.end('ok')) => {
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

/** A server that speaks bytes. */
const rawReceiver = async (t: Test, speak: (socket: Socket) => unknown) => {
  const counts = await listen(t, createTcpServer(speak))
  return Object.assign(counts, { url: `http://127.0.0.1:${counts.port}/hook` })
}

/** A client that may call loopback, and fills in what a test does not say about a request. */
const client = (t: Test, rules: Partial<AddressOptions> = {}, options: Partial<WebhookOptions> = {}) => {
  const { post, destroy } = createWebhookClient({
    rules: createAddressRules({ allowCidrs: ['127.0.0.0/8', '::1/128'], allowHttp: true, ...rules }),
    ...options
  })
  t.teardown(destroy)
  return (url: string, request: Partial<WebhookRequest> = {}): Promise<WebhookResult> =>
    post({ url, method: 'POST', headers: {}, body: '{"a": 1}', timeoutMs: 10_000, ...request })
}

t.test('a request arrives as it was given', async t => {
  const hook = await receiver(t)
  const post = client(t, {}, { userAgent: 'pgcue/1.2.3' })
  const result = await post(`${hook.url}/ü?b=2&a=%20#part`, {
    headers: { 'X-Service-Cue-Id': 'cue_1', 'X-Custom': 'a, b' },
    body: '{"a": "\\u00fc"}'
  })
  exactly(t, hook.requests, [
    {
      method: 'POST',
      url: '/hook/%C3%BC?b=2&a=%20',
      body: '{"a": "\\u00fc"}',
      headers: {
        host: `127.0.0.1:${hook.port}`,
        'content-type': 'application/json',
        'content-length': '15',
        'user-agent': 'pgcue/1.2.3',
        'x-service-cue-id': 'cue_1',
        'x-custom': 'a, b'
      }
    }
  ])
  t.equal(hook.requests[0]!.headers['transfer-encoding'], undefined)
  exactly(t, result, { ok: true, http_status: 200, error: null, body: 'ok', answer: 'ok', retry_after_ms: null, gone: false })
  t.ok(result.started_at <= result.finished_at)
  t.ok(Number.isInteger(result.duration_ms) && result.duration_ms >= 0)
})

t.test('PUT and PATCH carry the body, GET carries none', async t => {
  const hook = await receiver(t)
  const post = client(t)
  for (const method of ['PUT', 'PATCH', 'GET'] as const) t.ok((await post(hook.url, { method })).ok)
  exactly(t, hook.requests, [
    { method: 'PUT', body: '{"a": 1}' },
    { method: 'PATCH', body: '{"a": 1}' },
    { method: 'GET', body: '', headers: { 'content-type': undefined, 'content-length': undefined } }
  ])
})

t.test('2xx is success and everything else is not', async t => {
  const hook = await receiver(t, (response, { url }) => response.writeHead(Number(url.slice(1))).end())
  const post = client(t)
  const results: [number, string | null][] = [
    [200, null],
    [201, null],
    [202, null],
    [204, null],
    [299, null],
    [400, 'answered 400 Bad Request'],
    [404, 'answered 404 Not Found'],
    [410, 'answered 410 Gone'],
    [500, 'answered 500 Internal Server Error'],
    [599, 'answered 599']
  ]
  for (const [status, error] of results)
    exactly(
      t,
      await post(`http://127.0.0.1:${hook.port}/${status}`),
      { ok: error === null, http_status: status, error, gone: status === 410 },
      `${status}`
    )
})

t.test('a redirect is a failure and is not followed', async t => {
  const target = await receiver(t)
  const hook = await receiver(t, (response, { url }) => response.writeHead(Number(url.slice(1)), { location: target.url }).end())
  const post = client(t)
  for (const status of [301, 302, 303, 307, 308])
    exactly(t, await post(`http://127.0.0.1:${hook.port}/${status}`), {
      ok: false,
      http_status: status,
      error: `redirects are not followed (${status})`
    })
  t.equal(target.connections, 0)
})

t.test('an answer that comes in pieces, after interim ones, is read whole', async t => {
  const hook = await receiver(t, async response => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    response.writeProcessing()
    response.writeHead(202)
    for (const piece of ['{"succ', 'ess": ', 'true}']) await new Promise<void>(written => response.write(piece, () => written()))
    response.end()
  })
  exactly(t, await client(t)(hook.url), { ok: true, http_status: 202, body: '{"success": true}' })
})

t.test('the deadline ends a request that is not answered, and its connection', async t => {
  const hook = await receiver(t, () => {})
  exactly(t, await client(t)(hook.url, { timeoutMs: 100 }), {
    ok: false,
    http_status: null,
    error: 'timed out after 0.1 s: no response',
    body: null
  })
  await eventually(() => hook.open === 0)
  t.equal(hook.requests.length, 1)
})

t.test('the deadline ends headers that come slowly', async t => {
  const hook = await rawReceiver(t, socket => {
    socket.write(OK)
    const timer = setInterval(() => socket.write('X-More: 1\r\n'), 10)
    socket.on('close', () => clearInterval(timer))
  })
  exactly(t, await client(t)(hook.url, { timeoutMs: 100 }), { ok: false, http_status: null, error: 'timed out after 0.1 s: no response' })
  await eventually(() => hook.open === 0)
})

t.test('the deadline ends a body that comes slowly, and the status alone decides', async t => {
  const hook = await receiver(t, (response, { url }) => {
    response.writeHead(Number(url.slice(1)))
    response.write('some')
    const timer = setInterval(() => response.write('.'), 10)
    response.on('close', () => clearInterval(timer))
  })
  const post = client(t)
  exactly(t, await post(`http://127.0.0.1:${hook.port}/200`, { timeoutMs: 100 }), {
    ok: true,
    http_status: 200,
    error: null,
    body: /^some\.*$/
  })
  exactly(t, await post(`http://127.0.0.1:${hook.port}/503`, { timeoutMs: 100 }), {
    ok: false,
    http_status: 503,
    error: 'answered 503 Service Unavailable'
  })
  await eventually(() => hook.open === 0)
})

t.test('the deadline ends a name server that does not answer', async t => {
  const post = client(t, { resolve: () => new Promise(() => {}) })
  exactly(t, await post('http://example.com/', { timeoutMs: 50 }), { ok: false, error: 'timed out after 0.05 s: no connection' })
})

t.test('the deadline ends a TLS handshake that stalls, and its connection', async t => {
  const hook = await rawReceiver(t, socket => socket.resume())
  exactly(t, await client(t)(`https://127.0.0.1:${hook.port}/`, { timeoutMs: 50 }), {
    ok: false,
    error: 'timed out after 0.05 s: no connection'
  })
  await eventually(() => hook.open === 0)
})

t.test('nothing is sent when the connection comes about after the deadline', async t => {
  const hook = await receiver(t)
  const { promise, resolve } = Promise.withResolvers<string[]>()
  const post = client(t, { resolve: () => promise })
  exactly(t, await post(`http://example.com:${hook.port}/late`, { timeoutMs: 50 }), { ok: false })
  resolve(['127.0.0.1'])
  await eventually(() => hook.connections > 0)
  exactly(t, await post(`http://example.com:${hook.port}/next`, { timeoutMs: 5000 }), { ok: true })
  exactly(t, hook.requests, [{ url: '/next' }])
  t.equal(hook.requests.length, 1)
})

t.test('at most 64 KB of an answer are read', async t => {
  const hook = await receiver(t, response => {
    const more = () => {
      while (!response.closed && response.write('x'.repeat(10_000)));
    }
    response.on('drain', more)
    more()
  })
  const result = await client(t)(hook.url)
  exactly(t, result, { ok: true, http_status: 200, error: null })
  t.equal(result.answer!.length, 64 * 1024)
  t.equal(result.body!.length, 2000)
  await eventually(() => hook.open === 0)
})

t.test('an answer that drips is put together', async t => {
  const hook = await receiver(t, async response => {
    for (let i = 0; i < 200; i++) {
      response.write(`${i} `)
      await new Promise(setImmediate)
    }
    response.end()
  })
  t.equal((await client(t)(hook.url)).answer, Array.from({ length: 200 }, (_, i) => `${i} `).join(''))
})

t.test('an answer of exactly 64 KB is whole, and its connection goes on', async t => {
  const hook = await receiver(t, response => response.end('x'.repeat(64 * 1024)))
  const post = client(t)
  t.equal((await post(hook.url)).answer!.length, 64 * 1024)
  t.equal(hook.open, 1)
})

t.test('2,000 characters of an answer are kept, none of them broken', async t => {
  const hook = await receiver(t, (response, { body }) => response.end(Buffer.from(JSON.parse(body), 'latin1')))
  const post = client(t)
  const kept = async (answer: Buffer): Promise<string | null> =>
    (await post(hook.url, { body: JSON.stringify(answer.toString('latin1')) })).body
  t.equal(await kept(Buffer.from('é'.repeat(2001))), 'é'.repeat(2000))
  t.equal(await kept(Buffer.from(`a${'😀'.repeat(3000)}`)), `a${'😀'.repeat(1999)}`)
  t.equal(await kept(Buffer.from(`a\0${'b'.repeat(1999)}\0c`)), `a${'b'.repeat(1999)}`)
  t.equal(await kept(Buffer.from([0x61, 0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80])), 'a\ufffd\ufffd(\ufffd\ufffd\ufffd')
  t.equal(await kept(Buffer.alloc(0)), '')
})

t.test('what goes wrong is said in words, without addresses', async t => {
  const post = client(t)
  const closed = createTcpServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  closed.close()
  await once(closed, 'close')
  exactly(t, await post(`http://127.0.0.1:${port}/`), { ok: false, http_status: null, error: 'connection refused', body: null })

  const failures: [string, (socket: Socket) => unknown][] = [
    ['connection closed before a response', socket => socket.once('data', () => socket.end())],
    ['connection closed before a response', socket => socket.once('data', () => socket.resetAndDestroy())],
    ['connection closed before a response', socket => socket.destroy()],
    ['response is not HTTP/1.1', socket => socket.end('SSH-2.0-OpenSSH_9.9\r\n')],
    ['response is not HTTP/1.1', socket => socket.once('data', () => socket.end('\u0000\u0001garbage\r\n\r\n'))],
    [
      'response is not HTTP/1.1',
      socket => socket.once('data', () => socket.end(`${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`))
    ],
    ['response headers too long', socket => socket.once('data', () => socket.write(`${OK}X-Long: ${'x'.repeat(20_000)}\r\n\r\n`))]
  ]
  for (const [error, speak] of failures) {
    const hook = await rawReceiver(t, speak)
    exactly(t, await post(hook.url), { ok: false, http_status: null, error }, error)
  }
})

t.test('an upgrade that nobody asked for is a failure', async t => {
  const hook = await rawReceiver(t, socket => {
    socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n'))
  })
  exactly(t, await client(t)(hook.url), { ok: false, error: 'connection closed before a response' })
})

t.test('names that do not resolve are said in words', async t => {
  const failing = (code: string) => client(t, { resolve: () => Promise.reject(Object.assign(new Error(code), { code })) })
  exactly(t, await failing('ENOTFOUND')('http://example.com/'), { ok: false, error: 'DNS: example.com was not found' })
  exactly(t, await failing('EAI_AGAIN')('http://example.com/'), { ok: false, error: 'DNS: lookup of example.com failed' })
})

t.test('a certificate is checked, and what is wrong with it is said', async t => {
  const { port } = await listen(
    t,
    createTlsServer({ key: KEY, cert: CERTIFICATE }, (_, response) => response.end('ok'))
  )
  exactly(t, await client(t)(`https://localhost:${port}/`), { ok: false, http_status: null, error: 'TLS: self-signed certificate' })
  const trusting = client(t, {}, { ca: CERTIFICATE })
  exactly(t, await trusting(`https://127.0.0.1:${port}/`), { ok: false, error: 'TLS: certificate issued for another host' })
  exactly(t, await trusting(`https://localhost:${port}/`), { ok: true, http_status: 200 })
})

t.test('TLS to a receiver that does not speak it fails', async t => {
  const { port } = await receiver(t)
  exactly(t, await client(t)(`https://127.0.0.1:${port}/`), { ok: false, error: 'TLS: handshake failed' })
})

t.test('an address that is not allowed is not dialled, whether literal, named or mapped', async t => {
  const hook = await receiver(t)
  const post = client(t, { allowCidrs: [], resolve: async () => ['127.0.0.1'] })
  for (const host of ['127.0.0.1', '2130706433', '[::1]', '[::ffff:127.0.0.1]', 'localhost', 'rebinds.example.com'])
    exactly(t, await post(`http://${host}:${hook.port}/`), { ok: false, http_status: null, error: /^blocked address: / }, host)
  t.equal(hook.connections, 0)
})

t.test('a name that changes its address after its URL was checked is not dialled', async t => {
  const hook = await receiver(t)
  const answers = [['93.184.215.14'], ['127.0.0.1']]
  const rules = createAddressRules({ allowCidrs: [], allowHttp: true, resolve: async () => answers.shift()! })
  const { post, destroy } = createWebhookClient({ rules })
  t.teardown(destroy)
  const url = `http://rebinds.example.com:${hook.port}/`
  exactly(t, await rules.checkUrl(url), { ok: true, unresolved: null })
  exactly(t, await post({ url, method: 'POST', headers: {}, body: '{}', timeoutMs: 5000 }), {
    ok: false,
    error: 'blocked address: rebinds.example.com resolves to an address that is not public'
  })
  t.equal(hook.connections, 0)
  t.same(answers, [])
})

t.test('a name goes to the address that was judged, under its own Host', async t => {
  const hook = await receiver(t)
  const asked: string[] = []
  const post = client(t, {
    resolve: async name => {
      asked.push(name)
      return ['127.0.0.1']
    }
  })
  exactly(t, await post(`http://Hooks.Example.com:${hook.port}/`), { ok: true })
  exactly(t, hook.requests, [{ headers: { host: `hooks.example.com:${hook.port}` } }])
  t.same(asked, ['hooks.example.com'])
})

t.test('the next address of a name is tried when one refuses', async t => {
  const hook = await receiver(t)
  exactly(t, await client(t, { resolve: async () => ['::1', '127.0.0.1'] })(`http://example.com:${hook.port}/`), { ok: true })
})

t.test('a stored URL that the rules no longer allow is not sent to', async t => {
  const hook = await receiver(t)
  exactly(t, await client(t, { allowHttp: false })(hook.url), { ok: false, error: 'blocked address: must start with https://' })
  exactly(t, await client(t)('http://127.0.0.1:6379/'), { ok: false, error: 'blocked address: port 6379 is not allowed' })
  t.equal(hook.connections, 0)
})

t.test('a header cannot smuggle another one, or a second request', async t => {
  const hook = await receiver(t)
  const post = client(t)
  const headers: Record<string, string>[] = [
    { 'X-Custom': 'a\r\nX-Injected: 1' },
    { 'X-Custom': 'a\n\nGET / HTTP/1.1' },
    { 'X-Custom\r\nX-Injected': '1' },
    { 'X-Custom': 'a\0b' },
    { 'X-Custom': 'snow ☃' },
    { '': 'a' },
    { 'Transfer-Encoding': 'chunked' },
    { 'Content-Length': '3, 4' }
  ]
  for (const header of headers)
    exactly(
      t,
      await post(hook.url, { headers: header }),
      { ok: false, http_status: null, error: 'invalid request header' },
      JSON.stringify(header)
    )
  t.equal(hook.requests.length, 0)
})

t.test('Retry-After counts with 429 and 503, in seconds or as a date, up to an hour', async t => {
  const hook = await receiver(t, (response, { headers }) => {
    if (headers['x-after'] !== undefined) response.setHeader('Retry-After', headers['x-after'])
    response.writeHead(Number(headers['x-status'])).end()
  })
  const post = client(t)
  const waits: [number, string | undefined, number | null][] = [
    [429, '120', 120_000],
    [503, '0', 0],
    [503, '99999', 3_600_000],
    [429, 'Fri, 31 Dec 9999 23:59:59 GMT', 3_600_000],
    [429, 'Wed, 21 Oct 2015 07:28:00 GMT', 0],
    [429, 'soon', null],
    [429, '-1', null],
    [429, '1.5', null],
    [429, undefined, null],
    [500, '120', null],
    [200, '120', null]
  ]
  for (const [status, after, ms] of waits) {
    const headers = { 'X-Status': String(status), ...(after !== undefined && { 'X-After': after }) }
    t.equal((await post(hook.url, { headers })).retry_after_ms, ms, `${status} ${after}`)
  }
  const soon = new Date(Date.now() + 60_000).toUTCString()
  const { retry_after_ms } = await post(hook.url, { headers: { 'X-Status': '503', 'X-After': soon } })
  t.ok(retry_after_ms! > 30_000 && retry_after_ms! <= 60_000, 'a date counts from now')
})

t.test('connections are used again', async t => {
  const hook = await receiver(t)
  const post = client(t)
  for (let i = 0; i < 20; i++) t.ok((await post(hook.url)).ok)
  t.ok(hook.connections <= 2, `${hook.connections} connections`)
})

t.test('a request that was lost on a reused connection is not sent twice', async t => {
  const hook = await receiver(t, (response, { url }) => (url === '/lost' ? response.destroy() : response.end('ok')))
  const post = client(t)
  await post(hook.url)
  exactly(t, await post(`http://127.0.0.1:${hook.port}/lost`), { ok: false, error: 'connection closed before a response' })
  exactly(t, await post(hook.url), { ok: true })
  t.same(
    hook.requests.map(({ url }) => url),
    ['/hook', '/lost', '/hook']
  )
})

t.test('requests to one receiver do not wait for each other', async t => {
  const waiting: ServerResponse[] = []
  const hook = await receiver(t, response => waiting.push(response))
  const post = client(t)
  const results = Array.from({ length: 300 }, () => post(hook.url))
  await eventually(() => waiting.length === 300)
  for (const response of waiting) response.end()
  t.ok((await Promise.all(results)).every(({ ok }) => ok))
})

t.test('destroying the client ends open requests with an error, and closes every connection', async t => {
  const waiting: ServerResponse[] = []
  const hook = await receiver(t, response => waiting.push(response))
  const { post, destroy } = createWebhookClient({ rules: createAddressRules({ allowCidrs: ['127.0.0.0/8'], allowHttp: true }) })
  const result = post({ url: hook.url, method: 'POST', headers: {}, body: '{}', timeoutMs: 10_000 })
  await eventually(() => waiting.length === 1)
  await destroy()
  exactly(t, await result, { ok: false, http_status: null, body: null })
  await eventually(() => hook.open === 0)
})

t.test('an idle connection closes after a few seconds', async t => {
  const hook = await receiver(t)
  t.ok((await client(t)(hook.url)).ok)
  t.equal(hook.open, 1)
  await eventually(() => hook.open === 0)
})

t.test('a report in the answer is read, from answers longer than what is kept too', async t => {
  const hook = await receiver(t, (response, { body }) => response.end(body))
  const post = client(t)
  const report = async (answer: unknown) =>
    reportIn(await post(hook.url, { body: typeof answer === 'string' ? answer : JSON.stringify(answer) }))
  t.same(await report({ success: true }), { success: true, result: null, error: null })
  t.same(await report({ success: false, error: 'no disk\0', result: 7 }), { success: false, result: null, error: 'no disk' })
  t.same(await report({ success: true, result: 'x'.repeat(3000) }), { success: true, result: 'x'.repeat(2000), error: null })
  t.same(await report('{"success": true, "result": "\\ud83d"}'), { success: true, result: '\ufffd', error: null })
  for (const answer of [
    { success: 'true' },
    { ok: true },
    '[{"success": true}]',
    '"success"',
    'null',
    'not JSON, "success"',
    '{"success": true'
  ])
    t.equal(await report(answer), null)
})

t.test('interim answers that nobody asked for are skipped, a 100 Continue too', async t => {
  for (const interim of ['100 Continue\r\n', '100 Continue\r\nX-A: b\r\n', '102 Processing\r\n', '103 Early Hints\r\nLink: </a>\r\n']) {
    for (const pause of [false, true]) {
      const hook = await rawReceiver(t, socket =>
        socket.on('data', async data => {
          if (!data.toString().includes('POST')) return
          socket.write(`HTTP/1.1 ${interim}\r\n`)
          if (pause) await new Promise(resolve => setTimeout(resolve, 20))
          socket.write(`HTTP/1.1 ${interim}\r\n${OK}Content-Length: 24\r\n\r\nHTTP/1.1 100 Continue\r\n\r`)
        })
      )
      const post = client(t)
      const body = 'HTTP/1.1 100 Continue\r\n\r'
      const { http_status, answer, error } = await post(hook.url)
      t.strictSame([http_status, answer, error], [200, body, null], interim)
    }
  }
})
