/** Compares the catalog, `functions.ts`, `errors.ts` and the documentation for DBAs. */

import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { createFunctions, functions } from '../../src/database/functions.ts'
import { sqlstates, statuses } from '../../src/errors.ts'
import { createDatabase } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'
import { always } from '../support/seed.ts'

const { pool } = await createDatabase(t)
const rows = async (text: string) => (await pool.query(text)).rows

t.test('every typed function exists in the catalog with the same parameters', async t => {
  const found = await rows(
    `select proname as name, count(*)::int as overloads,
            string_agg(array_to_string(array(select substr(p, 3) from unnest(proargnames[:pronargs]) as p), ' '), ' | ') as parameters
       from pg_proc where pronamespace = 'cue'::regnamespace group by proname`
  )
  for (const [name, [, parameters]] of Object.entries(functions)) {
    const row = found.find(row => row.name === name)
    t.strictSame(row && [row.overloads, row.parameters ?? ''], [1, parameters], name)
  }
})

t.test("every typed function has one method, which passes the clock's time if it takes one", async t => {
  const called: string[] = []
  const now = new Date('2030-01-01')
  const query = async ({ text, values }: { text: string; values?: unknown[] }) => {
    const [, name, list = ''] = /^select \* from cue\.(\w+)\((.*)\)$/.exec(text) ?? []
    called.push(`${name} ${list.includes('p_now =>')} ${values?.includes(now) ?? false}`)
    return { rows: [] } as never
  }
  for (const call of Object.values(createFunctions({ query }, () => now))) await (call as (args: object) => Promise<unknown>)({})
  const expected = Object.entries(functions).map(([name, [, list]]) => {
    const timed = list.split(' ').includes('now')
    return `${name} ${timed} ${timed}`
  })
  t.strictSame(called.sort(), expected.sort())
})

t.test('arrays reach PostgreSQL and return unchanged', async t => {
  const again = <T>(value: T) => (value instanceof Date ? new Date(value) : value)
  const nullable = <T>(values: fc.Arbitrary<T>) =>
    fc.array(fc.option(values), { maxLength: 6 }).map(list => list.flatMap(value => [value, again(value)]))
  const text = fc.oneof(
    fc.constantFrom('', 'NULL', 'null', 'a b', '{}', '{a,b}', '"', '\\', ',', "'", ' '),
    fc.string({ unit: 'binary' }).map(text => text.replaceAll('\0', '').toWellFormed())
  )
  const instant = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  const values = fc.tuple(
    nullable(text),
    nullable(instant),
    nullable(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
    nullable(fc.boolean()),
    nullable(fc.uint8Array({ maxLength: 40 }).map(bytes => Buffer.from(bytes))),
    nullable(fc.maxSafeInteger()),
    nullable(fc.uuid())
  )
  await always(
    fc.asyncProperty(values, async values => {
      const { rows } = await pool.query({
        text: 'select $1::text[] as a, $2::timestamptz[] as b, $3::int[] as c, $4::boolean[] as d, $5::bytea[] as e, $6::bigint[] as f, $7::uuid[] as g',
        values
      })
      t.strictSame(Object.values(rows[0]), values)
    })
  )
})

const sql = (path: string) => readFileSync(new URL(`../../sql/${path}`, import.meta.url), 'utf8')
const files = ['functions', 'migrations'].flatMap(dir =>
  readdirSync(new URL(`../../sql/${dir}/`, import.meta.url)).map(name => `${dir}/${name}`)
)

const raisedIn = (file: string) => [...sql(file).matchAll(/cue\.(?:refuse|refuse_if|refusal)\([^;]*?'(QU\d+)'/g)].map(([, state]) => state!)

t.test('every exception raised in sql/ is a refusal with a SQLSTATE that has a code', async t => {
  for (const file of files.filter(file => file !== 'functions/refusals.sql')) {
    const others = [...sql(file).matchAll(/raise exception .*?;\s*$/gms)].filter(
      ([statement]) => !/errcode = cue\.refusal\(/.test(statement)
    )
    t.strictSame([others.length, raisedIn(file).filter(state => !Object.hasOwn(sqlstates, state))], [0, []], file)
  }
})

t.test('sql/README.md lists every SQLSTATE that sql/ raises and every function the service calls', async t => {
  const readme = sql('README.md')
  const raised = new Set(files.flatMap(raisedIn))
  t.strictSame(
    [...readme.matchAll(/\| (QU\w+) \| `(\w+)`/g)].map(([, state, code]) => [state, code]).sort(),
    [...raised].sort().map(state => [state, sqlstates[state]])
  )
  t.strictSame(
    Object.keys(functions).filter(name => !readme.includes(`\`${name}\``)),
    []
  )
  const listed = [
    ...readme
      .split('## Functions')[1]!
      .split('## Roles')[0]!
      .matchAll(/`(\w+)`/g)
  ].map(([, name]) => name!)
  const known = (await rows(`select proname from pg_proc where pronamespace = 'cue'::regnamespace`)).map(row => row.proname)
  const names = [...known, ...files.map(file => /\/(\w+)\.sql$/.exec(file)![1]), 'p_now']
  t.strictSame(
    listed.filter(name => !names.includes(name)),
    []
  )
})

t.test('every error code of the specification has its status', async t => {
  exactly(t, statuses, {
    invalid_schedule: 400,
    invalid_payload_size: 400,
    invalid_callback_url: 400,
    invalid_plan: 400,
    invalid_interval: 400,
    no_stripe_customer: 400,
    invalid_device_code: 400,
    device_code_expired: 400,
    invalid_status: 400,
    validation_error: 400,
    invalid_token: 400,
    invalid_api_key: 401,
    not_authenticated: 401,
    cue_limit_exceeded: 403,
    not_execution_owner: 403,
    cue_not_found: 404,
    execution_not_found: 404,
    alert_not_found: 404,
    device_code_not_found: 404,
    device_code_exists: 409,
    already_claimed: 409,
    execution_in_flight: 409,
    execution_not_claiming: 409,
    outcome_already_reported: 409,
    no_outcome: 409,
    plaintext_unavailable: 410,
    payload_too_large: 413,
    rate_limit_exceeded: 429,
    internal_error: 500
  })
})

t.test('every type, table, column, view and function has a comment', async t => {
  const silent = await rows(
    `select 'type ' || y.typname as what from pg_type y left join pg_class c on c.oid = y.typrelid
      where y.typnamespace = 'cue'::regnamespace and (y.typtype in ('e', 'd') or c.relkind = 'c')
        and coalesce(obj_description(y.oid, 'pg_type'), obj_description(c.oid, 'pg_class')) is null
     union all
     select 'relation ' || c.relname from pg_class c
      where c.relnamespace = 'cue'::regnamespace and not c.relispartition and obj_description(c.oid, 'pg_class') is null
        and (c.relkind in ('r', 'p', 'v', 'm') or c.relkind = 'S' and not exists (
          select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'i')) -- of an identity column
     union all
     select 'column ' || c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = 'cue'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.attnum > 0 and not a.attisdropped and col_description(c.oid, a.attnum) is null
     union all
     select 'function ' || p.oid::regprocedure from pg_proc p
      where p.pronamespace = 'cue'::regnamespace and obj_description(p.oid, 'pg_proc') is null
     order by 1`
  )
  t.strictSame(
    silent.map(row => row.what),
    []
  )
})

t.test("functions with their owner's rights resolve names in pg_catalog only", async t => {
  const astray = await rows(
    `select p.oid::regprocedure::text as name from pg_proc p
      where p.pronamespace = 'cue'::regnamespace and p.prosecdef
        and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)`
  )
  t.strictSame(astray, [])
})
