/** Calls of functions while another release replaces them. */
import type { QueryConfig, QueryResult } from 'pg'
import t, { type Test } from 'tap'
import { bindFunctions } from '../../src/database/functions.ts'
import { createPool } from '../../src/database/pool.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

const setUp = async (t: Test, pgPoolMax = 1) => {
  const { pool: admin, url } = await createDatabase(t, { migrated: false })
  const pool = createPool({ databaseUrl: url, pgPoolMax })
  t.teardown(() => pool.end())
  await admin.query('create schema cue; create table cue.done (n int)')
  const replace = (result: string, body: string) =>
    admin.query(`begin; drop function if exists cue.probe(int);
      create function cue.probe(p_n int) returns ${result} language plpgsql as $$ begin ${body}; end $$; commit`)
  const { probe } = bindFunctions({ probe: ['value', 'n'] }, pool) as { probe: (args: { n: number }) => Promise<unknown> }
  return { admin, pool, replace, probe }
}

t.test('repeats a call whose function has changed its result, freshly prepared', async t => {
  const { replace, probe } = await setUp(t)
  await replace('int', 'return 1')
  t.equal(await probe({ n: 1 }), 1)
  await replace('text', "return 'one'")
  t.equal(await probe({ n: 1 }), 'one')
})

t.test('while functions are replaced, no call fails or takes effect twice', async t => {
  const { admin, replace, probe } = await setUp(t, 4)
  const body = 'insert into cue.done values (p_n); return'
  await replace('int', `${body} 1`)
  let replacing = true
  let calls = 0
  const done = [0, 0, 0, 0]
  const callers = done.map(async (_, caller) => {
    for (; replacing; done[caller]!++) await probe({ n: calls++ })
  })
  for (let n = 0; n < 30; n++) {
    await replace(n % 2 ? 'int' : 'text', `${body} '1'`)
    // A call is repeated once, so none may meet two replacements: the next waits until every caller has begun and ended one since.
    const before = [...done]
    await Promise.race([eventually(() => done.every((count, caller) => count >= before[caller]! + 2)), Promise.all(callers)])
  }
  replacing = false
  await Promise.all(callers)
  const { rows } = await admin.query('select count(*), count(distinct n) as different from cue.done')
  t.same(rows, [{ count: calls, different: calls }])
})

/** A database that answers calls with these errors, one by one, and then with success. */
const failing = (...errors: { code: string; message?: string }[]) => {
  const names: (string | undefined)[] = []
  const query = async ({ name }: QueryConfig) => {
    names.push(name)
    const error = errors.shift()
    if (error) throw Object.assign(new Error(error.message), error)
    return { rows: [{ probe: 'done' }] } as unknown as QueryResult
  }
  const { probe } = bindFunctions({ probe: ['value', ''] }, { query }) as { probe: (args: object) => Promise<string> }
  return { names, probe }
}

t.test('retries a statement on a dropped or replaced function once, unnamed', async t => {
  for (const error of [{ code: '0A000' }, { code: '42883' }, { code: 'XX000', message: 'cache lookup failed for function 1' }]) {
    const { names, probe } = failing(error)
    t.equal(await probe({}), 'done')
    t.same(
      names,
      ['f1', undefined].map(name => name && names[0])
    )
    const twice = failing(error, error)
    await t.rejects(twice.probe({}), error)
    t.equal(twice.names.length, 2)
  }
})

t.test('does not retry calls that may have taken effect or were refused', async t => {
  for (const error of [{ code: '08006' }, { code: 'QU001' }, { code: '57014' }, { code: 'XX000', message: 'unexpected' }]) {
    const { names, probe } = failing(error)
    await t.rejects(probe({}), error)
    t.equal(names.length, 1, error.code)
  }
})
