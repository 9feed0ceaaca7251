import { scryptSync } from 'node:crypto'
import { encryptionKeyId } from '../accounts/keys.ts'
import { type Config, ConfigError } from '../config.ts'
import type { Functions } from '../database/functions.ts'

/** Slow on purpose, so that a weak secret cannot be guessed from the stored fingerprint. */
const fingerprint = (secret: string) => scryptSync(secret, 'pgcue session secret', 16).toString('hex')

/**
 * Compares this replica's secrets with those of earlier replicas: with different ones, it could not decrypt their keys, and its signatures
 * would be rejected.
 * @throws {ConfigError} naming the settings that differ
 */
export const requireSecrets = async (
  fn: Pick<Functions, 'checkSecrets'>,
  { encryptionKeys, sessionSecret, secretsChanged }: Pick<Config, 'encryptionKeys' | 'sessionSecret' | 'secretsChanged'>
) => {
  const different = await fn.checkSecrets({
    encryption_key_ids: encryptionKeys.map(encryptionKeyId),
    session_secret: fingerprint(sessionSecret),
    changed: secretsChanged
  })
  if (different.length === 0) return
  const names = different.sort().join(' and ')
  throw new ConfigError(`${names} must match the values of earlier starts; to change them on purpose, start once with SECRETS_CHANGED=on`)
}
