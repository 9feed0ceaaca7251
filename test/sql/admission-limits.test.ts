import t from 'tap'
import { createAdmission } from '../../src/accounts/admission.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { createFunctions } from '../../src/database/functions.ts'
import { createPool } from '../../src/database/pool.ts'
import { subjectOf } from '../../src/http/address-subject.ts'
import { setup, start } from '../support/admission-stage.ts'
import { exactly } from '../support/exactly.ts'

for (const [plan, limit] of [
  ['free', 60],
  ['scale', 500]
] as const) {
  t.test(`plan ${plan} admits exactly ${limit} of ${limit + 50} simultaneous requests`, async t => {
    const { key, config, account_id } = await setup(t, { plan })
    const pool = createPool(config, { max: 20 })
    t.teardown(() => pool.end())
    const ask = createAdmission({ fn: createFunctions(pool), config, log: { error: () => {} } as never })
    const all = await Promise.all(
      Array.from({ length: limit + 50 }, () => ask({ authorization: `Bearer ${key}`, address: '192.0.2.1', scope: 'read' }))
    )
    t.equal(all.filter(({ error, caller }) => error === null && caller?.account_id === account_id).length, limit)
    t.equal(all.filter(({ error }) => error === 'rate_limit_exceeded').length, 50)
    const left = all.filter(({ error }) => error === null).map(({ rate }) => rate.remaining)
    t.same(
      left.sort((a, b) => b! - a!),
      Array.from({ length: limit }, (_, i) => limit - 1 - i),
      'each gets a different number of remaining requests'
    )
    for (const { error, retry_after } of all) t.ok(error ? retry_after! >= 1 && retry_after! <= 60 : retry_after === null)
  })
}

t.test('a request leaves the sliding window after exactly a minute, and refused requests do not count', async t => {
  const { call, at } = await setup(t)
  for (let i = 0; i < 60; i++) {
    at(i * 500)
    exactly(t, await call(), { error: null, rate: { limit: 60, remaining: 59 - i, reset: start / 1000 + 61 } }, 'rounded up')
  }
  at(30_000)
  for (let i = 0; i < 20; i++) exactly(t, await call(), { error: 'rate_limit_exceeded', retry_after: 30, rate: { remaining: 0 } })
  at(59_999)
  exactly(t, await call(), { error: 'rate_limit_exceeded', retry_after: 1 })
  at(60_000)
  exactly(t, await call(), { error: null, rate: { remaining: 0 } })
  exactly(t, await call(), { error: 'rate_limit_exceeded', retry_after: 1 })
  at(60_500)
  exactly(t, await call(), { error: null })
  at(150_000)
  exactly(t, await call(), { error: null, rate: { remaining: 59 } })
})

t.test('each key of an account has its own window', async t => {
  const { call, key, addKey } = await setup(t)
  const { text } = await addKey()
  for (let i = 0; i < 60; i++) await call(key)
  exactly(t, await call(key), { error: 'rate_limit_exceeded' })
  exactly(t, await call(text), { error: null, rate: { remaining: 59 } })
})

t.test('callers without a valid key share one window per address, whatever they send', async t => {
  const { call, ask, pool, key } = await setup(t)
  const ways = [
    () => call(null),
    () => call(createKey()),
    () => call('svc_sk_nonsense'),
    () => ask({ authorization: undefined, address: '192.0.2.1', scope: null })
  ]
  for (let i = 0; i < 60; i++) t.not((await ways[i % 4]!()).error, 'rate_limit_exceeded')
  for (const way of ways) exactly(t, await way(), { error: 'rate_limit_exceeded', retry_after: 60 })
  exactly(t, await call(key), { error: null }, 'a valid key from that address is admitted')
  exactly(t, await call(null, { address: '192.0.2.2' }), { error: 'not_authenticated', rate: { remaining: 59 } })
  const { rows } = await pool.query("select subject from cue.rate_windows where subject like 'address:%' order by 1")
  t.same(
    rows.map(({ subject }) => subject),
    ['address:192.0.2.1', 'address:192.0.2.2']
  )
})

t.test('counts an address once however it is written, and an IPv6 /64 network once', async t => {
  for (const [ip, subject] of [
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.2', '127.0.0.2'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
    ['2001:db8:0:7::1', '2001:db8:0:7::/64'],
    ['2001:0DB8::7:ffff:1:2:3', '2001:db8:0:7::/64'],
    ['2001:db8:0:8::1', '2001:db8:0:8::/64'],
    ['::1', '::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['x'.repeat(100), 'x'.repeat(64)]
  ] as const) {
    t.equal(subjectOf(ip), subject)
  }
  t.equal(subjectOf(undefined), '')
})

t.test('counts a request with insufficient scope, and checks the rate limit before the scope', async t => {
  const { call, addKey } = await setup(t)
  const { text } = await addKey({ scopes: ['worker'] })
  for (let i = 0; i < 60; i++) exactly(t, await call(text), { error: 'insufficient_scope', rate: { remaining: 59 - i } })
  exactly(t, await call(text), { error: 'rate_limit_exceeded' })
})
