/** Setup for tests of the API: the service on its own database, an adjustable clock, a receiver of webhooks. */
import { randomUUID } from 'node:crypto'
import type { InjectOptions } from 'fastify'
import type { Test } from 'tap'
import { createKey, storedKey } from '../../src/accounts/keys.ts'
import { build as buildApp, type Options } from '../../src/app.ts'
import { createFunctions } from '../../src/database/functions.ts'
import type { ErrorCode } from '../../src/errors.ts'
import { createTestClock } from './clock.ts'
import { createDatabase, type TestDatabase } from './database.ts'
import { checkResponse } from './openapi.ts'
import { appOf, cellNumbers, configOf, nextCell } from './two-cells.ts'

export { eventually } from './eventually.ts'
export { receiver } from './receiver.ts'

/** The expected result of `call` for a refusal. */
export const error = (code: ErrorCode, status: number) => ({ status, body: { error: { code, status, message: /\w/ } } })

/** The same for a request whose first fault is there. */
export const invalid = (...loc: unknown[]) => ({ status: 422, body: { detail: [{ loc }] } })

export type Account = { id: string; email: string; api_key: string }
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type Body = any
type Headers = Record<string, string>

type Settings = Partial<Omit<Options, 'config' | 'pool' | 'clock'>> & {
  /** Environment of the service, overriding the tests' own. Rate limits are off unless RATE_LIMIT says otherwise. */
  env?: Record<string, string>
}

/**
 * The service on its own database, with one registered account whose key every call carries. With a start time, the service and its SQL
 * functions use a clock that only `clock` moves.
 */
export const build = async (t: Test, start?: string, { env = {}, ...options }: Settings = {}) => {
  const clock = createTestClock(start)
  const now = start === undefined ? undefined : clock.now
  const databases = await Promise.all(cellNumbers.map(cell => createDatabase(t, { cell })))
  const urls = databases.map(({ url }) => url)
  const cell = nextCell()
  const open = async ({ pool, url }: TestDatabase, index: number) => {
    const config = configOf(index + 1, urls, cell, { RATE_LIMIT: 'off', ...env })
    const fn = createFunctions(pool, now)
    if (now) await fn.maintainPartitions({ months: 2 })
    await fn.setPlans({ plans: config.plans })
    return { app: await buildApp({ config, pool, clock: now, ...options }), config, fn, pool, url }
  }
  const cells = await Promise.all(databases.map(open))
  const { config, fn, pool, url } = cells[cell - 1]!
  const app = appOf(cell, cells)
  t.teardown(() => app.close())

  /** Another account, created like a registered one. */
  const register = async (email = `${randomUUID()}@example.com`): Promise<Account> => {
    const api_key = createKey(config.cell)
    const id = await fn.newAccountId({})
    const key = storedKey(config.encryptionKeys, api_key, id)
    await fn.register({ account_id: id, email, ...key, address: null, ip: '127.0.0.1' })
    return { id, email, api_key }
  }

  const calls = (api_key?: string) => {
    /** Sends one request and returns status, headers and body. A string is sent unchanged. */
    const call = async (method: string, path: string, body?: unknown, headers: Headers = {}) => {
      const answer = await app.inject({
        method: method as InjectOptions['method'],
        url: path,
        headers: {
          ...(api_key && { authorization: `Bearer ${api_key}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers
        },
        ...(body !== undefined && { payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body) })
      })
      const isJson = answer.body !== '' && String(answer.headers['content-type']).startsWith('application/json')
      const content = (isJson ? answer.json() : answer.body) as Body
      if (isJson) checkResponse(method, path, answer.statusCode, content)
      return { status: answer.statusCode, headers: answer.headers as Headers, body: content }
    }
    return {
      call,
      get: async (path: string, headers?: Headers) => (await call('GET', path, undefined, headers)).body,
      post: async (path: string, body?: unknown, headers?: Headers) => (await call('POST', path, body, headers)).body,
      patch: async (path: string, body?: unknown, headers?: Headers) => (await call('PATCH', path, body, headers)).body,
      del: async (path: string, headers?: Headers) => (await call('DELETE', path, undefined, headers)).body
    }
  }

  /** Runs the engine's sweeps and housekeeping once. */
  const maintain = async () => {
    await fn.recoverFlights({})
    await fn.recoverStuck({})
    await fn.expireOutcomes({})
    await fn.requeueAttempts({})
    await fn.foldUsage({})
    await fn.prune({})
    while ((await fn.deleteDueAccounts({})) > 0);
  }

  const account = await register()
  return {
    app,
    config,
    pool,
    /** Resets the databases; false if one cannot be. */
    empty: async () => (await Promise.all(databases.map(({ empty }) => empty()))).every(Boolean),
    url,
    clock,
    fn,
    db: app.db,
    account,
    register,
    maintain,
    /** Calls by another account, or without a key. */
    as: (other: Account | null) => calls(other?.api_key),
    ...calls(account.api_key)
  }
}
