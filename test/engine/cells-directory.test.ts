/** Registration and sign-in across two cells. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { layWire } from '../../scripts/stage/wire.ts'
import { cellOfValue } from '../../src/cells/ids.ts'
import { addAccount, links, patienceMs, stage } from '../support/cells-stage.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { error } from '../support/setup.ts'

type Replica = Awaited<ReturnType<Awaited<ReturnType<typeof stage>>['start']>>

t.test('an email address has one account across all cells', async t => {
  const { pools, wire, start } = await stage(t)
  const former = await addAccount(pools[0], 1)
  for (let i = 0; i < 2; i++) await addAccount(pools[0], 1)
  const { call } = await start({ ROLES: 'api' })
  const register = async (email: string) => call('POST', '/v1/auth/register', { body: { email } })
  const accounts = () =>
    Promise.all(pools.map(async pool => (await pool.query('select lower(email) as email from cue.accounts')).rows.map(row => row.email)))

  await t.test('new accounts go to the cell with the fewest', async t => {
    for (let i = 0; i < 2; i++) {
      const { status, body } = await register(`two-${i}@example.com`)
      t.equal(status, 201)
      t.equal(body.api_key[7], '2')
      t.equal((await call('GET', '/v1/auth/me', { key: body.api_key })).body.email, `two-${i}@example.com`)
    }
    const { rows } = await pools[1].query("select distinct ip from cue.audit_events where event = 'account.registered'")
    t.same(rows, [{ ip: '127.0.0.1' }], "the client's own address")
    for (let i = 0; i < 2; i++) await addAccount(pools[1], 2)
    await delay(1100)
    t.equal((await register('one@example.com')).body.api_key[7], '1', 'counted again after a second')
  })

  await t.test('rejects an address that has an account, ignoring case', async t => {
    for (const email of [former.email, 'TWO-0@example.com', 'one@EXAMPLE.com']) {
      const { status, body } = await register(email)
      t.same([status, body.error.code], [409, 'duplicate_email'], email)
    }
  })

  const replicas = await Promise.all(['1', '2'].map(REGISTER_CELLS => start({ REGISTER_CELLS, ROLES: 'api' })))

  await t.test('simultaneous registrations of an address through replicas that choose different cells create one account', async t => {
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          replicas[i % 2]!.call('POST', '/v1/auth/register', {
            body: { email: i % 4 > 1 ? `same-${round}@example.com` : `SAME-${round}@example.com` }
          })
        )
      )
      t.equal(answers.filter(({ status }) => status === 201).length, 1)
      t.same(
        answers.filter(({ status }) => ![201, 409, 503].includes(status)),
        []
      )
    }
    const all = (await accounts()).flat()
    t.equal(new Set(all).size, all.length)
  })

  /** Returns the token of the mailed link. */
  const requestLink = async (email: string, code: string, { call }: Pick<Replica, 'call'>) => {
    t.equal((await call('POST', '/v1/auth/device-code', { body: { device_code: code } })).status, 201)
    t.match((await call('GET', `/auth/device?code=${code}`)).body, /email/i)
    const sent = await call('POST', '/v1/auth/device-code/submit-email', { body: { device_code: code, email } })
    t.same(sent, { status: 200, body: { status: 'email_sent' } })
    const found = await Promise.all(
      pools.map(async pool => (await pool.query("select link_id from cue.device_codes where status = 'email_sent'")).rows)
    )
    t.equal(found.flat().length, 1, 'in one cell')
    return new URL(links.url('verify', found.flat()[0].link_id), 'http://localhost').searchParams.get('token')!
  }

  const signIn = async (email: string, code = randomUUID()) => {
    const token = await requestLink(email, code, { call })
    t.equal((await call('GET', `/v1/auth/verify?${new URLSearchParams({ token, device_code: code })}`)).status, 200)
    t.equal((await call('POST', '/v1/auth/verify', { body: { token, device_code: code } })).status, 200)
    const { body } = await call('POST', '/v1/auth/device-code/poll', { body: { device_code: code } })
    t.equal(body.status, 'approved')
    const session = await call('POST', '/v1/auth/session', { body: { token: body.session_token } })
    t.equal((await call('GET', '/v1/auth/me', { key: session.body.session_token })).body.email, email)
    return body
  }

  await t.test('a device signs in to the account of the address, in any cell', async t => {
    const before = (await accounts()).flat().length
    for (const email of [former.email, 'two-0@example.com', 'two-1@example.com', 'one@example.com']) {
      for (let i = 0; i < 3; i++) t.equal((await signIn(email)).api_key, undefined)
    }
    t.equal((await accounts()).flat().length, before)
    const { api_key } = await signIn('new@example.com')
    t.equal((await call('GET', '/v1/auth/me', { key: api_key })).body.email, 'new@example.com')
    t.equal((await accounts()).flat().length, before + 1)
  })

  await t.test('an address that gets an account in another cell during a sign-in gets no second one', async t => {
    const [one, two] = replicas
    const device_code = randomUUID()
    const token = await requestLink('late@example.com', device_code, two!)
    t.equal((await one!.call('POST', '/v1/auth/register', { body: { email: 'late@example.com' } })).body.api_key[7], '1')
    exactly(t, await two!.call('POST', '/v1/auth/verify', { body: { token, device_code } }), error('device_code_expired', 400))
    t.equal((await accounts()).flat().filter(email => email === 'late@example.com').length, 1)
  })

  await t.test('an unknown code stays unknown', async t => {
    exactly(t, await call('POST', '/v1/auth/device-code/poll', { body: { device_code: 'unknown-code' } }), {
      status: 200,
      body: { status: 'expired' }
    })
    t.equal(
      (await call('POST', '/v1/auth/device-code/submit-email', { body: { device_code: 'unknown-code', email: 'a@example.com' } })).status,
      404
    )
  })

  await t.test('while a cell is unavailable, new accounts go to the others', async t => {
    const back = Promise.withResolvers<void>()
    const mended = wire.interrupt(back.promise)
    await delay(1100)
    t.equal((await register('meanwhile@example.com')).body.api_key[7], '1')
    back.resolve()
    await mended
  })
})

t.test('while the home cell is unavailable, addresses of other cells are found, and registrations return 503', async t => {
  const { urls, pools, start } = await stage(t)
  const home = await layWire(urls[0])
  t.teardown(() => home.close())
  const two = await addAccount(pools[1], 2)
  const { call } = await start({ CELLS: `${home.url} ${urls[1]}`, ROLES: 'api' })
  const back = Promise.withResolvers<void>()
  const mended = home.interrupt(back.promise)
  t.equal((await call('POST', '/v1/auth/register', { body: { email: two.email } })).status, 409)
  const device_code = Array.from({ length: 20 }, (_, i) => `code-of-a-test-${i}`).find(code => cellOfValue(code, 2) === 2)
  t.equal((await call('POST', '/v1/auth/device-code', { body: { device_code } })).status, 201)
  t.equal(
    (await call('POST', '/v1/auth/device-code/submit-email', { body: { device_code, email: two.email } })).status,
    200,
    'signing in works'
  )
  t.equal((await call('POST', '/v1/auth/register', { body: { email: 'new@example.com' } })).status, 503)
  t.equal((await call('GET', '/v1/auth/me', { key: two.api_key })).status, 200)
  back.resolve()
  await mended
  await eventually(async () => (await call('POST', '/v1/auth/register', { body: { email: 'new@example.com' } })).status === 201, patienceMs)
})

t.test('REGISTER_CELLS names the cells that get new accounts', async t => {
  const { start } = await stage(t)
  const { call } = await start({ REGISTER_CELLS: '2', ROLES: 'api' })
  for (let i = 0; i < 3; i++)
    t.equal((await call('POST', '/v1/auth/register', { body: { email: `${i}@example.com` } })).body.api_key[7], '2')
})
