/** What is stored of a response that repeats secrets of its request. */
import fc from 'fast-check'
import t from 'tap'
import { constants } from '../../src/catalog.ts'
import { maskSecrets } from '../../src/deliveries/mask-secrets.ts'
import { always } from '../support/seed.ts'

const secret = `a"s/é&c<r>e't% +ü?\\\\t`

const entities: Record<string, string> = { '"': '&quot;', '&': '&amp;', '<': '&lt;', '>': '&gt;', "'": '&#x27;' }
const percent = (text: string) => text.replace(/[^\w]/g, encodeURIComponent)
const bytes = (text: string) => Buffer.from(text, 'latin1')

/** A text as a receiver may repeat it. */
const forms: Record<string, (text: string) => string> = {
  'as sent': text => text,
  'as sent in Latin-1': text => new TextDecoder().decode(bytes(text)),
  JSON: text => JSON.stringify(text),
  'JSON in ASCII': text => JSON.stringify(text).replace(/[\x7f-\xff]/g, c => `\\u00${c.charCodeAt(0).toString(16).toUpperCase()}`),
  'JSON of PHP': text => JSON.stringify(text).replaceAll('/', '\\/'),
  Python: text => text.replace(/['\\]/g, '\\$&').replace(/[\x7f-\xff]/g, c => `\\x${c.charCodeAt(0).toString(16)}`),
  'percent encoding': percent,
  'percent encoding of Latin-1': text => bytes(text).toString('hex').replace(/../g, '%$&'),
  'form encoding': text => new URLSearchParams({ text }).toString().slice(5),
  HTML: text => text.replace(/["&<>']/g, c => entities[c]!),
  'HTML in decimal': text => text.replace(/[^\w]/g, c => `&#${c.charCodeAt(0)};`),
  base64: text => Buffer.from(text).toString('base64'),
  'base64 of Latin-1': text => bytes(text).toString('base64'),
  'base64 in JSON of PHP': text => Buffer.from(text).toString('base64').replaceAll('/', '\\/'),
  'base64 in a query': text => percent(Buffer.from(text).toString('base64')),
  base64url: text => Buffer.from(text).toString('base64url')
}

t.test('masks a secret in every form, and nothing else', async t => {
  for (const [form, of] of Object.entries(forms)) {
    const sent = of(secret)
    const [start, end] = /^".*"$/.test(sent) ? ['"', '"'] : ['', '']
    t.equal(maskSecrets(`x ${sent}, ${sent}.`, [secret]), `x ${start}********${end}, ${start}********${end}.`, form)
    const json = JSON.stringify({ headers: { 'X-Secret': secret }, other: 'value', ok: true })
    if (form === 'JSON') t.equal(maskSecrets(json, [secret]), '{"headers":{"X-Secret":"********"},"other":"value","ok":true}')
  }
})

t.test('masks a secret within what is encoded as a whole', async t => {
  for (const [form, of] of Object.entries(forms))
    for (const before of ['', 'a', 'ab', 'abc']) {
      const masked = maskSecrets(of(`${before}${secret}; and more`), [secret])
      // At the edges of base64, a character contains bits of its neighbour, too.
      const [start, ...rest] = masked.split('********')
      t.equal(rest.length, 1, `${form}, ${before}: ${masked}`)
      t.ok(of(before).replace(/=*"?$/, '').startsWith(start!), `${form}, ${before}: ${masked}`)
    }
})

t.test('masks several secrets, credentials without their scheme, and leaves short values', async t => {
  const values = ['Bearer token-1234', 'token-1234-and-more', ' padded-value ', 'Basic YWJj', 'short12', 'correct horse battery']
  const cases: [string, string][] = [
    ['Bearer token-1234', '********'],
    ['invalid token: token-1234', 'invalid token: ********'],
    ['token-1234-and-more', '********'],
    ['token-123', 'token-123'],
    ['padded-value', '********'],
    ['YWJj', 'YWJj'],
    ['short12', 'short12'],
    ['correct horse', 'correct horse'],
    ['correct horse battery', '********'],
    ['', '']
  ]
  for (const [response, masked] of cases) t.equal(maskSecrets(response, values), masked)
  t.equal(maskSecrets('anything at all', []), 'anything at all')
  t.equal(maskSecrets('a secret value', ['a secret value']), constants.mask)
})

t.test('no form of a secret is left, whatever surrounds it', async () => {
  const character = fc.integer({ min: 0x20, max: 0xff }).filter(code => code < 0x7f || code > 0x9f)
  const text = (minLength: number) => fc.array(character, { minLength, maxLength: 60 }).map(codes => String.fromCharCode(...codes))
  const value = text(8).filter(value => value === value.trim())
  always(
    fc.property(value, text(0), text(0), fc.constantFrom(...Object.values(forms)), (value, before, after, of) => {
      const masked = maskSecrets(`${before} ${of(value)} ${after}`, [value])
      return !masked.includes(of(value)) && masked.includes('********')
    })
  )
})

t.test('keeps only the beginning of a long response, without a part of a secret', async t => {
  const long = 'x'.repeat(3990)
  for (const [form, of] of Object.entries(forms)) {
    const masked = maskSecrets(`${long}${of(secret)} ${'y'.repeat(60_000)}`, [secret])
    t.match(masked, /^x{3990}"?\*{8}[" y]{0,10}$/, form)
  }
  t.equal(maskSecrets('z'.repeat(64 * 1024), [secret]), 'z'.repeat(4000))
})

t.test('costs little for the longest response and all headers', async t => {
  const sizes = [400, 400, 40]
  const attacks = [
    Array.from({ length: 20 }, (_, n) => `${'a'.repeat(sizes[n % 3]! - 4)}b${n}`),
    Array.from({ length: 20 }, (_, n) => `Bearer b${n}${'a'.repeat(390)}`),
    [`${'a'.repeat(8000)}b`]
  ]
  for (const response of ['a'.repeat(64 * 1024), '%61\\u0061&#97;-_aaaa'.repeat(3300), '{"echo": "-_Bearer b1aaaaaa%2f"}'.repeat(2000)])
    for (const values of attacks) {
      // Of the processor, so that a busy machine changes little.
      const took = Array.from({ length: 8 }, () => {
        const before = process.cpuUsage()
        maskSecrets(response, values)
        return process.cpuUsage(before).user / 1000
      })
      t.ok(Math.min(...took) < 15, `${took.map(Math.round)} ms`)
    }
})
