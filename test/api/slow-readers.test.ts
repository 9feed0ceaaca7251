/** Clients that request more than they read: pipelining, stalled connections, and large responses in flight. */
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { build, eventually } from '../support/setup.ts'

const MiB = 1024 * 1024
const get = (path: string, ...headers: string[]) => [`GET ${path} HTTP/1.1`, 'Host: localhost', ...headers, '\r\n'].join('\r\n')

type Options = NonNullable<Parameters<typeof build>[2]>

/** The service on a port, with routes that return a megabyte, return a few bytes, and wait; counts the requests they handle. */
const listening = async (t: Test, options: Options = {}) => {
  const service = await build(t, undefined, { isNew: true, ...options })
  const { app } = service
  const gate = Promise.withResolvers<void>()
  const counts = { handled: 0, ended: 0 }
  const config = { exempt: true }
  app.addHook('onRequest', async (_, reply) => {
    counts.handled++
    reply.raw.once('close', () => counts.ended++)
  })
  app.get('/large', { config }, async () => 'x'.repeat(MiB))
  app.get('/small', { config }, async () => ({ small: true }))
  app.get('/held', { config }, async () => {
    await gate.promise
    return { held: true }
  })
  app.post('/body', { config, bodyLimit: MiB }, async ({ body }) => ({ members: Object.keys(body as object).length }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const open = () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    t.teardown(() => socket.destroy())
    return socket
  }
  return { ...service, port, counts, open, release: () => gate.resolve() }
}

/** Reads until the given number of responses have arrived, and returns their status codes. */
const responses = async (socket: Socket, count: number): Promise<number[]> => {
  let text = ''
  for await (const data of socket) {
    text += data.toString('latin1')
    if (text.split('HTTP/1.1 ').length > count && (text.endsWith('}') || text.endsWith('x'))) break
  }
  return [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
}

t.test('answers 100 pipelined requests in order, and closes a connection with more', async t => {
  const { open, counts, release } = await listening(t, { responseLimits: { account: 1000 * MiB, all: 1000 * MiB } })
  const socket = open()
  socket.write(get('/held') + get('/small').repeat(99))
  await eventually(() => counts.handled === 100)
  release()
  t.same(await responses(socket, 100), Array(100).fill(200))
  const greedy = open().pause()
  greedy.write(get('/large').repeat(5000))
  await eventually(() => counts.ended > 100 && counts.handled === counts.ended)
  t.equal(counts.handled, 200)
  await t.rejects(async () => t.notOk(await responses(greedy, 101)), { code: 'ECONNRESET' })
})

t.test('reads pipelined requests completely however they are split', async t => {
  const { open, counts } = await listening(t)
  const text = `${get('/small').repeat(40)}${get('/body', 'Content-Type: application/json', 'Content-Length: 9').replace('GET', 'POST')}{"a":"b"}`
  for (const size of [1, 3, 7, 1000]) {
    counts.handled = 0
    const socket = open()
    await once(socket, 'connect')
    socket.setNoDelay(true)
    for (let at = 0; at < text.length; at += size) {
      socket.write(text.slice(at, at + size))
      await new Promise(setImmediate)
    }
    t.same(await responses(socket, 41), Array(41).fill(200), `pieces of ${size} bytes`)
    t.equal(counts.handled, 41)
  }
})

t.test('closes a connection that accepts no data', async t => {
  const { open, counts } = await listening(t, { patience: { headers: 20_000, request: 60_000, stalled: 400 } })
  const socket = open().pause()
  socket.write(get('/large').repeat(16))
  await once(socket, 'connect')
  await eventually(() => counts.handled > 0)
  await eventually(() => counts.ended === counts.handled)
  let bytes = 0
  socket.on('data', data => {
    bytes += data.length
  })
  socket.resume()
  await once(socket, 'close')
  t.ok(bytes < 16 * MiB, 'it did not get all of them')
})

t.test('keeps a connection whose client reads slowly', async t => {
  const { open, counts } = await listening(t, { patience: { headers: 20_000, request: 60_000, stalled: 400 } })
  const slow = open().pause()
  slow.write(get('/large').repeat(10))
  let bytes = 0
  while (bytes < 10 * MiB) {
    const data = slow.read(256 * 1024) ?? slow.read()
    bytes += data?.length ?? 0
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  await eventually(() => counts.ended === 10)
})

t.test("refuses large responses above an account's or the total limit until some are read", async t => {
  const { open, app, as, register, call, account, release } = await listening(t, {
    responseLimits: { account: 2.5 * MiB, all: 3.5 * MiB }
  })
  const payload = { text: 'x'.repeat(MiB - 20) }
  const other = await register()
  const mine = await call('POST', '/v1/cues', { name: 'large', cron: '@yearly', worker: true, payload })
  const theirs = await as(other).call('POST', '/v1/cues', { name: 'large', cron: '@yearly', worker: true, payload })
  t.same([mine.status, theirs.status], [201, 201])

  const sizeOf = async (id: string, by = { call }) => Number((await by.call('GET', `/v1/cues/${id}`)).headers['content-length'])
  const [size, otherSize] = [await sizeOf(mine.body.id), await sizeOf(theirs.body.id, as(other))]

  // Responses behind a waiting one are in flight, but not yet passed to the kernel.
  const ask = (id: string, key: string, times: number) =>
    open().write(get('/held') + get(`/v1/cues/${id}`, `Authorization: Bearer ${key}`).repeat(times))
  ask(mine.body.id, account.api_key, 2)
  await eventually(() => app.inFlight.bytes === 2 * size)
  const refused = await call('GET', `/v1/cues/${mine.body.id}`)
  t.same([refused.status, refused.body.error.code, refused.headers['retry-after']], [503, 'unavailable', '2'])
  t.equal(app.inFlight.bytes, 2 * size, 'refused responses are not counted')
  t.equal((await call('GET', '/v1/usage')).status, 200, 'small responses are sent')
  t.equal((await as(other).call('GET', `/v1/cues/${theirs.body.id}`)).status, 200, 'other accounts are served')

  const { id } = await call('POST', `/v1/cues/${mine.body.id}/fire`).then(({ body }) => body)
  t.equal((await call('POST', '/v1/executions/claim', { worker_id: 'w' })).status, 503)
  t.equal((await call('POST', `/v1/executions/${id}/claim`, { worker_id: 'w' })).status, 503)
  t.equal((await call('GET', `/v1/executions?cue_id=${mine.body.id}`)).body.executions[0].status, 'pending', 'the claims are given back')

  ask(theirs.body.id, other.api_key, 1)
  await eventually(() => app.inFlight.bytes === 2 * size + otherSize)
  t.equal((await as(other).call('GET', `/v1/cues/${theirs.body.id}`)).status, 503, 'all accounts together have a limit, too')

  release()
  await eventually(() => app.inFlight.bytes === 0)
  t.equal((await call('GET', `/v1/cues/${mine.body.id}`)).status, 200)
  t.equal((await call('POST', `/v1/executions/${id}/claim`, { worker_id: 'w' })).status, 200)
})

t.test('counts responses without a key per address', async t => {
  const { open, app, call, as } = await listening(t, { responseLimits: { account: MiB + MiB / 2, all: 100 * MiB } })
  open().write(get('/held') + get('/large'))
  await eventually(() => app.inFlight.bytes === MiB)
  t.equal((await as(null).call('GET', '/large')).status, 503)
  const description = await call('GET', '/openapi.json', undefined)
  t.equal(description.status, 200)
  const etag = description.headers.etag!
  const known = await call('GET', '/openapi.json', undefined, { 'if-none-match': etag })
  t.same([known.status, known.body, known.headers.etag], [304, '', etag])
})

t.test('reads the bodies of refused requests, and keeps their connections', async t => {
  const { open } = await listening(t)
  const size = 8 * MiB
  const socket = open()
  socket.write(`POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`)
  socket.write(Buffer.alloc(size, '['))
  socket.write(get('/small'))
  t.same(await responses(socket, 2), [413, 200])
})
