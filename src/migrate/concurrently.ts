/**
 * Migrations that run outside a transaction, marked by their first line: `-- no-transaction`. Each statement commits by itself and must be
 * repeatable, because an interrupted migration starts again with its first statement. An index left unfinished by a crash is dropped and
 * built again.
 */
import type pg from 'pg'
import { run } from './reload.ts'
import { type File, type Statement, statementsOf } from './sql-files.ts'

type Retry = (work: () => Promise<unknown>) => Promise<unknown>
type Index = { unique: string; name: string; schema: string; table: string; definition: string }

export const isOutsideTransaction = ({ text }: File): boolean => text.startsWith('-- no-transaction\n')

export const runOutsideTransaction = async (client: pg.Client, file: File, retry: Retry, log: (line: string) => void) => {
  for (const statement of statementsOf(file)) {
    const index = indexOf(statement)
    if (index) await buildIndex(client, file, statement, index, retry, log)
    else await retry(() => run(client, file, statement))
  }
}

const indexOf = ({ text }: Statement): Index | undefined => {
  const match = /^create (unique )?index concurrently (\w+) on (\w+)\.(\w+) ([^;]+)/.exec(text)
  if (!match) return
  const [, unique = '', name, schema, table, definition] = match as unknown as [string, string | undefined, string, string, string, string]
  return { unique, name, schema, table, definition }
}

/** PostgreSQL cannot build an index concurrently on a partitioned table, so it is built on each partition, and those are attached. */
const buildIndex = async (client: pg.Client, file: File, statement: Statement, index: Index, retry: Retry, log: (line: string) => void) => {
  const { unique, name, schema, table, definition } = index
  const step = (text: string) => run(client, file, { text, line: statement.line })
  const build = async (partName: string, part: string) => {
    const validity = await validityOf(client, schema, partName)
    if (validity) return
    if (validity === false) await step(`drop index concurrently ${schema}.${partName}`)
    log(`Building index ${schema}.${partName}: no writer waits for it, and it waits for transactions that are open`)
    await step(`create ${unique}index concurrently ${partName} on ${schema}.${part} ${definition}`)
  }
  const patiently = (partName: string, part: string) => retry(() => withoutLockTimeout(client, () => build(partName, part)))

  if (!(await isPartitioned(client, schema, table))) return patiently(name, table)
  if (await validityOf(client, schema, name)) return
  await retry(() => step(`create ${unique}index if not exists ${name} on only ${schema}.${table} ${definition}`))
  for (const part of await partitionsWithout(client, index)) {
    const partName = `${part}_${name}`.slice(0, 63)
    await patiently(partName, part)
    await retry(() => step(`alter index ${schema}.${name} attach partition ${schema}.${partName}`))
  }
}

/** Building concurrently blocks no writer while it waits, so it needs no lock timeout. */
const withoutLockTimeout = async (client: pg.Client, work: () => Promise<unknown>) => {
  const { rows } = await client.query("select current_setting('lock_timeout') as former, set_config('lock_timeout', '0', false)")
  try {
    await work()
  } finally {
    await client.query("select set_config('lock_timeout', $1, false)", [rows[0].former])
  }
}

const isPartitioned = async (client: pg.Client, schema: string, table: string): Promise<boolean> => {
  const { rows } = await client.query("select relkind = 'p' as it from pg_class where oid = to_regclass($1)", [`${schema}.${table}`])
  return rows[0]?.it ?? false
}

/** Returns whether the index is valid; undefined if it doesn't exist. */
const validityOf = async (client: pg.Client, schema: string, name: string): Promise<boolean | undefined> => {
  const { rows } = await client.query('select indisvalid as it from pg_index where indexrelid = to_regclass($1)', [`${schema}.${name}`])
  return rows[0]?.it
}

/** Partitions added meanwhile get the index when they are attached. */
const partitionsWithout = async (client: pg.Client, { schema, table, name }: Index): Promise<string[]> => {
  const { rows } = await client.query(
    `select c.relname as name from pg_inherits p join pg_class c on c.oid = p.inhrelid
      where p.inhparent = to_regclass($1)
        and not exists (select from pg_inherits i join pg_index x on x.indexrelid = i.inhrelid
                         where i.inhparent = to_regclass($2) and x.indrelid = c.oid)
      order by 1`,
    [`${schema}.${table}`, `${schema}.${name}`]
  )
  return rows.map(row => row.name)
}
