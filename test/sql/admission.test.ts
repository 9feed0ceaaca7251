import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { createAdmission } from '../../src/accounts/admission.ts'
import { createKey, hashKey } from '../../src/accounts/keys.ts'
import { createFunctions } from '../../src/database/functions.ts'
import { createPool } from '../../src/database/pool.ts'
import { deriveKey, executionToken } from '../../src/deliveries/signature.ts'
import { setup, start } from '../support/admission-stage.ts'
import { exactly } from '../support/exactly.ts'
import { shuffled } from '../support/seed.ts'

const cueDefaults = {
  timezone: 'UTC',
  callback_method: 'POST',
  callback_headers: {},
  payload: '{}',
  retry_max_attempts: 3,
  retry_backoff_minutes: [1, 2, 4],
  on_failure_email: true,
  on_failure_pause: false,
  catch_up: 'run_once_if_missed'
}

t.test('admits a key as its account, and rejects unknown, mistyped and revoked keys', async t => {
  const { call, fn, actor, addKey, account_id } = await setup(t)
  const { text, key_id } = await addKey()
  exactly(t, await call(text), { error: null, caller: { account_id, actor: `key:${key_id}`, ip: '192.0.2.1' } })
  exactly(t, await call(createKey()), { error: 'invalid_api_key', caller: null })
  exactly(t, await call(`${text.slice(0, -1)}${text.endsWith('x') ? 'y' : 'x'}`), { error: 'invalid_api_key' })
  await fn.revokeKey({ key_id, ...actor })
  exactly(t, await call(text), { error: 'invalid_api_key', caller: null })
})

t.test('rejects any header that is not one of our bearer tokens as not_authenticated', async t => {
  const { ask, key } = await setup(t)
  for (const authorization of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    `Basic ${key}`,
    key,
    'Bearer eyJhbGciOiJIUzI1NiJ9.e30.x',
    `Bearer ${key} ${key}`
  ]) {
    exactly(
      t,
      await ask({ authorization, address: '192.0.2.1', scope: 'any' }),
      { error: 'not_authenticated' },
      authorization ?? 'no header'
    )
  }
  exactly(t, await ask({ authorization: `bearer  ${key}`, address: '192.0.2.1', scope: 'any' }), { error: null })
})

t.test('each scope allows its own routes and no others', async t => {
  const { addKey, ask } = await setup(t)
  const scopes = ['read', 'write', 'worker', 'account'] as const
  for (const scope of scopes) {
    const { text } = await addKey({ scopes: [scope] })
    for (const needed of [...scopes, 'any'] as const) {
      const { error } = await ask({ authorization: `Bearer ${text}`, address: '192.0.2.1', scope: needed })
      t.equal(error, needed === scope || needed === 'any' ? null : 'insufficient_scope', `${scope} key at a ${needed} route`)
    }
  }
})

t.test('a public route admits everybody without checking a key', async t => {
  const { ask, key } = await setup(t)
  exactly(t, await ask({ authorization: `Bearer ${key}`, address: '192.0.2.1', scope: null }), {
    error: null,
    caller: null,
    rate: { limit: 60, remaining: 59 }
  })
})

t.test('with limits off, counts nothing and still checks keys', async t => {
  const { call, pool } = await setup(t, { env: { RATE_LIMIT: 'off' } })
  for (let i = 0; i < 70; i++) exactly(t, await call(), { error: null, rate: { limit: 60, remaining: 60 } })
  exactly(t, await call(createKey()), { error: 'invalid_api_key' })
  exactly(t, (await pool.query('select * from cue.rate_windows')).rows, [])
})

t.test('if the limiter fails, admits valid keys, rejects others, and logs the failure', async t => {
  const { call, pool, log } = await setup(t)
  await pool.query('drop table cue.rate_windows cascade')
  exactly(t, await call(), { error: null, rate: { limit: 60, remaining: 60 } })
  exactly(t, await call(createKey()), { error: 'invalid_api_key' })
  t.equal(log.length, 2)
  // The table's row type is missing, or the table: a session that has called the function before knows the type.
  exactly(t, log[0], { err: { code: /^42(704|P01)$/ } })
})

t.test('without a database, admits nobody', async t => {
  const { config, key } = await setup(t)
  const pool = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/none' })
  t.teardown(() => pool.end())
  const ask = createAdmission({ fn: createFunctions(pool), config, log: { error: () => t.fail('not the limiter') } as never })
  await t.rejects(ask({ authorization: `Bearer ${key}`, address: '192.0.2.1', scope: 'read' }), { code: 'ECONNREFUSED' })
})

t.test('warns in every response from 80 percent of the monthly executions on', async t => {
  const { call, pool, account_id, at } = await setup(t)
  const use = (slot: number, executions: number) =>
    pool.query("insert into cue.usage_counters values ($1, '2030-01-01', $2, $3)", [account_id, slot, executions])
  await use(0, 200)
  await use(5, 39)
  exactly(t, await call(), { usage_warning: false })
  await use(6, 1)
  exactly(t, await call(), { usage_warning: true })
  at(31 * 86_400_000)
  exactly(t, await call(), { usage_warning: false }, 'a new month')
})

t.test('updates last_used_at at most once a minute, without waiting for a lock', async t => {
  const { call, pool, at, addKey, url } = await setup(t)
  const { text, key_id } = await addKey()
  const lastUsed = async () => (await pool.query('select last_used_at from cue.api_keys where id = $1', [key_id])).rows[0].last_used_at
  t.equal(await lastUsed(), null)
  await call(text)
  t.same(await lastUsed(), new Date(start))
  at(59_000)
  await call(text)
  t.same(await lastUsed(), new Date(start))

  const client = new pg.Client(url)
  await client.connect()
  await client.query('begin')
  await client.query('select from cue.api_keys where id = $1 for update', [key_id])
  at(61_000)
  exactly(t, await call(text), { error: null }, "the key's row is locked")
  await client.query('commit')
  await client.end()
  t.same(await lastUsed(), new Date(start))
  await call(text)
  t.same(await lastUsed(), new Date(start + 61_000))
})

t.test('simultaneous requests note the use of their key once, without waiting for its account', async t => {
  const { fn, addKey, account_id, pool } = await setup(t)
  const { text, key_id } = await addKey()
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from cue.accounts where id = $1 for update', [account_id])
  const answers = await fn.admit({
    key_hashes: [hashKey(text), hashKey(text)],
    session_ids: [null, null],
    execution_ids: [null, null],
    addresses: ['192.0.2.1', '192.0.2.1'],
    scopes: ['read', 'read']
  })
  t.same(
    answers.map(({ error, actor }) => [error, actor]),
    [
      [null, `key:${key_id}`],
      [null, `key:${key_id}`]
    ]
  )
  t.same((await pool.query('select last_used_at from cue.api_keys where id = $1', [key_id])).rows[0].last_used_at, new Date(start))
  await holder.query('rollback')
  holder.release()
})

t.test('an execution token is valid for its execution until 24 hours after the end', async t => {
  const { call, pool, account_id, config, at, fn } = await setup(t)
  await fn.maintainPartitions({})
  const tokenKey = deriveKey(config.sessionSecret, 'execution-token')
  const cue_id = await fn.createCue({
    account_id,
    cue: { name: 'a', transport: 'worker', schedule_type: 'recurring', cron: '0 9 * * *', ...cueDefaults },
    next_run: new Date('2030-01-02T09:00:00Z')
  })
  const { id } = await fn.fireCue({ account_id, cue_id })
  const token = executionToken(tokenKey, id)
  const good = { error: null, caller: { account_id, actor: `execution:${id}` } }
  exactly(t, await call(token, { execution_id: id }), good)
  exactly(t, await call(token, { execution_id: id.toUpperCase() }), good)
  exactly(t, await call(token), { error: 'insufficient_scope', caller: null }, 'at another route')
  exactly(t, await call(token, { execution_id: randomUUID() }), { error: 'insufficient_scope', caller: null }, 'at another execution')
  exactly(t, await call(executionToken(tokenKey, randomUUID()), { execution_id: id }), { error: 'invalid_api_key' }, 'unknown execution')
  exactly(
    t,
    await call(`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`, { execution_id: id }),
    { error: 'invalid_api_key' },
    'forged'
  )

  await fn.cancelExecution({ account_id, execution_id: id })
  const { rows } = await pool.query('select ended_at from cue.executions where id = $1', [id])
  const ended = rows[0].ended_at.getTime() - start
  at(ended + 24 * 3_600_000 - 1)
  exactly(t, await call(token, { execution_id: id }), good)
  at(ended + 24 * 3_600_000)
  exactly(t, await call(token, { execution_id: id }), { error: 'invalid_api_key' })
})

t.test('judges simultaneous requests each by its own credentials', async t => {
  const { fn, ask, key, addKey, account_id, actor } = await setup(t, { plan: 'scale' })
  const { text: reader } = await addKey({ scopes: ['read'] })
  const { text: revoked, key_id } = await addKey()
  await fn.revokeKey({ key_id, ...actor })
  const kinds = [
    { bearer: key, answer: { error: null, caller: { account_id } } },
    { bearer: reader, answer: { error: 'insufficient_scope', caller: null } },
    { bearer: revoked, answer: { error: 'invalid_api_key', caller: null } },
    { bearer: createKey(), answer: { error: 'invalid_api_key', caller: null } },
    { bearer: 'nothing', answer: { error: 'not_authenticated', caller: null } }
  ]
  const asked = Array.from({ length: 100 }, (_, n) => kinds[n % kinds.length]!)
  const answers = await Promise.all(
    asked.map(({ bearer }, n) => ask({ authorization: `Bearer ${bearer}`, address: `192.0.2.${n}`, scope: 'write' }))
  )
  for (const [n, { answer }] of asked.entries()) exactly(t, answers[n], answer)
  const remaining = answers.filter((_, n) => n % kinds.length === 0).map(({ rate }) => rate.remaining)
  t.equal(new Set(remaining).size, 20, 'each is counted')
})

t.test('simultaneous batches do not deadlock, whatever their order', async t => {
  const { config, key, addKey } = await setup(t, { plan: 'scale' })
  const hashes = [hashKey(key), ...(await Promise.all(Array.from({ length: 10 }, async () => hashKey((await addKey()).text))))]
  const pool = createPool(config, { max: 4 })
  t.teardown(() => pool.end())
  const together = createFunctions(pool)
  const questions = [
    ...hashes.map(key_hash => ({ key_hash: key_hash as Buffer | null, address: '192.0.2.1' })),
    // Unknown keys count by address.
    ...Array.from({ length: 10 }, (_, n) => ({ key_hash: hashKey(createKey()) as Buffer | null, address: `192.0.2.${n}` })),
    ...Array.from({ length: 10 }, (_, n) => ({ key_hash: null, address: `192.0.2.${n}` }))
  ]
  const batch = (list: typeof questions) =>
    together.admit({
      key_hashes: list.map(({ key_hash }) => key_hash),
      session_ids: list.map(() => null),
      execution_ids: list.map(() => null),
      addresses: list.map(({ address }) => address),
      scopes: list.map(() => 'read')
    })
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(Array.from({ length: 4 }, () => batch(shuffled(questions))))
    for (const answer of answers) t.equal(answer.length, questions.length)
  }
})

t.test('a query plan made on empty tables stays cheap on large ones', async t => {
  const { pool, account_id } = await setup(t)
  const client = await pool.connect()
  t.teardown(() => client.release())
  await client.query('vacuum analyze cue.sessions')
  const read = async () => {
    const { rows } = await client.query(
      `explain (analyze, buffers, format json)
       select * from cue.admit('{null}', array[gen_random_uuid()], '{null}', '{192.0.2.1}', '{read}', true, $1)`,
      [new Date(start)]
    )
    const { Plan } = rows[0]['QUERY PLAN'][0]
    return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
  }
  for (let n = 0; n < 10; n++) await read()
  const before = await read()
  await client.query(
    `insert into cue.sessions select gen_random_uuid(), $1, $2, $2::timestamptz + interval '1 day' from generate_series(1, 20000)`,
    [account_id, new Date(start)]
  )
  // A plan invalidated meanwhile, for example by an analyze, is made again, which reads the catalogs.
  const after = Math.min(await read(), await read())
  t.ok(after <= before + 10, `${before} buffers, then ${after}`)
})
