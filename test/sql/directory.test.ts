/** The directory's SQL functions: email addresses and sign-ins across cells. This database is cell 1, the home cell. */
import { randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { stage } from '../support/stage.ts'

const registration = (email: string) => ({
  email,
  key_hash: randomBytes(32),
  prefix: 'svc_sk_1abcd',
  ciphertext: 'x',
  account_id: randomUUID(),
  address: null,
  ip: null
})

t.test('the first claim of an address decides, ignoring case', async t => {
  const { fn, rows } = await stage(t)
  t.equal(await fn.findAddress({ email: 'a@example.com' }), null)
  t.equal(await fn.claimAddress({ email: 'a@example.com', cell: 2 }), 2)
  t.equal(await fn.claimAddress({ email: 'A@Example.com', cell: 3 }), 2)
  t.equal(await fn.findAddress({ email: 'a@EXAMPLE.com' }), 2)
  t.same(await rows('select cell from cue.directory'), [{ cell: 2 }])
})

t.test('an address with an account belongs to its cell without a claim', async t => {
  const { fn, rows } = await stage(t)
  await fn.register(registration('a@example.com'))
  t.equal(await fn.findAddress({ email: 'A@example.com' }), 1)
  t.equal(await fn.claimAddress({ email: 'A@example.com', cell: 2 }), 1)
  t.same(await rows('select from cue.directory'), [])
})

t.test('an address that another cell has claimed gets no account here', async t => {
  const { fn } = await stage(t)
  await fn.claimAddress({ email: 'a@example.com', cell: 2 })
  await t.rejects(fn.register(registration('A@example.com')), { code: 'QU014' })
  await fn.claimAddress({ email: 'b@example.com', cell: 1 })
  exactly(t, await fn.register(registration('b@example.com')), { email: 'b@example.com' })
})

t.test('of a simultaneous claim and registration of an address, the second one sees the first', async t => {
  const { connect, fn } = await stage(t)
  const one = await connect()
  const two = await connect()
  for (const end of ['commit', 'rollback']) {
    const claimed = `claimed-${end}@example.com`
    await one.client.query('begin')
    await one.fn.claimAddress({ email: claimed, cell: 2 })
    const registered = two.fn.register(registration(claimed)).then(
      () => 'registered',
      ({ code }) => code
    )
    await two.blocked()
    await one.client.query(end)
    t.equal(await registered, end === 'commit' ? 'QU014' : 'registered')

    const email = `registered-${end}@example.com`
    await one.client.query('begin')
    await one.fn.register(registration(email))
    const cell = two.fn.claimAddress({ email, cell: 2 })
    await two.blocked()
    await one.client.query(end)
    t.equal(await cell, end === 'commit' ? 1 : 2)
    t.equal(await fn.findAddress({ email }), end === 'commit' ? 1 : 2)
  }
})

t.test('one address may claim five new ones per hour', async t => {
  const { fn, clock } = await stage(t)
  const claim = (email: string) => fn.claimAddress({ email, cell: 2, address: '192.0.2.1' })
  for (let n = 0; n < 5; n++) t.equal(await claim(`${n}@example.com`), 2)
  t.equal(await claim('0@example.com'), 2, 'a known one is not counted')
  await t.rejects(claim('new@example.com'), { code: 'QU031' })
  t.equal(await fn.findAddress({ email: 'new@example.com' }), null)
  clock.advance('61 minutes')
  t.equal(await claim('new@example.com'), 2)
})

t.test('an account and its claim are deleted together', async t => {
  const { fn, rows } = await stage(t)
  await fn.claimAddress({ email: 'a@example.com', cell: 1 })
  await fn.claimAddress({ email: 'b@example.com', cell: 2 })
  const account = await fn.register(registration('a@example.com'))
  await rows('select cue.erase_account($1)', [account!.id])
  t.same(await rows('select cell from cue.directory'), [{ cell: 2 }])
})

t.test('a sign-in continues in the cell that it was handed to first', async t => {
  const { fn, clock } = await stage(t)
  const code_hash = randomBytes(32)
  const cellOf = async () => (await fn.findDeviceCode({ code_hash }))[0]?.cell
  t.equal(await cellOf(), undefined)
  t.equal(await fn.handOverDeviceCode({ code_hash, cell: 2 }), null)
  await fn.createDeviceCode({ code_hash, address: null, ip: '192.0.2.1' })
  exactly(t, (await fn.findDeviceCode({ code_hash }))[0], { cell: 1, ip: '192.0.2.1', created_at: clock.now() })
  t.equal(await fn.handOverDeviceCode({ code_hash, cell: 2 }), 2)
  t.equal(await fn.handOverDeviceCode({ code_hash, cell: 3 }), 2)
  await t.rejects(fn.sendDeviceLink({ code_hash, email: 'a@example.com', code_ciphertext: 'x' }), { code: 'QU073' })
  await t.rejects(fn.createDeviceCode({ code_hash, address: null, ip: null }), { code: 'QU072' })
  clock.advance('15 minutes')
  t.equal(await cellOf(), undefined)
})

t.test('a sign-in whose mail was sent stays', async t => {
  const { fn, rows } = await stage(t)
  const code_hash = randomBytes(32)
  await fn.createDeviceCode({ code_hash, address: null, ip: null })
  await fn.sendDeviceLink({ code_hash, email: 'a@example.com', code_ciphertext: 'x' })
  t.equal(await fn.handOverDeviceCode({ code_hash, cell: 2 }), 1)
  await fn.putDeviceCode({ code_hash, ip: 'x', created_at: new Date(), expires_at: new Date() })
  t.same(await rows('select status, ip from cue.device_codes'), [{ status: 'email_sent', ip: null }])
})
