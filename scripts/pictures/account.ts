/** A service with two accounts for pictures of the dashboard: one with a year of history, and an empty one. */
import { createKey, hashKey, keyPrefix } from '../../src/accounts/keys.ts'
import { enums } from '../../src/catalog.ts'
import { createFunctions } from '../../src/database/functions.ts'
import { call as callAt } from '../stage/client.ts'
import { atEnd } from '../stage/processes.ts'
import { addAccounts } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { seedAccount } from './seed.ts'

export const operator_token = 'only-for-pictures-too'

/** Nothing fires: the replica has no engine, but says that it has. */
export const openAccount = async (stage: Stage) => {
  const { url, pool } = await stage.createDatabase('pictures')
  const env = { DATABASE_URL: url, ROLES: 'api', RATE_LIMIT: 'off', OPERATOR_TOKEN: operator_token }
  const { address } = await stage.startReplica('pictures', env)
  const beat = () =>
    pool.query("select from cue.beat_engine('00000000-0000-0000-0000-000000000001', 'pictures', 12, 0, p_missed_after => '1 year')")
  await beat()
  const beating = setInterval(() => void beat().catch(() => {}), 2000)
  atEnd(() => clearInterval(beating))
  const [ada, newcomer] = await addAccounts(pool, 2, 'ada')
  // The owner may approve, which the default key may not.
  const api_key = createKey(1)
  const scopes = [...enums.keyScope]
  const hash = { key_hash: hashKey(api_key), prefix: keyPrefix(api_key) }
  await createFunctions(pool).createKey({ account_id: ada!.id, label: 'owner', ...hash, scopes, may_approve: true })
  const call = async (method: string, path: string, body?: object) => {
    const answer = await callAt(address, method, path, ada!.api_key, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
    return answer.body
  }
  const seeded = await seedAccount({ pool, call, account_id: ada!.id, now: new Date() })
  await pool.query('analyze') // which the operator's page takes its numbers from
  return { address, ada: { ...ada!, api_key }, newcomer: newcomer!, ...seeded }
}
