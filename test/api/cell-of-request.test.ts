import fc from 'fast-check'
import t from 'tap'
import { createKey } from '../../src/accounts/keys.ts'
import { createLinks } from '../../src/accounts/links.ts'
import { createSessions, createToken } from '../../src/accounts/sessions.ts'
import { createCellOf } from '../../src/api-server/cell-of-request.ts'
import { deriveKey, executionToken } from '../../src/deliveries/signature.ts'
import { always } from '../support/seed.ts'

const secret = 'a secret that is only for tests, of 32 characters'
const count = 4
const directory = { cellOfEmail: async () => 2, cellOfCode: async () => 3, cellOfSignIn: async () => 4 }
const cellOf = createCellOf(count, directory)
const head = (bearer: string) => cellOf.ofHead('GET', '/v1/cues?limit=1', `Bearer ${bearer}`)

/** As `cue.uuid_v7` makes it. */
const idOf = (cell: number, at = new Date('2026-07-01T00:00:00Z')) => {
  const ms = at.getTime().toString(16).padStart(12, '0')
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${((cell << 6) | 21).toString(16).padStart(3, '0')}-8000-000000000001`
}
const cells = Array.from({ length: count }, (_, index) => index + 1)

t.test('keys, execution tokens and sessions name their cell', async t => {
  const sessions = createSessions(secret)
  const tokenKey = deriveKey(secret, 'execution-token')
  for (const cell of cells) {
    t.equal(head(createKey(cell)), cell)
    t.equal(head(executionToken(tokenKey, idOf(cell))), cell)
    const session = { session_id: idOf(1), account_id: idOf(cell), expires_at: new Date('2030-01-01T00:00:00Z') }
    t.equal(head(await sessions.sign(session, new Date())), cell)
  }
  t.equal(head(createKey(5)), 1, 'of a cell that does not exist')
})

t.test('links name the cell of their account, in the page and in the form', async t => {
  const links = createLinks({ sessionSecret: secret })
  for (const kind of ['cancel-deletion', 'confirm-email', 'not-me'] as const) {
    const url = links.url(kind, idOf(3))
    t.equal(cellOf.ofHead('GET', url, undefined), 3)
    const [path = '', query] = url.split('?')
    const action = kind === 'cancel-deletion' ? '/v1/auth/me/cancel-deletion' : path
    t.equal(cellOf.ofHead('POST', action, undefined), 'body')
    t.equal(cellOf.ofBody(action, Buffer.from(query!)), 3, 'a form')
    t.equal(cellOf.ofBody(action, Buffer.from(JSON.stringify({ token: new URLSearchParams(query).get('token') }))), 3)
  }
})

t.test('one-time tokens name their cell, whatever the caller is', async t => {
  for (const cell of cells) {
    const token = createToken(cell)
    t.equal(cellOf.ofHead('POST', '/v1/auth/session', `Bearer ${createKey(1)}`), 'body')
    t.equal(cellOf.ofBody('/v1/auth/session', Buffer.from(JSON.stringify({ token }))), cell)
    t.equal(cellOf.ofBody('/v1/auth/mcp-exchange?x=1', Buffer.from(JSON.stringify({ session_token: token }))), cell)
  }
})

t.test("Stripe's events name the cell of their account, or are for every cell", async t => {
  const of = (object: object) => cellOf.ofBody('/v1/billing/webhook', Buffer.from(JSON.stringify({ data: { object } })))
  t.equal(of({ client_reference_id: idOf(2) }), 2)
  t.equal(of({ metadata: { account_id: idOf(3) } }), 3)
  t.equal(of({ parent: { subscription_details: { metadata: { account_id: idOf(4) } } } }), 4)
  t.equal(of({ subscription_details: { metadata: { account_id: idOf(4) } } }), 4)
  t.equal(of({ customer: 'cus_1', metadata: {} }), null)
})

t.test('addresses and device codes are looked up', async t => {
  const code = { device_code: 'a-device-code' }
  const of = (path: string, body: object) => {
    t.equal(cellOf.ofHead('POST', path, undefined), 'body')
    return cellOf.ofBody(path, Buffer.from(JSON.stringify(body)))
  }
  t.equal(await of('/v1/auth/register', { email: 'a@example.com' }), 2)
  for (const path of ['/v1/auth/device-code', '/v1/auth/device-code/poll', '/v1/auth/verify']) t.equal(await of(path, code), 3)
  t.equal(await of('/v1/auth/device-code/submit-email', { ...code, email: 'a@example.com' }), 4)
  t.equal(await cellOf.ofHead('GET', '/auth/device?code=a-device-code', undefined), 3)
  t.equal(await cellOf.ofHead('GET', '/v1/auth/verify?token=x&device_code=a-device-code', undefined), 3)
})

t.test('reads a path as the router does', async t => {
  const { api_key, ...body } = { api_key: createKey(3), email: 'a@example.com' }
  for (const path of [
    '/v1/auth/%72egister',
    '/v1/auth/register#x',
    '/v1/%61%75th/register?x=?',
    'http://localhost/v1/auth/register',
    'HTTPS://x/v1/auth/register?'
  ]) {
    t.equal(cellOf.ofHead('POST', path, `Bearer ${api_key}`), 'body', path)
    t.equal(await cellOf.ofBody(path, Buffer.from(JSON.stringify(body))), 2, path)
  }
  for (const path of ['/v1/auth%2Fregister', '/v1/auth/%2572egister', '/v1/auth/register%3Fx', '//v1/auth/register', '/%zz', '*', ''])
    t.equal(cellOf.ofHead('POST', path, `Bearer ${api_key}`), 3, path)
  t.equal(cellOf.bodyLimit('/v1/billing/%77ebhook'), 256 * 1024)
  const token = new URLSearchParams(createLinks({ sessionSecret: secret }).url('not-me', idOf(3)).split('?')[1]).get('token')
  for (const page of ['/auth/not%2Dme', 'http://localhost/auth/not-me'])
    t.equal(cellOf.ofHead('GET', `${page}?token=${token}`, undefined), 3, page)
})

t.test('bodies that name the cell have the limits of their routes', async t => {
  t.equal(cellOf.bodyLimit('/v1/auth/register?x=1'), 16 * 1024)
  t.equal(cellOf.bodyLimit('/v1/billing/webhook'), 256 * 1024)
})

t.test('nothing that a client sends leads past the cells', async t => {
  const paths = fc.constantFrom('/v1/cues', '/auth/not-me', '/v1/auth/session', '/v1/billing/webhook', '/v1/auth/me/cancel-deletion')
  always(
    fc.property(paths, fc.string(), fc.string(), fc.json(), (path, query, bearer, body) => {
      const byHead = cellOf.ofHead('POST', `${path}?token=${query}`, bearer && `Bearer ${bearer}`)
      const cell = byHead === 'body' ? cellOf.ofBody(path, Buffer.from(body)) : byHead
      if (cell instanceof Promise) return false
      return cell === null ? path === '/v1/billing/webhook' : cells.includes(cell)
    })
  )
  t.equal(cellOf.ofBody('/v1/auth/session', Buffer.from('null')), 1)
})
