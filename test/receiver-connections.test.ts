import type { EventEmitter } from 'node:events'
import t from 'tap'
import { Client } from 'undici'
import { createConnections } from '../src/deliveries/connections.ts'
import { Exchange, type Handle, type WebhookResult } from '../src/deliveries/exchange.ts'
import { eventually } from './setup.ts'
import { OK, rawReceiver } from './webhook-stage.ts'

const ok = `${OK}Content-Length: 0\r\n\r\n`

const post = (
  send: ReturnType<ReturnType<typeof createConnections>['make']>,
  origin: string,
  headers: string[] = [],
  handle: Handle = {}
) =>
  new Promise<WebhookResult>(resolve =>
    send({ origin, path: '/', method: 'POST', headers, body: '{}' }, new Exchange(2000, handle, resolve))
  )

t.test('forgets a connection however it ends', async t => {
  const connections = createConnections(2)
  t.teardown(connections.destroy)
  const send = connections.make({ keepAliveTimeout: 1, keepAliveMaxTimeout: 1 })
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
    await Promise.all(Array.from({ length: 5 }, () => post(send, `http://127.0.0.1:${hook.port}`)))
    t.ok(await eventually(() => connections.size === 0 && hook.open === 0), end)
  }

  const silent = await rawReceiver(t, () => {})
  const handle: Handle = {}
  const given = post(send, `http://127.0.0.1:${silent.port}`, [], handle)
  await eventually(() => silent.open === 1)
  t.equal(connections.size, 1)
  handle.exchange!.fail('no longer wanted')
  await given
  await eventually(() => connections.size === 0)

  await post(send, `http://127.0.0.1:${silent.port}`, ['a', 'b\nc'])
  await post(send, 'http://127.0.0.1:1')
  await eventually(() => connections.size === 0)
})

t.test('a late drain does not offer a connection that has a request', async t => {
  const hook = await rawReceiver(t, () => {})
  const connections = createConnections(2)
  t.teardown(connections.destroy)
  const send = connections.make({})
  const dispatch = t.capture(Client.prototype, 'dispatch', Client.prototype.dispatch)
  void post(send, `http://127.0.0.1:${hook.port}`)
  await eventually(() => hook.open === 1)
  const client = dispatch()[0]!.receiver as EventEmitter
  client.emit('drain')
  void post(send, `http://127.0.0.1:${hook.port}`)
  await eventually(() => hook.open === 2)
  t.equal(connections.size, 2)
})
