import fc from 'fast-check'
import t from 'tap'
import type { AddressRules } from '../../src/deliveries/address.ts'
import { failing, loopback, rules } from '../support/address-stage.ts'
import { exactly } from '../support/exactly.ts'
import { always } from '../support/seed.ts'

const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
type Octets = [number, number, number, number]

/** IANA's registry, written as a person would, without prefixes. */
const isSpecial = ([a, b, c, d]: Octets): boolean =>
  [0, 10, 127].includes(a) ||
  a >= 224 ||
  (a === 100 && b >= 64 && b <= 127) ||
  (a === 169 && b === 254) ||
  (a === 172 && b >= 16 && b <= 31) ||
  (a === 192 && ((b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99) || b === 168)) ||
  (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) ||
  (a === 203 && b === 0 && c === 113) ||
  (a === 168 && b === 63 && c === 129 && d === 16)

const hex = (...bytes: number[]): string => bytes.map(byte => byte.toString(16).padStart(2, '0')).join('')

/** Every way in which an IPv6 address can embed this IPv4 address. */
const embeddings = ([a, b, c, d]: Octets): string[] => {
  const [high, low] = [hex(a, b), hex(c, d)]
  const [notHigh, notLow] = [hex(a ^ 255, b ^ 255), hex(c ^ 255, d ^ 255)]
  return [
    `::ffff:${high}:${low}`,
    `::ffff:${a}.${b}.${c}.${d}`,
    `::ffff:0:${high}:${low}`,
    `::${high}:${low}`,
    `64:ff9b::${high}:${low}`,
    `64:ff9b::${a}.${b}.${c}.${d}`,
    `64:ff9b:1::${high}:${low}`,
    `64:ff9b:1:${high}:${hex(0, c)}:${hex(d)}00::`,
    `2002:${high}:${low}::1`,
    `2001:0:${high}:${low}:0:0:${hex(1, 2)}:${hex(3, 4)}`,
    `2001::${notHigh}:${notLow}`
  ]
}

const special = fc
  .oneof(
    octets,
    ...[
      [0],
      [10],
      [100, 64],
      [127],
      [169, 254],
      [172, 16],
      [192, 0, 0],
      [192, 0, 2],
      [192, 88, 99],
      [192, 168],
      [198, 18],
      [198, 51, 100],
      [203, 0, 113],
      [224],
      [240],
      [255, 255, 255]
    ].map(prefix => octets.map(address => address.map((octet, i) => prefix[i] ?? octet) as Octets)),
    fc.constantFrom<Octets>([168, 63, 129, 16], [169, 254, 169, 254], [100, 100, 100, 200], [192, 0, 0, 192])
  )
  .filter(isSpecial)

t.test('allows exactly the global IPv4 addresses', async t => {
  const { allows } = rules()
  always(
    fc.property(fc.oneof(octets, special), address => allows(address.join('.')) === !isSpecial(address)),
    2000
  )
  for (const edge of '9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 223.255.255.255 1.1.1.1'.split(' '))
    t.ok(allows(edge), edge)
})

t.test('blocks IPv6 addresses that embed a blocked IPv4 address', async () => {
  const { allows } = rules()
  always(fc.property(special, address => embeddings(address).every(embedded => !allows(embedded))))
})

t.test('allows global IPv6 addresses', async t => {
  const { allows } = rules()
  for (const address of ['2606:2800:21f:cb07:6820:80da:af6b:8b2c', '2a00:1450:4001::1', '2001:200::1', '2620:fe::fe'])
    t.ok(allows(address), address)
  for (const address of [
    '::',
    '::1',
    '100::1',
    '2001::1',
    '2001:2::1',
    '2001:db8::1',
    '2002:808:808::1',
    '3fff::1',
    '4000::1',
    '5f00::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '::ffff:8.8.8.8',
    '64:ff9b::8.8.8.8',
    '64:ff9b:1::808:808',
    '2606:4700::1%1'
  ])
    t.notOk(allows(address), address)
})

t.test('blocks hosts that are not valid addresses', async t => {
  for (const text of ['', 'localhost', '10', '0x8080808', '8.8.8', '8.8.8.8.', '08.8.8.8', '8.8.8.8/32', '2606::g'])
    t.notOk(rules().allows(text), text)
})

t.test('judges every spelling of an IPv4 address in a URL by the address it means', async () => {
  const { checkUrl } = rules()
  await always(
    fc.asyncProperty(fc.oneof(octets, special), async address => {
      const [a, b, c, d] = address
      const whole = ((a * 256 + b) * 256 + c) * 256 + d
      const spellings = [
        address.join('.'),
        `${whole}`,
        `0x${whole.toString(16)}`,
        `0${whole.toString(8)}`,
        `${a}.${(b * 256 + c) * 256 + d}`,
        `0x${hex(a)}.0${b.toString(8)}.${c * 256 + d}`,
        `${address.join('.')}.`,
        address.join('。'),
        address.join('.').replaceAll(/\d/g, digit => String.fromCharCode(0xff10 + Number(digit))),
        address.join('.').replaceAll(/\d/g, digit => `%3${digit}`)
      ]
      const verdicts = await Promise.all(spellings.map(host => checkUrl(`https://${host}/hook`)))
      return verdicts.every(({ ok }) => ok === !isSpecial(address))
    })
  )
})

t.test('judges an IPv6 literal in a URL like any other address', async () => {
  const { checkUrl } = rules()
  await always(
    fc.asyncProperty(special, async address => {
      const verdicts = await Promise.all(embeddings(address).map(host => checkUrl(`https://[${host}]/`)))
      return verdicts.every(({ ok }) => !ok)
    })
  )
})

t.test('rejects a malformed URL with the reason', async t => {
  const refusals: [string, RegExp][] = [
    ['', /https:/],
    ['example.com/hook', /https:/],
    ['ftp://example.com/', /https:/],
    ['http://example.com/', /https:/],
    ['https:example.com', /https:/],
    ['https:///example.com', /https:/],
    ['javascript:alert(1)', /https:/],
    ['file:///etc/passwd', /https:/],
    ['https://user:secret@example.com/', /user name/],
    ['https://@example.com/', /user name/],
    ['https://example.com@10.0.0.1/', /user name/],
    [' https://example.com/', /spaces/],
    ['https://example.com/a b', /spaces/],
    ['https://exam\tple.com/', /spaces/],
    ['https://example.com/\r\nX-Header: 1', /spaces/],
    ['https://example.com/\0', /spaces/],
    ['https://example.com\\@10.0.0.1/', /backslashes/],
    ['https://example..com/', /not a valid URL/],
    ['https://.example.com/', /not a valid URL/],
    ['https://exa<mple.com/', /not a valid URL/],
    ['https://example.com:99999/', /not a valid URL/],
    ['https://1.2.3.4.5/', /not a valid URL/],
    ['https://256.1.1.1/', /not a valid URL/],
    ['https://[fe80::1%25eth0]/', /not a valid URL/],
    [`https://${'a'.repeat(64)}.com/`, /not a valid URL/],
    [`https://example.com/${'a'.repeat(2029)}`, /2048/]
  ]
  for (const [url, reason] of refusals) exactly(t, await rules().checkUrl(url), { ok: false, reason }, JSON.stringify(url.slice(0, 60)))
})

t.test('returns a valid URL unchanged', async t => {
  for (const url of [
    'https://example.com',
    'HTTPS://Example.com/Hook?a=%20#part',
    'https://example.com:8443/',
    'https://bücher.example/ö',
    `https://example.com/${'a'.repeat(2028)}`
  ])
    t.same(await rules().checkUrl(url), { ok: true, url, unresolved: null })
})

t.test('accepts plain http only where it is allowed', async t => {
  exactly(t, await rules({ allowHttp: true }).checkUrl('http://example.com/'), { ok: true })
  exactly(t, await rules().checkUrl('http://example.com/'), { ok: false, reason: /https:/ })
})

t.test('rejects ports of other protocols, even on exempt addresses', async t => {
  const { checkUrl } = rules(loopback)
  for (const port of [0, 22, 25, 6000, 2375, 2376, 3306, 5432, 6379, 9200, 10080, 11211, 27017])
    exactly(t, await checkUrl(`http://127.0.0.1:${port}/`), { ok: false, reason: /port/ }, `${port}`)
  for (const port of [80, 443, 3000, 8080, 8443, 65535]) exactly(t, await checkUrl(`http://127.0.0.1:${port}/`), { ok: true }, `${port}`)
})

t.test('rejects local names without resolving them', async t => {
  const { checkUrl } = rules({ resolve: () => t.fail('it was asked') as never })
  for (const host of [
    'localhost',
    'LOCALHOST',
    'localhost.',
    'a.localhost',
    'printer.local',
    'printer.local.',
    'metadata.google.internal',
    'a.internal',
    'redis',
    'redis.',
    'ⓛocalhost',
    'local\u00adhost'
  ])
    exactly(t, await checkUrl(`https://${host}/`), { ok: false, reason: /local name/ }, host)
})

t.test('one non-public address blocks the name, and the message does not reveal it', async t => {
  const { checkUrl } = rules({ resolve: async () => ['93.184.215.14', '2606:4700::1', '10.1.2.3'] })
  const checked = await checkUrl('https://intranet.example.com/')
  exactly(t, checked, { ok: false, reason: /not public/ })
  t.notMatch(JSON.stringify(checked), /10\.1/)
})

t.test('allows exempt addresses, also in mapped form; other rules still apply', async t => {
  const { checkUrl, allows } = rules(loopback)
  for (const host of ['127.0.0.1', '127.9.9.9', '[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '2130706433'])
    exactly(t, await checkUrl(`http://${host}:3000/`), { ok: true }, host)
  for (const host of '10.0.0.1 169.254.169.254 0.0.0.0 [::] [::2] [::ffff:10.0.0.1] [64:ff9b::127.0.0.1] [::127.0.0.1]'.split(' '))
    exactly(t, await checkUrl(`http://${host}:3000/`), { ok: false }, host)
  t.ok(allows('8.8.8.8'))
})

t.test('a range in mapped form exempts the addresses it maps to', async t => {
  const { allows } = rules({ allowCidrs: ['::ffff:10.0.0.0/104'] })
  t.ok(allows('10.1.2.3'))
  t.ok(allows('::ffff:10.1.2.3'))
  t.ok(allows('11.0.0.1'))
  t.notOk(allows('192.168.0.1'))
})

t.test('allows a local name if all its addresses are exempt', async t => {
  const at = (...addresses: string[]): AddressRules => rules({ ...loopback, resolve: async () => addresses })
  exactly(t, await at('127.0.0.1', '::1').checkUrl('http://localhost:3000/'), { ok: true, unresolved: null })
  exactly(t, await at('127.0.0.1').checkUrl('http://app:3000/'), { ok: true })
  exactly(t, await at('127.0.0.1', '10.0.0.1').checkUrl('http://localhost:3000/'), { ok: false })
  exactly(t, await at('8.8.8.8').checkUrl('http://printer.local/'), { ok: false }, 'a public address does not make a local name public')
  exactly(t, await rules({ ...loopback, resolve: failing('ENOTFOUND') }).checkUrl('http://printer.local/'), {
    ok: false,
    reason: /local name/
  })
})
