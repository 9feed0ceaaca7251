import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { verifyWebhook } from '../../src/client/index.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { receiver } from '../support/receiver.ts'
import { build } from '../support/setup.ts'

const start = '2030-01-15T09:00:00Z'
const secretHeader = 'Bearer s3cret-of-the-receiver'

const setup = async (t: Test, cue: object = {}) => {
  const service = await build(t, start)
  const hook = await receiver(t, ({ headers }) => ({ status: 201, body: { seen: headers.authorization } }))
  const callback = { url: hook.url, headers: { Authorization: secretHeader } }
  const { id } = await service.post('/v1/cues', { name: 'n', key: 'mine', cron: '@daily', payload: { rows: 3 }, callback, ...cue })
  return { ...service, hook, id, test: (body: object) => service.call('POST', '/v1/cues/test', body) }
}

t.test('sends the request of a delivery to the address of a cue, by id and key, and stores nothing', async t => {
  const { hook, id, test, get, pool, clock } = await setup(t)
  const before = await get(`/v1/cues/${id}`)
  const secret = (await get('/v1/auth/webhook-secret')).webhook_secret
  for (const cue_id of [id, 'mine']) {
    const { status, body } = await test({ cue_id })
    t.equal(status, 200)
    const { request, response, error, duration_ms } = body
    exactly(
      t,
      { request, response, error },
      {
        request: { method: 'POST', url: hook.url, body: '{"rows": 3}' },
        response: { http_status: 201, body: '{"seen":"********"}' },
        error: null
      }
    )
    t.ok(Number.isInteger(duration_ms))
    const sent = hook.requests.at(-1)!
    t.equal(sent.headers.authorization, secretHeader)
    const webhook = await verifyWebhook(sent.body, sent.headers, secret, { now: clock.now() })
    t.strictSame([webhook.payload, webhook.cueId, webhook.attempt], [{ rows: 3 }, id, 1])
    const hidden = { authorization: '********', 'x-service-execution-token': '********' }
    for (const [name, value] of Object.entries(request.headers as Record<string, string>)) {
      const key = name.toLowerCase() as keyof typeof hidden
      t.equal(value, hidden[key] ?? sent.headers[key], name)
    }
  }
  t.strictSame(await get(`/v1/cues/${id}`), before)
  t.equal((await pool.query('select from cue.executions')).rowCount, 0)
})

t.test('sends another payload, and a request to a URL', async t => {
  const { hook, id, test } = await setup(t)
  await test({ cue_id: id, payload: { n: 1 } })
  const { body } = await test({ url: hook.url, payload: [1, 2] })
  t.strictSame([body.request.headers['X-Service-Cue-Id'], body.response.http_status], [undefined, 201])
  await test({ url: hook.url })
  t.strictSame(
    hook.requests.map(request => request.body),
    ['{"n": 1}', '[1, 2]', '{}']
  )
})

t.test('a failure is shown as the error of a delivery', async t => {
  const { hook, test } = await setup(t)
  hook.answer({ status: 302, headers: { location: '/' }, body: 'x'.repeat(3000) })
  const redirect = (await test({ url: hook.url })).body
  t.strictSame([redirect.error, redirect.response], ['redirects are not followed (302)', { http_status: 302, body: 'x'.repeat(2000) }])
  const refused = (await test({ url: 'http://127.0.0.1:2/' })).body
  t.strictSame([refused.response, refused.error], [null, 'connection refused'])
})

t.test('the timeout is that of the cue', async t => {
  const { hook, id, test } = await setup(t, { delivery: { timeout_seconds: 1 } })
  hook.answer(() => new Promise(() => {}))
  const { body } = await test({ cue_id: id })
  t.equal(body.response, null)
  t.match(body.error, /^timed out after 1 s/)
})

t.test('refuses bad input, and sends nothing', async t => {
  const { hook, id, test, post, as, register, fn } = await setup(t)
  const work = await post('/v1/cues', { name: 'work', cron: '@daily', worker: true })
  const cases: [object, number, string][] = [
    [{}, 422, 'validation_error'],
    [{ cue_id: id, url: hook.url }, 422, 'validation_error'],
    [{ cue_id: '' }, 422, 'validation_error'],
    [{ cue_id: id, other: 1 }, 422, 'validation_error'],
    [{ cue_id: 'cue_000000000000' }, 404, 'cue_not_found'],
    [{ cue_id: 'none' }, 404, 'cue_not_found'],
    [{ cue_id: work.id }, 409, 'invalid_state'],
    [{ url: 'http://10.0.0.1/' }, 400, 'invalid_callback_url'],
    [{ url: 'nonsense' }, 400, 'invalid_callback_url'],
    [{ url: hook.url, payload: 'x'.repeat(1024 * 1024) }, 400, 'invalid_payload_size']
  ]
  for (const [request, status, code] of cases) {
    const { status: actual, body } = await test(request)
    t.strictSame([actual, body.error?.code], [status, code], JSON.stringify(request).slice(0, 80))
  }
  const other = as(await register())
  for (const cue_id of [id, 'mine']) t.equal((await other.call('POST', '/v1/cues/test', { cue_id })).status, 404)
  await t.rejects(fn.beginTest({ account_id: randomUUID(), url: hook.url }), { code: 'QU007' }, 'the account was deleted')
  t.same(hook.requests, [])
})

t.test('counts a test as a fire of the cue, and those of URLs together', async t => {
  const { hook, id, test, call, clock } = await setup(t)
  for (let n = 0; n < 9; n++) t.equal((await test({ cue_id: id })).status, 200)
  t.equal((await call('POST', `/v1/cues/${id}/fire`)).status, 200)
  for (const { status, headers } of [await test({ cue_id: 'mine' }), await call('POST', `/v1/cues/${id}/fire`)])
    t.strictSame([status, headers['retry-after']], [429, '3600'])
  for (let n = 0; n < 10; n++) t.equal((await test({ url: `${hook.url}${n}` })).status, 200)
  t.equal((await test({ url: hook.url })).status, 429)
  clock.advance('1 hour')
  t.equal((await test({ cue_id: id })).status, 200)
  t.equal((await test({ url: hook.url })).status, 200)
})

t.test("the account's key goes to addresses of cues only", async t => {
  const { hook, id, test, account, patch } = await setup(t)
  await patch('/v1/auth/me', { webhook_authorization: 'api_key' })
  await patch(`/v1/cues/${id}`, { callback: { headers: null } })
  t.equal((await test({ cue_id: id })).body.response.body, '{"seen":"********"}')
  t.equal(hook.requests.at(-1)!.headers.authorization, `Bearer ${account.api_key}`)
  await test({ url: hook.url })
  t.match(hook.requests.at(-1)!.headers.authorization, /^Bearer svc_sk_x_/)
})

t.test('sends nothing while the operator holds the account', async t => {
  const { hook, id, test, fn, account } = await setup(t)
  await fn.hold({ account_id: account.id, reason: 'the partner is down' })
  for (const request of [{ cue_id: id }, { url: hook.url }]) {
    const { status, body } = await test(request)
    t.strictSame([status, body.error.code], [409, 'service_held'])
  }
  t.same(hook.requests, [])
})

t.test('an account has few tests under way', async t => {
  const { hook, test } = await setup(t)
  const { promise, resolve } = Promise.withResolvers<object>()
  hook.answer(() => promise)
  const tests = Array.from({ length: 6 }, () => test({ url: hook.url }))
  await eventually(() => hook.requests.length === 5)
  t.equal((await Promise.race(tests)).status, 503)
  resolve({})
  t.strictSame((await Promise.all(tests)).map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 503])
})
