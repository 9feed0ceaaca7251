/** Secrets with which a replica may start on a database that was used with others. */
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config.ts'
import { createFunctions } from '../../src/database/functions.ts'
import { requireSecrets } from '../../src/startup/secrets.ts'
import { createDatabase } from '../support/database.ts'
import { startReplica } from '../support/replica.ts'

const [a, b, c] = [1, 2, 3].map(n => Buffer.alloc(32, n).toString('base64'))
const secret = 'the secret of all replicas'

/** Starts with these; rejects as the start would. */
const setUp = async (t: Test) => {
  const { url, pool } = await createDatabase(t)
  const fn = createFunctions(pool)
  const start = (keys: unknown[], session = secret, env = {}) =>
    requireSecrets(fn, loadConfig({ DATABASE_URL: url, ENCRYPTION_KEYS: keys.join(), SESSION_SECRET: session, ...env }))
  await start([a])
  return { url, start }
}

const refused = (names: string) => ({
  name: 'ConfigError',
  message: `${names} must match the values of earlier starts; to change them on purpose, start once with SECRETS_CHANGED=on`
})

t.test('accepts the same secrets and rejects others', async t => {
  const { start } = await setUp(t)
  await start([a])
  await t.rejects(start([b]), refused('ENCRYPTION_KEYS'))
  await t.rejects(start([a], 'the secret of somebody else'), refused('SESSION_SECRET'))
  await t.rejects(start([b], 'the secret of somebody else'), refused('ENCRYPTION_KEYS and SESSION_SECRET'))
  await start([a])
})

t.test('adds a key at the end, then moves it to the front; after that every replica needs it', async t => {
  const { start } = await setUp(t)
  await start([a, b])
  await start([a])
  await start([b, a])
  await start([a, b])
  await t.rejects(start([a]), refused('ENCRYPTION_KEYS'))
  await t.rejects(start([b]), refused('ENCRYPTION_KEYS'))
})

t.test('SECRETS_CHANGED=on accepts changed secrets', async t => {
  const { start } = await setUp(t)
  await start([c], 'another secret, chosen later', { SECRETS_CHANGED: 'on' })
  await start([c], 'another secret, chosen later')
  await t.rejects(start([a]), refused('ENCRYPTION_KEYS and SESSION_SECRET'))
})

t.test('a replica with another secret exits with one line', async t => {
  const { url } = await setUp(t)
  const { code, err } = await startReplica(t, { DATABASE_URL: url, SESSION_SECRET: 'the secret of somebody else' }).ended
  t.equal(code, 1)
  t.match(err, /^pgcue: SESSION_SECRET must match the values of earlier starts; .* SECRETS_CHANGED=on\n$/)
})
