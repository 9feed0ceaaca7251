/** Connections to receivers: when they are used again, and when they are closed. */
import type { ServerResponse } from 'node:http'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Handle } from '../../src/deliveries/exchange.ts'
import { exactly } from '../support/exactly.ts'
import { eventually } from '../support/setup.ts'
import { client, OK, rawReceiver, receiver } from '../support/webhook-stage.ts'

const ok = `${OK}Content-Length: 0\r\n\r\n`

/** A connection can be used again soon after its response. */
const rest = async () => {
  await nextTurn()
  await nextTurn()
}

t.test('leaves no connection open, however an exchange ends', async t => {
  const ends: Record<string, Parameters<typeof rawReceiver>[1]> = {
    'the receiver closes it while it is idle': socket =>
      socket.on('data', () => socket.write(ok, () => setTimeout(() => socket.destroy(), 20))),
    'the receiver closes it after its response': socket => socket.on('data', () => socket.end(`${OK}Connection: close\r\n\r\n`)),
    'the receiver closes it without a response': socket => socket.on('data', () => socket.destroy()),
    'the response is not HTTP': socket => socket.on('data', () => socket.write('hello\r\n\r\n')),
    'something arrives while it is idle': socket => socket.on('data', () => socket.write(ok, () => setTimeout(() => socket.write(ok), 20))),
    'more arrives than the response': socket =>
      socket.on('data', () => socket.write(`${ok}HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n`)),
    'a body arrives that a 204 cannot have': socket =>
      socket.on('data', () => socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n')),
    'the receiver closes it in a second': socket =>
      socket.on('data', () => socket.write(`${OK}Keep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n`))
  }
  const post = client(t)
  for (const [end, speak] of Object.entries(ends)) {
    const hook = await rawReceiver(t, speak)
    await Promise.all(Array.from({ length: 5 }, () => post(hook.url)))
    t.equal(hook.connections, 5, end)
    // An idle connection would be open for longer.
    t.ok(await eventually(() => hook.open === 0, 2000), end)
  }

  const silent = await rawReceiver(t, socket => socket.resume())
  const handle: Handle = {}
  const result = post(silent.url, {}, handle)
  await eventually(() => silent.open === 1)
  handle.exchange!.fail('no longer wanted')
  exactly(t, await result, { http_status: null, error: 'no longer wanted' })
  await eventually(() => silent.open === 0)
})

t.test('does not take bytes that arrived unasked for a response', async t => {
  let connections = 0
  const hook = await rawReceiver(t, socket => {
    const response = connections++ === 0 ? ok : `${OK}Content-Length: 4\r\n\r\nlast`
    socket.on('data', () => socket.write(response, () => setTimeout(() => socket.write(ok), 20)))
  })
  const post = client(t)
  t.ok((await post(hook.url)).ok)
  await eventually(() => hook.open === 0)
  exactly(t, await post(hook.url), { ok: true, answer: 'last' })
  t.equal(hook.connections, 2)
})

t.test('opens another connection in the second before its receiver closes it', async t => {
  const hook = await rawReceiver(t, socket =>
    socket.on('data', () => socket.write(`${OK}Keep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n`))
  )
  const post = client(t)
  for (let n = 0; n < 3; n++) {
    t.ok((await post(hook.url)).ok)
    await delay(5)
  }
  t.equal(hook.connections, 3)
})

t.test('uses a connection again within the time for which the receiver keeps it', async t => {
  const hook = await rawReceiver(t, socket =>
    socket.on('data', () => socket.write(`${OK}Keep-Alive: timeout=60\r\nContent-Length: 0\r\n\r\n`))
  )
  const post = client(t)
  for (let n = 0; n < 3; n++) {
    t.ok((await post(hook.url)).ok)
    await delay(5)
  }
  t.same([hook.connections, hook.open], [1, 1])
})

t.test('loses no request to a receiver that closes each connection without saying so', async t => {
  const hook = await rawReceiver(t, socket => socket.once('data', () => socket.end(`${OK}Content-Length: 0\r\n\r\n`)))
  const post = client(t)
  for (let i = 0; i < 100; i++) exactly(t, await post(hook.url), { ok: true })
  t.equal(hook.connections, 100)
})

t.test('uses idle connections again, and keeps no more while 500 are idle', async t => {
  const waiting: ServerResponse[] = []
  const busy = await receiver(t, response => waiting.push(response))
  const other = await receiver(t)
  const post = client(t)
  const sendAtOnce = async (count: number) => {
    const results = Array.from({ length: count }, () => post(busy.url))
    await eventually(() => waiting.length === count)
    for (const response of waiting.splice(0)) response.end()
    await Promise.all(results)
    await rest()
  }
  await sendAtOnce(520)
  for (let n = 0; n < 3; n++) t.ok((await post(other.url)).ok)
  t.equal(other.connections, 3)
  await eventually(() => other.open === 0, 2000)
  for (let n = 0; n < 3; n++) await sendAtOnce(200)
  t.ok(busy.connections < 560, `${busy.connections} connections`)
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
