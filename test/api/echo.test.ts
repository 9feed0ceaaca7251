import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'
import { forOneCell } from '../support/two-cells.ts'

const start = '2030-01-15T09:00:00Z'
const path = '/v1/echo/a-token-of-16-or-more'
const limited = { env: { RATE_LIMIT: 'on', TRUST_PROXY: 'on' } }
const from = (address: string) => ({ 'x-forwarded-for': address })

t.test('a body posted without a key can be read with one', async t => {
  const { as, get } = await build(t, start)
  t.strictSame(await get(path), { status: 'waiting' })
  const headers = {
    'X-Service-Signature': 'v1=ab',
    'X-Service-Attempt': '1',
    'User-Agent': 'a sender',
    Authorization: 'Bearer x',
    'X-Service-Execution-Token': 'x',
    'X-Other': 'y'
  }
  t.strictSame(await as(null).post(path, { task: 'hello' }, headers), { stored: true })
  t.strictSame(await get(path), {
    status: 'delivered',
    payload: { task: 'hello' },
    headers: {
      'x-service-signature': 'v1=ab',
      'x-service-attempt': '1',
      'x-service-execution-token': '********',
      'user-agent': 'a sender',
      'content-type': 'application/json'
    },
    received_at: '2030-01-15T09:00:00.000Z'
  })
})

t.test('any account can read an echo, but nobody without a key', async t => {
  const { as, register, post } = await build(t)
  await post(path, [1])
  exactly(t, await as(await register()).get(path), { status: 'delivered', payload: [1] })
  exactly(t, await as(null).call('GET', path), error('not_authenticated', 401))
})

t.test('keeps the latest body for five minutes', async t => {
  const { get, post, clock, call } = await build(t, start)
  await post(path, 'null')
  exactly(t, await get(path), { status: 'delivered', payload: null })
  clock.advance('2 minutes')
  await post(path, { n: 2 })
  clock.advance('299 seconds')
  exactly(t, await get(path), { payload: { n: 2 }, received_at: '2030-01-15T09:02:00.000Z' })
  clock.advance('1 second')
  t.strictSame((await call('GET', path)).body, { status: 'waiting' })
})

t.test('returns numbers without losing digits', async t => {
  const { app, post, account } = await build(t)
  await post(path, '{"big": 12345678901234567890, "whole": 1.0, "twice": 1, "twice": 2}')
  const { body } = await app.inject({ url: path, headers: { authorization: `Bearer ${account.api_key}` } })
  t.ok(body.includes('"payload":{"big": 12345678901234567890, "twice": 2, "whole": 1.0}'), body)
})

t.test('keeps a body that is not JSON as a string', async t => {
  const { call, get } = await build(t)
  for (const [body, type, payload] of [
    ['hello, world', 'text/plain', 'hello, world'],
    ['{"cut": ', 'application/json', '{"cut": '],
    ['a=1&b=2', 'application/x-www-form-urlencoded', 'a=1&b=2'],
    ['no type at all', '', 'no type at all'],
    ['a type that is none', 'what?', 'a type that is none'],
    ['', 'application/json', ''],
    [Buffer.from([0x61, 0x00, 0xff, 0x62]), 'application/octet-stream', 'a\0\ufffdb'],
    ['"\\u0000"', 'application/json', '"\\u0000"'],
    ['"\\ud800"', 'application/json', '"\\ud800"'],
    ['['.repeat(5000), 'application/json', '['.repeat(5000)]
  ] as const) {
    exactly(
      t,
      await call('POST', path, body, { 'content-type': type }),
      { status: 200, body: { stored: true } },
      `stores ${type}: ${body}`.slice(0, 80)
    )
    exactly(t, await get(path), { payload, headers: type ? { 'content-type': type } : {} })
  }
})

t.test('accepts tokens of 16 to 255 characters; any other stays waiting', async t => {
  const { call } = await build(t)
  const refused = error('invalid_token', 400)
  for (const token of ['short', 'fifteen-letters', 'x'.repeat(256), 'x'.repeat(5000), '%F0%9F%98%80'.repeat(10)]) {
    exactly(t, await call('POST', `/v1/echo/${token}`, {}), refused)
    t.same(
      await call('GET', `/v1/echo/${token}`).then(({ status, body }) => [status, body]),
      [200, { status: 'waiting' }],
      token.slice(0, 20)
    )
  }
  for (const token of ['sixteen-letters-', 'x'.repeat(255), '%F0%9F%98%80'.repeat(255), 'a%20b%2Fc%27%22%3B--16-letters']) {
    exactly(t, await call('POST', `/v1/echo/${token}`, { token }), { status: 200 })
    exactly(t, await call('GET', `/v1/echo/${token}`), { body: { status: 'delivered', payload: { token } } })
  }
})

t.test('stores ten bodies per hour and address, not counting rejected ones', async t => {
  const { call, clock } = await build(t, start, limited)
  for (let n = 0; n < 10; n++) {
    t.equal((await call('POST', path, {}, from('192.0.2.1'))).status, 200)
    clock.advance('1 minute')
  }
  for (let n = 0; n < 3; n++) {
    const answer = await call('POST', path, {}, from('192.0.2.1'))
    exactly(t, answer, { status: 429, headers: { 'retry-after': '3000' }, body: { error: { code: 'rate_limit_exceeded', status: 429 } } })
  }
  t.equal((await call('POST', path, {}, from('192.0.2.2'))).status, 200, 'another address')
  clock.advance('50 minutes')
  t.equal((await call('POST', path, {}, from('192.0.2.1'))).status, 200, 'an hour after the first')
  t.equal((await call('POST', path, {}, from('192.0.2.1'))).status, 429)
})

t.test('stores exactly ten of many simultaneous requests from one address', { skip: forOneCell }, async t => {
  const { call } = await build(t, undefined, limited)
  const answers = await Promise.all(Array.from({ length: 25 }, (_, n) => call('POST', `${path}-${n}`, {}, from('192.0.2.1'))))
  t.equal(answers.filter(({ status }) => status === 200).length, 10)
  t.equal(answers.filter(({ status }) => status === 429).length, 15)
})
