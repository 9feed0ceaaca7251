import { readFileSync } from 'node:fs'
import t from 'tap'
import { dumpSchema } from '../../scripts/dump-schema.ts'
import { generate, openapiFiles } from '../../scripts/generate.ts'
import { createDatabase } from '../support/database.ts'

const { url, pool } = await createDatabase(t)
const major = Number.parseInt((await pool.query("select current_setting('server_version') as name")).rows[0].name, 10)

t.test('the generated files are up to date', { skip: major !== 18 && 'they are made on PostgreSQL 18' }, async t => {
  for (const [name, content] of Object.entries({ ...(await generate(url)), ...openapiFiles() })) {
    t.equal(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8'), content, `${name}: run \`npm run generate\``)
  }
})

t.test('the schema dump shows changed columns, defaults, comments, grants and functions, but no partitions', async t => {
  const { pool } = await createDatabase(t)
  const before = (await dumpSchema(pool)).split('\n')
  await pool.query(`
    create table cue.extra (extra_id bigint generated always as identity primary key, extra_at timestamptz not null default now(), extra_n int check (extra_n > 0))
      partition by hash (extra_id);
    create table cue.extra_0 partition of cue.extra for values with (modulus 1, remainder 0);
    create index extra_index on cue.extra (extra_at) where extra_n is not null;
    comment on column cue.extra.extra_at is 'It''s a time.';
    grant select, insert on cue.extra to public;
    create function cue.extra_count() returns bigint language sql as $$ select count(*) from cue.extra $$`)
  const after = (await dumpSchema(pool)).split('\n')
  t.same(
    after.filter(line => !before.includes(line)),
    [
      'create table cue.extra (',
      '  extra_id bigint not null generated always as identity,',
      '  extra_at timestamp with time zone not null default now(),',
      '  extra_n integer,',
      '  constraint extra_pkey PRIMARY KEY (extra_id),',
      '  constraint extra_extra_n_check CHECK (extra_n > 0)',
      ') partition by HASH (extra_id);',
      'CREATE INDEX extra_index ON ONLY cue.extra USING btree (extra_at) WHERE (extra_n IS NOT NULL);',
      "comment on column cue.extra.extra_at is 'It''s a time.';",
      'grant insert, select on cue.extra to public;',
      'CREATE OR REPLACE FUNCTION cue.extra_count()',
      'AS $function$ select count(*) from cue.extra $function$;',
      'grant execute on function cue.extra_count() to public;'
    ]
  )
})

t.test('two databases produce the same dump', async t => {
  const { pool: other } = await createDatabase(t)
  t.equal(await dumpSchema(other), await dumpSchema(pool))
})
