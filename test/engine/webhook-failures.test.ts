/** Requests that fail: deadlines, connections, TLS and blocked addresses. */
import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import t from 'tap'
import { createAddressRules } from '../../src/deliveries/address.ts'
import { createWebhookClient } from '../../src/deliveries/webhook.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { client, listen, OK, rawReceiver, receiver } from '../support/webhook-stage.ts'

// For localhost, self-signed, valid until 2120.
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

t.test('the deadline ends a request without a response, and its connection', async t => {
  const hook = await receiver(t, () => {})
  exactly(t, await client(t)(hook.url, { timeoutMs: 100 }), {
    ok: false,
    http_status: null,
    error: 'timed out after 0.1 s: no response',
    answer: null
  })
  await eventually(() => hook.open === 0)
  t.equal(hook.requests.length, 1)
})

t.test('the deadline ends headers that arrive slowly', async t => {
  const hook = await rawReceiver(t, socket => {
    socket.write(OK)
    const timer = setInterval(() => socket.write('X-More: 1\r\n'), 10)
    socket.on('close', () => clearInterval(timer))
  })
  exactly(t, await client(t)(hook.url, { timeoutMs: 100 }), { ok: false, http_status: null, error: 'timed out after 0.1 s: no response' })
  await eventually(() => hook.open === 0)
})

t.test('the deadline ends a body that arrives slowly, and the status alone decides', async t => {
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
    answer: /^some\.*$/
  })
  exactly(t, await post(`http://127.0.0.1:${hook.port}/503`, { timeoutMs: 100 }), {
    ok: false,
    http_status: 503,
    error: 'answered 503 Service Unavailable'
  })
  await eventually(() => hook.open === 0)
})

t.test('the deadline ends a DNS lookup without a response', async t => {
  const post = client(t, { resolve: () => new Promise(() => {}) })
  exactly(t, await post('http://example.com/', { timeoutMs: 50 }), { ok: false, error: 'timed out after 0.05 s: no connection' })
})

t.test('the deadline ends a stalled TLS handshake, and its connection', async t => {
  const hook = await rawReceiver(t, socket => socket.resume())
  exactly(t, await client(t)(`https://127.0.0.1:${hook.port}/`, { timeoutMs: 50 }), {
    ok: false,
    error: 'timed out after 0.05 s: no connection'
  })
  await eventually(() => hook.open === 0)
})

t.test('does not connect after the deadline', async t => {
  const hook = await receiver(t)
  const { promise, resolve } = Promise.withResolvers<string[]>()
  const post = client(t, { resolve: () => promise })
  exactly(t, await post(`http://example.com:${hook.port}/late`, { timeoutMs: 50 }), { ok: false })
  resolve(['127.0.0.1'])
  exactly(t, await post(`http://example.com:${hook.port}/next`, { timeoutMs: 5000 }), { ok: true })
  exactly(t, hook.requests, [{ url: '/next' }])
  t.same([hook.connections, hook.requests.length], [1, 1])
})

t.test('error messages say what went wrong, without addresses', async t => {
  const post = client(t)
  const closed = createTcpServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  closed.close()
  await once(closed, 'close')
  exactly(t, await post(`http://127.0.0.1:${port}/`), { ok: false, http_status: null, error: 'connection refused', answer: null })

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

t.test('an unrequested upgrade is a failure', async t => {
  const hook = await rawReceiver(t, socket => {
    socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n'))
  })
  exactly(t, await client(t)(hook.url), { ok: false, http_status: 101, error: 'answered 101 Switching Protocols' })
  await eventually(() => hook.open === 0)
})

t.test('ends a response that consists of interim ones', async t => {
  const hook = await rawReceiver(t, socket => {
    const more = () => {
      while (!socket.destroyed && socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(50)));
    }
    socket.once('data', more).on('drain', more)
  })
  exactly(t, await client(t)(hook.url), { ok: false, http_status: null, error: 'too many interim responses' })
  await eventually(() => hook.open === 0)
})

t.test('error messages name hosts that do not resolve', async t => {
  const failing = (code: string) => client(t, { resolve: () => Promise.reject(Object.assign(new Error(code), { code })) })
  exactly(t, await failing('ENOTFOUND')('http://example.com/'), { ok: false, error: 'DNS: example.com was not found' })
  exactly(t, await failing('EAI_AGAIN')('http://example.com/'), { ok: false, error: 'DNS: lookup of example.com failed' })
})

t.test('verifies the certificate, and says what is wrong with it', async t => {
  const { port } = await listen(
    t,
    createTlsServer({ key: KEY, cert: CERTIFICATE }, (_, response) => response.end('ok'))
  )
  exactly(t, await client(t)(`https://localhost:${port}/`), { ok: false, http_status: null, error: 'TLS: self-signed certificate' })
  const trusting = client(t, {}, { ca: CERTIFICATE })
  exactly(t, await trusting(`https://127.0.0.1:${port}/`), { ok: false, error: 'TLS: certificate issued for another host' })
  exactly(t, await trusting(`https://localhost:${port}/`), { ok: true, http_status: 200 })
})

t.test('https to a receiver without TLS fails', async t => {
  const { port } = await receiver(t)
  exactly(t, await client(t)(`https://127.0.0.1:${port}/`), { ok: false, error: 'TLS: handshake failed' })
})

t.test('does not connect to a blocked address, whether literal, resolved or mapped', async t => {
  const hook = await receiver(t)
  const post = client(t, { allowCidrs: [], resolve: async () => ['127.0.0.1'] })
  for (const host of ['127.0.0.1', '2130706433', '[::1]', '[::ffff:127.0.0.1]', 'localhost', 'rebinds.example.com'])
    exactly(t, await post(`http://${host}:${hook.port}/`), { ok: false, http_status: null, error: /^blocked address: / }, host)
  t.equal(hook.connections, 0)
})

t.test('does not connect to a blocked address that a name resolves to only after the check', async t => {
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

t.test('connects to the address that was checked, with the name as Host', async t => {
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

t.test('tries the next address of a name if one refuses the connection', async t => {
  const hook = await receiver(t)
  exactly(t, await client(t, { resolve: async () => ['::1', '127.0.0.1'] })(`http://example.com:${hook.port}/`), { ok: true })
})

t.test('does not call a stored URL that is no longer allowed', async t => {
  const hook = await receiver(t)
  exactly(t, await client(t, { allowHttp: false })(hook.url), { ok: false, error: 'blocked address: must start with https://' })
  exactly(t, await client(t)('http://127.0.0.1:6379/'), { ok: false, error: 'blocked address: port 6379 is not allowed' })
  t.equal(hook.connections, 0)
})
