/** A service with a realistic account, for pictures and measurements of the dashboard. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKey, storedKey } from '../../src/accounts/keys.ts'
import { build } from '../../src/app.ts'
import { atPort, loadConfig } from '../../src/config.ts'
import { createFunctions } from '../../src/database/functions.ts'
import { createPool } from '../../src/database/pool.ts'
import { freePort, startEmbedded } from '../../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { seedAccount } from './seed.ts'

const operator_token = 'only-for-pictures-too'

/** Starts the service with two accounts: one with a year of history, and an empty one. */
export const openAccount = async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'pgcue-pictures-'))
  chmodSync(dataDir, 0o755)
  const { url, stop } = await startEmbedded({ dataDir, durable: false })
  await migrate({ connectionString: url })
  const port = await freePort('127.0.0.1')
  const env = {
    DATABASE_URL: url,
    ENCRYPTION_KEYS: Buffer.alloc(32, 1).toString('base64'),
    SESSION_SECRET: 'only for pictures, 32 characters',
    RATE_LIMIT: 'off',
    LOG_LEVEL: 'error',
    OPERATOR_TOKEN: operator_token,
    BASE_URL: `http://localhost:${port}`
  }
  const config = atPort(Object.freeze({ ...loadConfig(env), listenUrl: url }), port)
  const pool = createPool(config)
  const fn = createFunctions(pool)
  await fn.maintainPartitions({ months: 2 })
  await fn.setPlans({ plans: config.plans })
  const beat = () =>
    fn.beatEngine({
      engine_id: '00000000-0000-0000-0000-000000000001',
      version: 'pictures',
      lateness_ms: 12,
      open_deliveries: 0,
      missed_after: '1 year'
    })
  await beat()
  const beating = setInterval(() => void beat().catch(() => {}), 2000)
  const app = await build({ config, pool })
  await app.listen({ host: '127.0.0.1', port })

  const register = async (email: string) => {
    const api_key = createKey(1)
    const account_id = await fn.newAccountId({})
    await fn.register({
      account_id,
      email,
      ...storedKey(config.encryptionKeys, api_key, account_id),
      ip: '127.0.0.1'
    })
    return { id: account_id, api_key }
  }
  const ada = await register('ada@example.com')
  const newcomer = await register('new@example.com')
  const call = async (method: string, path: string, body?: object) => {
    const answer = await app.inject({
      method: method as 'POST',
      url: path,
      headers: { authorization: `Bearer ${ada.api_key}` },
      payload: body
    })
    if (answer.statusCode >= 400) throw new Error(`${method} ${path}: ${answer.body}`)
    return answer.json()
  }
  const seeded = await seedAccount({ pool, call, account_id: ada.id, now: new Date() })
  await pool.query('analyze') // which the operator's page takes its numbers from
  const close = async () => {
    clearInterval(beating)
    await app.close()
    await pool.end()
    await stop()
    rmSync(dataDir, { recursive: true })
  }
  return { config, operator_token, ada, newcomer, ...seeded, close }
}
