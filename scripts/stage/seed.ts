/** Creates accounts and cues by SQL, because creating them is not measured. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { createKey, storedKey } from '../../src/accounts/keys.ts'
import { createFunctions } from '../../src/database/functions.ts'
import { secrets } from './stage.ts'

export type Account = { id: string; api_key: string }

/** 200 bytes of canonical JSON. */
export const payload = `{"pad": "${'x'.repeat(189)}"}`

/** Adds accounts, as registering would. */
export const addAccounts = async (pool: pg.Pool, count: number, name = 'account', cell = 1): Promise<Account[]> => {
  const fn = createFunctions(pool)
  const encryptionKeys = [Buffer.from(secrets.ENCRYPTION_KEYS, 'base64')]
  const accounts: Account[] = []
  for (let n = 0; n < count; n++) {
    const api_key = createKey(cell)
    const account_id = await fn.newAccountId({})
    const key = storedKey(encryptionKeys, api_key, account_id)
    await fn.register({ account_id, email: `${name}-${n}@example.com`, ...key, address: null, ip: '127.0.0.1' })
    accounts.push({ id: account_id, api_key })
  }
  return accounts
}

type NewCues = { accounts: Account[]; count: number; hook?: string; body?: string }

/** Adds daily cues that are not due before they are scheduled, and returns their ids. Without a hook, they are for workers. */
export const addCues = async (pool: pg.Pool, { accounts, count, hook, body = payload }: NewCues): Promise<string[]> => {
  const { rows } = await pool.query(
    `with made as (
       insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload)
       select cue.new_cue_id(), ($1::uuid[])[1 + g % cardinality($1)], 'cue ' || g, case when $2::text is null then 'worker' else 'webhook' end::cue.transport,
              'recurring', '0 9 * * *', $2, $3
         from generate_series(0, $4 - 1) g
       returning id, account_id, transport, cue.schedule_key(cues) as key)
     insert into cue.cue_runs (cue_id, account_id, transport, schedule_key) select id, account_id, transport, key from made returning cue_id`,
    [accounts.map(({ id }) => id), hook, body, count]
  )
  const ids = rows.map(row => row.cue_id)
  const stored = 'payload = null, payload_id = cue.store_payload(account_id, id, payload, null, null)'
  if (body.length > 2048) await pool.query(`update cue.cues set ${stored} where id = any ($1)`, [ids])
  return ids
}

/** Makes each cue due at its instant, in epoch milliseconds, and notifies the engines. Vacuums and analyses the tables first. */
export const schedule = async (pool: pg.Pool, cueIds: string[], due: number[]): Promise<void> => {
  await pool.query(
    `update cue.cue_runs r set next_run = d.due, version = r.version + 1
       from unnest($1::text[], $2::timestamptz[]) as d (cue_id, due) where r.cue_id = d.cue_id`,
    [cueIds, due.map(at => new Date(at).toISOString())]
  )
  await pool.query('vacuum analyze cue.cues, cue.cue_runs, cue.executions, cue.attempts')
  const first = due.reduce((a, b) => Math.min(a, b))
  if (Date.now() > first - 500) throw new Error('this machine takes too long to schedule the cues: they are due already')
  await pool.query("select pg_notify('cue_due', $1)", [String(first)])
}

/** Resolves when a query returns `false` as `pending`. */
export const until = async (pool: pg.Pool, pending: string): Promise<void> => {
  while ((await pool.query(`select ${pending} as pending`)).rows[0].pending) await delay(20)
}

/** Resolves when all results are recorded. */
export const settled = (pool: pg.Pool) => until(pool, 'exists (select from cue.flights)')
