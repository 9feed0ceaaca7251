/** Setup for tests of several cells: two databases, and replicas as separate processes. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { Test } from 'tap'
import { layWire } from '../../scripts/stage/wire.ts'
import { createKey, storedKey } from '../../src/accounts/keys.ts'
import { createLinks } from '../../src/accounts/links.ts'
import { createFunctions } from '../../src/database/functions.ts'
import { createDatabase, testConfig } from './database.ts'
import { eventually } from './eventually.ts'
import { startReplica } from './replica.ts'

export const patienceMs = 60_000
const { encryptionKeys, sessionSecret } = testConfig('postgres://any')
export const links = createLinks({ sessionSecret })

/** Creates an account in a cell, as registration does; its key may name another cell. */
export const addAccount = async (pool: pg.Pool, cell: number, api_key = createKey(cell)) => {
  const email = `${randomUUID()}@example.com`
  const fn = createFunctions(pool)
  const id = await fn.newAccountId({})
  await fn.register({ account_id: id, email, ...storedKey(encryptionKeys, api_key, id), address: null, ip: '127.0.0.1' })
  return { id, email, api_key }
}

/** Two cells, the second one behind a wire, and a function that starts replicas on them. */
export const stage = async (t: Test) => {
  const first = await createDatabase(t)
  const second = await createDatabase(t, { cell: 2 })
  const wire = await layWire(second.url)
  t.teardown(() => wire.close())
  const pools = [first.pool, second.pool] as const
  const start = async (env: Record<string, string> = {}) => {
    const replica = startReplica(t, {
      CELLS: `${first.url} ${wire.url}`,
      CALLBACK_ALLOW_HTTP: 'on',
      CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
      LOG_LEVEL: 'warn',
      RATE_LIMIT: 'off', // tests ask until something has changed
      ...env
    })
    const ended = replica.ended.then(({ err }) => Promise.reject(new Error(err)))
    ended.catch(() => {})
    const listening = eventually(() => / at http:\/\/localhost:(\d+)/.exec(replica.stderr()), patienceMs)
    const [, port] = await Promise.race([listening, ended])
    const url = `http://127.0.0.1:${port}`
    const call = async (method: string, path: string, { key, body }: { key?: string; body?: object } = {}) => {
      const answer = await fetch(`${url}${path}`, {
        method,
        headers: { ...(key && { authorization: `Bearer ${key}` }), ...(body && { 'content-type': 'application/json' }) },
        body: body && JSON.stringify(body)
      })
      const text = await answer.text()
      const isJson = answer.headers.get('content-type')?.startsWith('application/json')
      return { status: answer.status, body: isJson ? JSON.parse(text) : text }
    }
    const tick = (api_key: string, callback_url: string) =>
      call('POST', '/v1/cues', { key: api_key, body: { name: 'tick', cron: '* * * * * *', callback_url } })
    return { ...replica, url, call, tick }
  }
  return { urls: [first.url, second.url] as const, pools, wire, start }
}
