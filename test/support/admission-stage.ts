import type { Test } from 'tap'
import { createAdmission } from '../../src/accounts/admission.ts'
import { createKey, hashKey, keyPrefix } from '../../src/accounts/keys.ts'
import { createFunctions } from '../../src/database/functions.ts'
import { createTestClock } from './clock.ts'
import { createDatabase, testConfig } from './database.ts'

export const start = Date.parse('2030-01-01T09:00:00Z')

/** A database with one account of the plan, and a way to request admission to it. */
export const setup = async (t: Test, { plan = 'free', env = {} }: { plan?: string; env?: Record<string, string> } = {}) => {
  const { pool, url } = await createDatabase(t)
  const clock = createTestClock(start)
  const at = (ms: number) => clock.set(new Date(start + ms))
  const fn = createFunctions(pool, clock.now)
  const config = testConfig(url, env)
  const key = createKey()
  const account_id = await fn.newAccountId({})
  await fn.register({
    account_id,
    email: 'ada@example.com',
    key_hash: hashKey(key),
    prefix: keyPrefix(key),
    ciphertext: 'x',
    address: null,
    ip: '192.0.2.1'
  })
  await pool.query('update cue.accounts set plan = $1', [plan])
  const log: object[] = []
  const ask = createAdmission({ fn, config, now: clock.now, log: { error: (fields: object) => void log.push(fields) } as never })
  const call = (
    bearer: string | null = key,
    { scope = 'read' as const, address = '192.0.2.1', execution_id = null as string | null } = {}
  ) => ask({ authorization: bearer === null ? undefined : `Bearer ${bearer}`, address, scope, execution_id })
  const actor = { account_id, actor: 'test', ip: '192.0.2.1', may_approve: true }
  const addKey = async (args: object = {}) => {
    const text = createKey()
    const key_id = await fn.createKey({ label: 'another', key_hash: hashKey(text), prefix: keyPrefix(text), ...args, ...actor })
    return { text, key_id }
  }
  return { pool, url, config, fn, at, key, account_id, actor, addKey, ask, call, log }
}
