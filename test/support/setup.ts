/** Setup for tests of the API: the service on its own database, an adjustable clock, a receiver of webhooks. */
import { randomUUID } from 'node:crypto'
import type { InjectOptions } from 'fastify'
import type pg from 'pg'
import root, { type Test } from 'tap'
import { createKey, hashKey, keyPrefix, storedKey } from '../../src/accounts/keys.ts'
import { build as buildApp, type Options } from '../../src/app.ts'
import type { enums } from '../../src/catalog.ts'
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

/** Owns what a service needs, in the place of the tests that use it one after the other. */
const createOwner = () => {
  const ends: (() => unknown)[] = []
  const owner = {
    test: root as Test,
    passing: () => owner.test.passing(),
    comment: (text: string) => owner.test.comment(text),
    teardown: (end: () => unknown) => void ends.unshift(end),
    end: async () => {
      for (const end of ends) await end()
    }
  }
  return owner
}

const open = async (t: Test, start?: string, { env = {}, ...options }: Settings = {}) => {
  const clock = createTestClock(start)
  const now = start === undefined ? undefined : clock.now
  const databases = await Promise.all(cellNumbers.map(cell => createDatabase(t, { cell })))
  const urls = databases.map(({ url }) => url)
  const cell = nextCell()
  const openCell = async ({ pool, url }: TestDatabase, index: number) => {
    const config = configOf(index + 1, urls, cell, { RATE_LIMIT: 'off', ...env })
    return { app: await buildApp({ config, pool, clock: now, ...options }), config, fn: createFunctions(pool, now), pool, url }
  }
  const cells = await Promise.all(databases.map(openCell))
  const app = appOf(cell, cells)
  t.teardown(() => app.close())
  const { config, fn, pool, url } = cells[cell - 1]!
  const empty = async () => (await Promise.all(databases.map(({ empty }) => empty()))).every(Boolean)
  const prepare = async () => {
    for (const { config, fn } of cells) {
      if (now) await fn.maintainPartitions({ months: 2 })
      await fn.setPlans({ plans: config.plans })
    }
  }
  return { app, calls: { ...app.fn }, clock, config, fn, pool, url, empty, prepare }
}

type Kept = { service: Awaited<ReturnType<typeof open>>; owner: ReturnType<typeof createOwner>; hasRead: () => boolean }
/** Emptied services by their settings. Building one takes longer than most tests. */
const spare = new Map<string, Kept[]>()
root.teardown(() => Promise.all([...spare.values()].flat().map(({ owner }) => owner.end())))

/** Health and figures, which a service reads at most every five seconds of its clock, are those of one test. */
const watchFigures = ({ app: { fn }, calls }: Kept['service']) => {
  let hasRead = false
  for (const name of ['serviceHealth', 'jobCounts'] as const) {
    const read = calls[name] as (args: object) => Promise<never>
    Object.assign(calls, {
      [name]: (args: object) => {
        hasRead = true
        return read(args)
      }
    })
  }
  Object.assign(fn, calls)
  return () => hasRead
}

/** A new service, or one that an earlier test has left as it was: not listening, with nothing else under way. */
const reuse = async (t: Test, start: string | undefined, settings: Settings) => {
  const kind = `${start === undefined} ${settings.env?.PLANS}`
  const spares = spare.get(kind) ?? []
  spare.set(kind, spares)
  const create = async (owner = createOwner()): Promise<Kept> => {
    const service = await open(owner as never, start, settings)
    return { service, owner, hasRead: watchFigures(service) }
  }
  const kept = spares.pop() ?? (await create())
  const { service, owner, hasRead } = kept
  owner.test = t
  if (start) service.clock.set(start)
  t.teardown(async () => {
    Object.assign(service.app.fn, service.calls) // some tests replace one
    delete (service.pool as Partial<pg.Pool>).query
    const isAsBefore = t.passing() && !hasRead() && !service.app.server.listening && !service.app.closing.aborted
    if (isAsBefore && (await service.empty().catch(() => false))) spares.push(kept)
    else await owner.end()
  })
  return service
}

/**
 * The service on its own database, with one registered account whose key every call carries. With a start time, the service and its SQL
 * functions use a clock that only `clock` moves. `isNew`: for tests that add routes or hooks, or need the first use.
 */
export const build = async (t: Test, start?: string, { isNew = false, ...settings }: Settings & { isNew?: boolean } = {}) => {
  const { env = {}, ...options } = settings
  const isCommon = cellNumbers.length === 1 && [...Object.keys(options), ...Object.keys(env)].every(name => name === 'PLANS')
  const isReused = t !== root && !isNew && isCommon
  const { app, clock, config, fn, pool, url, empty, prepare } = await (isReused ? reuse : open)(t, start, settings)
  await prepare()

  /** Another account, created like a registered one. */
  const register = async (email = `${randomUUID()}@example.com`): Promise<Account> => {
    const api_key = createKey(config.cell)
    const id = await fn.newAccountId({})
    const key = storedKey(config.encryptionKeys, api_key, id)
    await fn.register({ account_id: id, email, ...key, address: null, ip: '127.0.0.1' })
    return { id, email, api_key }
  }

  /** Another key of the account, as a signed-in person would create it. */
  const addKey = async ({ id, email }: Account, scopes: (typeof enums.keyScope)[number][], label = scopes.join()): Promise<Account> => {
    const api_key = createKey(config.cell)
    await fn.createKey({ account_id: id, label, key_hash: hashKey(api_key), prefix: keyPrefix(api_key), scopes, may_approve: true })
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
    empty,
    url,
    clock,
    fn,
    db: app.db,
    account,
    register,
    addKey,
    maintain,
    /** Calls by another account, or without a key. */
    as: (other: Account | null) => calls(other?.api_key),
    ...calls(account.api_key)
  }
}
