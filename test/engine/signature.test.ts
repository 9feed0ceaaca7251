import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { deriveKey, executionToken, readExecutionToken, signHeaders } from '../../src/deliveries/signature.ts'
import { exactly } from '../support/exactly.ts'
import { always } from '../support/seed.ts'

const secret = `whsec_${'0123456789abcdef'.repeat(4)}`
const former = `whsec_${'fedcba9876543210'.repeat(4)}`
const message = { secrets: [secret], executionId: '01900000-0000-7000-8000-000000000001', timestamp: 1700000000, body: '{"a": 1}' }
const key = deriveKey('session secret', 'execution-token')

t.test('the signature is an HMAC of timestamp and body, keyed with the whole secret', async t => {
  const headers = signHeaders(message)
  t.equal(headers['X-Service-Timestamp'], '1700000000')
  // Computed by Python's hmac.
  t.equal(headers['X-Service-Signature'], 'v1=05eae9535c29a2b56a5594ec14e684e74d36df8bf3d8ee03131422f4b3171add')
})

t.test('the Standard Webhooks headers follow that specification', async t => {
  // The vector of its own libraries.
  const headers = signHeaders({
    secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    executionId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: 1614265330,
    body: '{"test": 2432232314}'
  })
  exactly(t, headers, {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
  })
})

t.test('a secret without prefix also signs', async t => {
  const bare = '0123456789abcdef'.repeat(4)
  const { 'X-Service-Signature': own, 'webhook-signature': standard } = signHeaders({ ...message, secrets: [bare] })
  t.equal(own, `v1=${createHmac('sha256', bare).update('1700000000.{"a": 1}').digest('hex')}`)
  t.equal(standard, signHeaders(message)['webhook-signature'])
})

t.test('during an overlap both secrets sign, the current one first', async t => {
  const both = signHeaders({ ...message, secrets: [secret, former] })
  const one = signHeaders(message)
  const other = signHeaders({ ...message, secrets: [former] })
  t.equal(both['X-Service-Signature'], `${one['X-Service-Signature']},${other['X-Service-Signature']}`)
  t.equal(both['webhook-signature'], `${one['webhook-signature']} ${other['webhook-signature']}`)
})

t.test('a token returns the execution it was made for', async t => {
  always(
    fc.property(fc.uuid(), id => {
      const token = executionToken(key, id)
      return /^svc_sk_x_[\w-]{43}$/.test(token) && readExecutionToken(key, token) === id
    })
  )
  const id = Buffer.from(message.executionId.replaceAll('-', ''), 'hex')
  const half = createHmac('sha256', key).update(id).digest().subarray(0, 16)
  t.equal(executionToken(key, message.executionId), `svc_sk_x_${Buffer.concat([id, half]).toString('base64url')}`)
})

t.test('rejects a token of another secret or purpose', async t => {
  const token = executionToken(key, message.executionId)
  t.equal(readExecutionToken(deriveKey('another secret', 'execution-token'), token), undefined)
  t.equal(readExecutionToken(deriveKey('session secret', 'session'), token), undefined)
})

t.test('rejects a token with one character changed, added or removed', async t => {
  const token = executionToken(key, message.executionId)
  const forged = new Set<string>()
  for (let i = 0; i < token.length; i++) {
    forged.add(token.slice(0, i) + token.slice(i + 1))
    for (const other of 'ABab019-_ .=')
      forged.add(token.slice(0, i) + other + token.slice(i + 1)).add(token.slice(0, i) + other + token.slice(i))
  }
  // The last character carries two bits that mean nothing: its other spellings are no tokens either.
  for (const other of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') forged.add(token.slice(0, -1) + other)
  forged.delete(token)
  t.same(
    [...forged].filter(value => readExecutionToken(key, value) !== undefined),
    []
  )
})

t.test('rejects malformed tokens', async t => {
  for (const value of ['', 'svc_sk_x_', 'svc_sk_abc', `svc_sk_x_${'é'.repeat(43)}`, `svc_sk_x_${'='.repeat(43)}`, 'x'.repeat(100_000)])
    t.equal(readExecutionToken(key, value), undefined)
})
