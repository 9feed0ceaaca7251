import { randomBytes } from 'node:crypto'
import t from 'tap'
import { createKey, decryptKey, encryptionKeyId, encryptKey, hashKey, isKey, keyPrefix } from '../../src/accounts/keys.ts'

/** CRC-32 (IEEE) by its definition, a bit at a time. */
const slowCrc32 = (text: string): number => {
  let crc = 0xffffffff
  for (const byte of Buffer.from(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

t.test('a key is svc_sk_, the digit of its cell, 31 random digits and 6 check digits', async t => {
  for (let i = 0; i < 200; i++) {
    const key = createKey()
    t.match(key, /^svc_sk_[0-9A-Za-z]{38}$/)
    const check = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0)
    t.equal(check, slowCrc32(key.slice(0, -6)))
    t.ok(isKey(key))
  }
})

t.test('keys issued in the past remain valid', async t => {
  t.ok(isKey('svc_sk_0123456789ABCDEFGHIJKLMNOPQRSTUV2blZok'))
})

t.test('check digits keep leading zeros', async t => {
  const bodies = Array.from({ length: 10_000 }, (_, i) => `svc_sk_${String(i).padStart(32, '0')}`)
  const body = bodies.find(body => slowCrc32(body) < 62 ** 4)!
  let check = ''
  for (let rest = slowCrc32(body); check.length < 6; rest = Math.floor(rest / 62)) check = digits[rest % 62] + check
  t.match(check, /^00/)
  t.ok(isKey(body + check))
})

t.test('all random digits are equally frequent', async t => {
  const counts = new Map<string, number>()
  const keys = 4000
  for (let i = 0; i < keys; i++) for (const digit of createKey().slice(8, 39)) counts.set(digit, (counts.get(digit) ?? 0) + 1)
  t.equal(counts.size, 62)
  const expected = (keys * 31) / 62
  // Six standard deviations: a fair generator fails once in many millions of runs, one that takes bytes modulo 62 always.
  for (const [digit, count] of counts) t.ok(Math.abs(count - expected) < 6 * Math.sqrt(expected), `${digit}: ${count}`)
})

t.test('rejects a key with one character changed, two swapped, or one missing', async t => {
  const key = createKey()
  for (let i = 0; i < key.length; i++) {
    const other = key[i] === 'x' ? 'y' : 'x'
    t.notOk(isKey(key.slice(0, i) + other + key.slice(i + 1)), `character ${i} replaced`)
    t.notOk(isKey(key.slice(0, i) + key.slice(i + 1)), `character ${i} left out`)
    if (i > 0 && key[i] !== key[i - 1]) {
      t.notOk(isKey(key.slice(0, i - 1) + key[i] + key[i - 1] + key.slice(i + 1)), `characters ${i - 1} and ${i} exchanged`)
    }
  }
  for (const text of ['', 'svc_sk_', `${key}\n`, ` ${key}`, key.toLowerCase(), `${key}0`]) t.notOk(isKey(text))
})

t.test('hash and prefix do not reveal the key', async t => {
  const key = createKey()
  t.equal(keyPrefix(key), key.slice(0, 12))
  t.equal(hashKey(key).length, 32)
  t.same(hashKey(key), hashKey(key))
  t.not(hashKey(key).toString('hex'), hashKey(createKey()).toString('hex'))
})

const purpose = 'api_key 0190a5c1-0000-7000-8000-000000000001'

t.test('encrypts with the first key, decrypts with all, and returns nothing without the right one', async t => {
  const [older, newer, newest] = [randomBytes(32), randomBytes(32), randomBytes(32)]
  const key = createKey()
  const encrypted = encryptKey([newer, older], key, purpose)
  t.equal(encrypted.split('.')[0], encryptionKeyId(newer))
  t.notOk(encrypted.includes(key))
  t.equal(decryptKey([newer], encrypted, purpose), key)
  t.equal(decryptKey([newest, older, newer], encrypted, purpose), key)
  t.equal(decryptKey([newest, older], encrypted, purpose), undefined)
  for (const other of ['api_key 0190a5c1-0000-7000-8000-000000000002', purpose.replace('api_key', 'device_code')] as const)
    t.equal(decryptKey([newer], encrypted, other as typeof purpose), undefined, other)
  t.not(encryptKey([newer], key, purpose), encrypted, 'a nonce is used once')
})

t.test('does not decrypt modified or malformed text', async t => {
  const encryptionKeys = [randomBytes(32)]
  const parts = encryptKey(encryptionKeys, createKey(), purpose).split('.')
  for (const i of [1, 2, 3]) {
    const changed = Buffer.from(parts[i]!, 'base64')
    changed[0]! ^= 1
    t.equal(decryptKey(encryptionKeys, parts.with(i, changed.toString('base64')).join('.'), purpose), undefined)
    t.equal(decryptKey(encryptionKeys, parts.with(i, '').join('.'), purpose), undefined)
    t.equal(decryptKey(encryptionKeys, parts.slice(0, i).join('.'), purpose), undefined)
  }
  t.equal(
    decryptKey(encryptionKeys, parts.with(3, Buffer.from(parts[3]!, 'base64').subarray(0, 4).toString('base64')).join('.'), purpose),
    undefined,
    'a short tag'
  )
  t.equal(decryptKey(encryptionKeys, '', purpose), undefined)
})
