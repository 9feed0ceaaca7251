import { createSocket } from 'node:dgram'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { once } from 'node:events'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import type { AddressRules } from '../../src/deliveries/address.ts'
import { createDnsResolve, createSystemResolve } from '../../src/deliveries/resolve.ts'
import { failing, loopback, rules } from '../support/address-stage.ts'
import { exactly } from '../support/exactly.ts'

const look = (from: AddressRules, host: string, options: LookupOptions): Promise<LookupAddress[] | string> =>
  new Promise((resolve, reject) => {
    from.lookup(host, options, (error, address) => (error ? reject(error) : resolve(address)))
  })

t.test('accepts a name that does not resolve, with a warning', async t => {
  const url = 'https://not-yet.example.com/'
  exactly(t, await rules({ resolve: failing('ENOTFOUND') }).checkUrl(url), { ok: true, url, unresolved: /not found/ })
  exactly(t, await rules({ resolve: async () => [] }).checkUrl(url), { ok: true, url, unresolved: /not found/ })
  exactly(t, await rules({ resolve: failing('EAI_AGAIN') }).checkUrl(url), { ok: true, url, unresolved: /lookup of/ })
})

t.test('limits the wait for a resolver that does not respond', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const checking = rules({ resolve: () => new Promise(() => {}) }).checkUrl('https://example.com/')
  mock.timers.tick(3000)
  exactly(t, await checking, { ok: true, unresolved: /lookup of/ })
})

t.test('returns all addresses of a name, those of one family, or one', async t => {
  const both = rules({ resolve: async () => ['93.184.215.14', '2606:4700::1'] })
  t.same(await look(both, 'example.com', { all: true }), [
    { address: '93.184.215.14', family: 4 },
    { address: '2606:4700::1', family: 6 }
  ])
  t.same(await look(both, 'example.com', { all: true, family: 6 }), [{ address: '2606:4700::1', family: 6 }])
  t.equal(await look(both, 'example.com', {}), '93.184.215.14')
  await t.rejects(look(rules(), 'example.com', { family: 6 }), { code: 'ENOTFOUND' })
})

t.test('refuses a connection if any address of the name is blocked', async t => {
  const mixed = rules({ resolve: async () => ['93.184.215.14', '127.0.0.1'] })
  for (const options of [{ all: true }, { family: 4 }, { family: 6 }, {}])
    await t.rejects(look(mixed, 'example.com', options), { name: 'AddressError', code: 'EBLOCKED' })
})

t.test('a name that does not resolve fails the connection with the reason', async t => {
  await t.rejects(look(rules({ resolve: failing('ENOTFOUND') }), 'example.com', {}), {
    code: 'ENOTFOUND',
    message: 'DNS: example.com was not found'
  })
  await t.rejects(look(rules({ resolve: failing('ESERVFAIL') }), 'example.com', {}), { code: 'EAI_AGAIN' })
  await t.rejects(look(rules({ ...loopback, resolve: failing('EAI_AGAIN') }), 'redis', {}), { code: 'EAI_AGAIN' })
})

t.test("the machine's resolver resolves localhost", async t => {
  const addresses = await createSystemResolve()('localhost')
  t.ok(addresses.length > 0)
  t.ok(addresses.every(address => rules(loopback).allows(address)))
})

/** A DNS server: A records by name, an RCODE, or no response. Responds to AAAA with "no such record". */
const nameServer = async (t: Test, zone: Record<string, string[] | 'nxdomain' | 'servfail' | 'silence'>) => {
  const asked: string[] = []
  const socket = createSocket('udp4', (query, peer) => {
    const labels: string[] = []
    let at = 12
    for (; query[at] !== 0; at += query[at]! + 1) labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!))
    const name = labels.join('.').toLowerCase()
    const question = query.subarray(12, at + 5)
    const isA = query.readUInt16BE(at + 1) === 1
    if (isA) asked.push(name)
    const entry = zone[name] ?? 'nxdomain'
    if (entry === 'silence') return
    const addresses = isA && Array.isArray(entry) ? entry : []
    const rcode = entry === 'nxdomain' ? 3 : entry === 'servfail' ? 2 : 0
    const header = Buffer.from([query[0]!, query[1]!, 0x81, 0x80 | rcode, 0, 1, 0, addresses.length, 0, 0, 0, 0])
    const answers = addresses.map(address => Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)]))
    socket.send(Buffer.concat([header, question, ...answers]), peer.port, peer.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => new Promise<void>(done => socket.close(() => done())))
  return { asked, resolve: createDnsResolve([`127.0.0.1:${socket.address().port}`]) }
}

t.test('returns every address from DNS, and distinguishes a missing name from a failing server', async t => {
  const { resolve } = await nameServer(t, {
    'a.example.com': ['93.184.215.14', '93.184.215.15'],
    'b.example.com': 'servfail',
    'c.example.com': []
  })
  t.same((await resolve('a.example.com')).toSorted(), ['93.184.215.14', '93.184.215.15'])
  await t.rejects(resolve('b.example.com'), { code: 'EAI_AGAIN' })
  await t.rejects(resolve('c.example.com'), { code: 'ENOTFOUND' })
  await t.rejects(resolve('d.example.com'), { code: 'ENOTFOUND' })
  await t.rejects(resolve(`${'x'.repeat(64)}.example.com`), { code: 'ENOTFOUND' })
})

t.test('hanging lookups do not delay others', async t => {
  const hanging = Array.from({ length: 100 }, (_, i) => `hangs-${i}.example.com`)
  const { resolve, asked } = await nameServer(t, {
    'a.example.com': ['93.184.215.14'],
    ...Object.fromEntries(hanging.map(name => [name, 'silence']))
  })
  let open = hanging.length
  for (const name of hanging)
    resolve(name)
      .finally(() => open--)
      .catch(() => {})
  t.same(await resolve('a.example.com'), ['93.184.215.14'])
  t.equal(open, hanging.length)
  t.equal(asked.at(-1), 'a.example.com')
})

t.test('simultaneous connections to one host share a lookup', async t => {
  const { resolve, asked } = await nameServer(t, { 'a.example.com': ['93.184.215.14'] })
  await Promise.all(Array.from({ length: 200 }, () => resolve('a.example.com')))
  await resolve('a.example.com')
  t.same(asked, ['a.example.com'])
})
