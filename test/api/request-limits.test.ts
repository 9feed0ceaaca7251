/** Limits on request bodies, for every route, including new ones. */
import { Readable } from 'node:stream'
import t from 'tap'
import { paths } from '../support/openapi.ts'
import { build } from '../support/setup.ts'

const KB = 1024
/** Routes that take more than the 16 KB of the others. */
const larger: Record<string, number> = {
  'POST /v1/cues': 2048 * KB,
  'PUT /v1/cues/by-key/{key}': 2048 * KB,
  'POST /v1/cues/apply': 2048 * KB,
  'PATCH /v1/cues/{cue_id}': 2048 * KB,
  'POST /v1/cues/{cue_id}/fire': 2048 * KB,
  'POST /v1/executions/{execution_id}/outcome': 2048 * KB,
  'PATCH /v1/executions/{execution_id}/evidence': 2048 * KB,
  'POST /mcp': 2048 * KB,
  'POST /v1/echo/{token}': 1024 * KB,
  'POST /v1/operations': 1024 * KB,
  'POST /v1/cues/test': 2048 * KB,
  'POST /v1/cues/preview-payload': 2048 * KB,
  'POST /v1/billing/webhook': 256 * KB,
  'PUT /v1/calendars/{name}': 128 * KB,
  'POST /v1/support': 32 * KB
}

const { app, call, as, account, addKey } = await build(t)
await app.ready()
const approver = as(await addKey(account, ['approve']))
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.keys(methods).flatMap(method => (method === 'get' ? [] : [`${method.toUpperCase()} ${path}`]))
)
const accept = { accept: 'application/json, text/event-stream' }
const send = (operation: string, body: Buffer) => {
  const [method = '', path = ''] = operation.split(' ')
  const caller = /(approve|reject)$/.test(path) ? approver : { call }
  return caller.call(method, path.replace(/{\w+}/g, 'x'.repeat(16)), body, accept)
}
const sizeText = (bytes: number) => (bytes < 1024 * KB ? `${bytes / KB} KB` : `${bytes / KB / KB} MB`)
const refusal = (bytes: number) => ({
  error: {
    code: 'payload_too_large',
    message: `Request body too large: the maximum here is ${sizeText(bytes)}.`,
    status: 413
  }
})

t.test('covers all routes with larger limits', async t => {
  t.same(
    Object.keys(larger).filter(operation => !operations.includes(operation)),
    []
  )
})

for (const operation of operations) {
  const limit = larger[operation] ?? 16 * KB
  t.test(`${operation} reads at most ${sizeText(limit)}`, async t => {
    const { status, body } = await send(operation, Buffer.alloc(limit + 1, ' '))
    t.same([status, body], [413, refusal(limit)])
    t.not((await send(operation, Buffer.alloc(limit, ' '))).status, 413, 'and that much')
  })
}

/** A body in pieces that counts how many were taken. */
const endless = () => {
  const pieces = { taken: 0 }
  const stream = Readable.from(
    (function* () {
      for (; pieces.taken < 1000; pieces.taken++) yield Buffer.alloc(16 * KB, ' ')
    })()
  )
  return { pieces, stream }
}

t.test('rejects a body of unknown length when it exceeds the limit, not at its end', async t => {
  const stream = new Readable({ read() {} })
  stream.push(Buffer.alloc(16 * KB + 1, ' '))
  const { statusCode, body } = await app.inject({
    method: 'POST',
    url: '/v1/auth/register',
    payload: stream,
    headers: { 'content-type': 'application/json' }
  })
  t.same([statusCode, JSON.parse(body)], [413, refusal(16 * KB)])
})

const unread: [string, string, string, Record<string, string>, number][] = [
  ['an unknown path', 'POST', '/v1/nothing', {}, 404],
  ['a wrong method', 'PUT', '/v1/cues', {}, 405],
  ['an unknown key', 'POST', '/v1/cues', { authorization: 'Bearer svc_sk_x' }, 401],
  ['no key', 'POST', '/mcp', accept, 401]
]
for (const [name, method, url, headers, status] of unread) {
  t.test(`rejects ${name} without reading the body`, async t => {
    const { pieces, stream } = endless()
    const answer = await app.inject({
      method: method as 'POST',
      url,
      payload: stream,
      headers: { 'content-type': 'application/json', ...headers }
    })
    t.equal(answer.statusCode, status)
    t.ok(pieces.taken < 100, `${pieces.taken} pieces were taken`)
  })
}

t.test('limits everything but free JSON to 64 KB', async t => {
  const text = (bytes: number) =>
    JSON.stringify({ name: 'a', cron: '@daily', worker: true, x: 'x'.repeat(bytes), payload: 'y'.repeat(500_000) })
  t.equal((await call('POST', '/v1/cues', text(65_000))).status, 201)
  const { status, body } = await call('POST', '/v1/cues', text(66_000))
  const message = 'Request body too large: the maximum is 64 KB, not counting payload.'
  t.same([status, body], [413, { error: { code: 'payload_too_large', message, status: 413 } }])
})

t.test('accepts a ticket of 5,000 escaped characters', async t => {
  const message = '\\u044f'.repeat(5000)
  const { status } = await call('POST', '/v1/support', `{"subject": "${'\\u044f'.repeat(200)}", "message": "${message}"}`)
  t.not(status, 413)
  t.not(status, 422)
  t.equal((await as(null).call('POST', '/v1/support', '{}')).status, 401)
})
