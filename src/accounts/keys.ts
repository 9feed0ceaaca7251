// API keys as text: creation, check digits, hashing and encryption. Independent of the database.
import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { cellDigit, cellOfDigit, digits } from '../cells/ids.ts'

const PREFIX = 'svc_sk_'
const RANDOM_LENGTH = 32
const CHECK_LENGTH = 6
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECK_LENGTH}}$`)

/** Creates a key: `svc_sk_`, 32 base-62 digits, of which the first is the cell and the others are random, and the CRC-32 of all that as 6 more. */
export const createKey = (cell = 1): string => {
  let key = PREFIX + cellDigit(cell)
  while (key.length < PREFIX.length + RANDOM_LENGTH) {
    // Values from 248 (4 × 62) are skipped; otherwise some digits would be more frequent than others.
    for (const byte of randomBytes(RANDOM_LENGTH)) if (byte < 248 && key.length < PREFIX.length + RANDOM_LENGTH) key += digits[byte % 62]
  }
  return key + checkDigits(key)
}

/** Whether a text has the form of a key and correct check digits, so that mistyped keys are rejected without a lookup. */
export const isKey = (text: string): boolean => FORM.test(text) && text.endsWith(checkDigits(text.slice(0, -CHECK_LENGTH)))

/** The cell that a key names; undefined for any other text. */
export const cellOfKey = (text: string): number | undefined => (FORM.test(text) ? cellOfDigit(text.slice(PREFIX.length)) : undefined)

/** The stored form of a key: its SHA-256. Keys are random enough not to need a slow hash. */
export const hashKey = (key: string): Buffer => hash('sha256', key, 'buffer')

/** The part of a key that may be shown: its first 12 characters. */
export const keyPrefix = (key: string): string => key.slice(0, 12)

const checkDigits = (text: string): string => {
  let check = ''
  for (let rest = crc32(text); check.length < CHECK_LENGTH; rest = Math.floor(rest / 62)) check = digits[rest % 62] + check
  return check
}

/** What a ciphertext is, and whose: the key of an account, by its id, or a device code, by its hash in hex. As anything else it can't be decrypted. */
export type Purpose = `api_key ${string}` | `device_code ${string}`

/**
 * Encrypts a key's text with AES-256-GCM and the first encryption key.
 * @param encryptionKeys 32 bytes each
 * @returns `id.nonce.text.tag`, the last three in base64
 */
export const encryptKey = (encryptionKeys: readonly Buffer[], key: string, purpose: Purpose): string => {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', encryptionKeys[0]!, nonce).setAAD(Buffer.from(purpose))
  const text = Buffer.concat([cipher.update(key, 'utf8'), cipher.final()])
  return [encryptionKeyId(encryptionKeys[0]!), ...[nonce, text, cipher.getAuthTag()].map(part => part.toString('base64'))].join('.')
}

/** The stored form of an account's default key, which can be shown again. */
export const storedKey = (encryptionKeys: readonly Buffer[], api_key: string, account_id: string) => ({
  key_hash: hashKey(api_key),
  prefix: keyPrefix(api_key),
  ciphertext: encryptKey(encryptionKeys, api_key, `api_key ${account_id}`)
})

/** Decrypts a key's text; undefined if its encryption key is no longer configured, the text was modified, or it was encrypted for another purpose. */
export const decryptKey = (encryptionKeys: readonly Buffer[], encrypted: string, purpose: Purpose): string | undefined => {
  const [id, ...parts] = encrypted.split('.')
  const encryptionKey = encryptionKeys.find(candidate => encryptionKeyId(candidate) === id)
  const [nonce, text, tag] = parts.map(part => Buffer.from(part, 'base64'))
  if (!encryptionKey || !nonce || !text || !tag) return undefined
  try {
    const decipher = createDecipheriv('aes-256-gcm', encryptionKey, nonce, { authTagLength: 16 })
    decipher.setAAD(Buffer.from(purpose)).setAuthTag(tag)
    return Buffer.concat([decipher.update(text), decipher.final()]).toString()
  } catch {
    return undefined
  }
}

/** An id for an encryption key that reveals nothing about it: the start of its SHA-256. */
export const encryptionKeyId = (encryptionKey: Buffer): string => hash('sha256', encryptionKey).slice(0, 8)
