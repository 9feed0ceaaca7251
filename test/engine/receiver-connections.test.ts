/** Connections to receivers: when they are used again, and when they are closed. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createConnections } from '../../src/deliveries/connections.ts'
import { createDial } from '../../src/deliveries/dial.ts'
import { type Answer, Exchange, type Handle } from '../../src/deliveries/exchange.ts'
import { exactly } from '../support/exactly.ts'
import { eventually } from '../support/setup.ts'
import { client, OK, rawReceiver, receiver } from '../support/webhook-stage.ts'

const ok = `${OK}Content-Length: 0\r\n\r\n`

/** A connection can be used again soon after its response. */
const rest = async () => {
  await nextTurn()
  await nextTurn()
}

/** Connections, and a function that sends a request to a port of this machine. */
const stage = (t: Test, { idleMs = 3_600_000, mostIdle = 2 } = {}) => {
  const connections = createConnections({ dial: createDial({}), mostIdle, idleMs })
  t.teardown(connections.destroy)
  const post = (port: number, body = '', handle: Handle = {}) => {
    const receiver = {
      origin: `http://127.0.0.1:${port}`,
      protocol: 'http:',
      host: `127.0.0.1:${port}`,
      hostname: '127.0.0.1',
      port: `${port}`
    }
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`
    return new Promise<Answer & { ok: boolean }>(resolve => {
      const end = (answer: Answer) => resolve({ ...answer, ok: answer.head !== null })
      connections.send(receiver, head, body, new Exchange(5000, handle, end))
    })
  }
  return { connections, post }
}

t.test('forgets a connection however it ends', async t => {
  const { connections, post } = stage(t, { idleMs: 1 })
  const ends: Record<string, Parameters<typeof rawReceiver>[1]> = {
    'the receiver closes it while it is idle': socket =>
      socket.on('data', () => socket.write(ok, () => setTimeout(() => socket.destroy(), 20))),
    'the receiver closes it after its response': socket => socket.on('data', () => socket.end(`${OK}Connection: close\r\n\r\n`)),
    'the receiver closes it without a response': socket => socket.on('data', () => socket.destroy()),
    'the response is not HTTP': socket => socket.on('data', () => socket.write('hello\r\n\r\n')),
    'it is idle for long': socket => socket.on('data', () => socket.write(ok))
  }
  for (const [end, speak] of Object.entries(ends)) {
    const hook = await rawReceiver(t, speak)
    await Promise.all(Array.from({ length: 5 }, () => post(hook.port)))
    t.ok(await eventually(() => connections.size === 0 && hook.open === 0), end)
  }

  const silent = await rawReceiver(t, () => {})
  const handle: Handle = {}
  const given = post(silent.port, '', handle)
  await eventually(() => silent.open === 1)
  t.equal(connections.size, 1)
  handle.exchange!.fail('no longer wanted')
  exactly(t, await given, { head: null, failure: 'no longer wanted' })
  await eventually(() => connections.size === 0)

  exactly(t, await post(1), { head: null, failure: 'connection refused' })
  t.equal(connections.size, 0)
})

t.test('an idle connection on which something arrives is closed, so that no request takes it for its response', async t => {
  const hook = await rawReceiver(t, socket => socket.on('data', () => socket.write(ok, () => setTimeout(() => socket.write(ok), 20))))
  const { connections, post } = stage(t)
  t.ok((await post(hook.port)).ok)
  await eventually(() => hook.open === 0)
  t.equal(connections.size, 0)
  t.ok((await post(hook.port)).ok)
  t.equal(hook.connections, 2)
})

t.test('a connection is not used again if it could mix up requests or responses', async t => {
  const cases: Record<string, [response: string, body: string]> = {
    'more arrived than the response': [`${ok}HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n`, ''],
    'a body arrived that a 204 cannot have': ['HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n', ''],
    'the response came before all of the request was sent': [ok, 'x'.repeat(20_000_000)],
    'the receiver closes it in a second': [`${OK}Keep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n`, '']
  }
  for (const [name, [response, body]] of Object.entries(cases)) {
    const hook = await rawReceiver(t, socket => socket.once('data', () => socket.pause().write(response)))
    const { connections, post } = stage(t)
    t.ok((await post(hook.port, body)).ok, name)
    await eventually(() => connections.size === 0)
  }
})

t.test('opens another connection in the second before its receiver closes it', async t => {
  const hook = await rawReceiver(t, socket =>
    socket.on('data', () => socket.write(`${OK}Keep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n`))
  )
  const { post } = stage(t)
  for (let n = 0; n < 3; n++) {
    t.ok((await post(hook.port)).ok)
    await delay(5)
  }
  t.equal(hook.connections, 3)
})

t.test('closes connections that are too many, but not all at once', async t => {
  const sockets: Socket[] = []
  const hook = await rawReceiver(t, socket => socket.on('data', () => sockets.push(socket)))
  const { connections, post } = stage(t)
  const results = Array.from({ length: 100 }, () => post(hook.port))
  await eventually(() => sockets.length === 100)
  for (const socket of sockets) socket.write(ok)
  await Promise.all(results)
  for (let before = connections.size; before > 2; before = connections.size) {
    await nextTurn()
    t.ok(before - connections.size <= 20, `${before} to ${connections.size}`)
  }
  t.equal(connections.size, 2)
})

t.test('uses a connection again within the time for which the receiver keeps it', async t => {
  const hook = await rawReceiver(t, socket =>
    socket.on('data', () => socket.write(`${OK}Keep-Alive: timeout=60\r\nContent-Length: 0\r\n\r\n`))
  )
  const { connections, post } = stage(t)
  for (let n = 0; n < 3; n++) {
    t.ok((await post(hook.port)).ok)
    await delay(5)
  }
  t.same([hook.connections, connections.size], [1, 1])
})

t.test('reuses connections', async t => {
  const hook = await receiver(t)
  const post = client(t)
  for (let i = 0; i < 20; i++) t.ok((await post(hook.url)).ok)
  t.ok(hook.connections <= 2, `${hook.connections} connections`)
})

t.test('loses no request to a receiver that closes each connection without saying so', async t => {
  const hook = await rawReceiver(t, socket => socket.once('data', () => socket.end(`${OK}Content-Length: 0\r\n\r\n`)))
  const post = client(t)
  for (let i = 0; i < 100; i++) exactly(t, await post(hook.url), { ok: true })
  t.equal(hook.connections, 100)
})

t.test('keeps 500 idle connections, and uses them again', async t => {
  const waiting: ServerResponse[] = []
  const busy = await receiver(t, response => waiting.push(response))
  const post = client(t)
  const sendAtOnce = async (count: number) => {
    const results = Array.from({ length: count }, () => post(busy.url))
    await eventually(() => waiting.length === count)
    for (const response of waiting.splice(0)) response.end()
    await Promise.all(results)
    await rest()
  }
  await sendAtOnce(520)
  await eventually(() => busy.open === 500)
  for (let n = 0; n < 3; n++) await sendAtOnce(10)
  t.same([busy.connections, busy.open], [520, 500])

  // The connections that have been idle for longest make room for others.
  const other = await receiver(t)
  for (let n = 0; n < 3; n++) {
    t.ok((await post(other.url)).ok)
    await rest()
  }
  await eventually(() => busy.open === 499)
  t.same([other.connections, other.open], [1, 1])
})

t.test('opens another connection if an idle one was closed', async t => {
  const hook = await rawReceiver(t, socket => {
    socket.on('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      setTimeout(() => socket.destroy(), 10)
    })
  })
  const post = client(t)
  for (let n = 0; n < 3; n++) {
    exactly(t, await post(hook.url), { ok: true })
    await new Promise(resolve => setTimeout(resolve, 50))
  }
})

t.test('an invalid request leaves its connection to others', async t => {
  const hook = await receiver(t)
  const post = client(t)
  t.ok((await post(hook.url)).ok)
  await rest()
  for (let n = 0; n < 3; n++)
    exactly(t, await post(hook.url, { headers: { 'X-A': 'a\nb' } }), { ok: false, error: 'invalid request header' })
  t.ok((await post(hook.url)).ok)
  t.equal(hook.connections, 1)
})

t.test('an idle connection closes after a few seconds', async t => {
  const hook = await receiver(t)
  t.ok((await client(t)(hook.url)).ok)
  t.equal(hook.open, 1)
  await eventually(() => hook.open === 0)
})

t.test('does not use a connection again after a response that was too long', async t => {
  const hook = await receiver(t, (response, { body }) => response.end('x'.repeat(JSON.parse(body))))
  const post = client(t)
  for (const length of [1, 64 * 1024 + 1, 1]) {
    t.ok((await post(hook.url, { body: String(length) })).ok)
    await rest()
  }
  t.equal(hook.connections, 2)
})
