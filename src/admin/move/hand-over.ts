/** The pause: from the first lock until replicas may use the target. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Client, read, readOne, withClient } from '../database.ts'
import { type Both, releaseOf } from './both.ts'
import { readLag, waitUntilCaughtUp } from './copy.ts'
import { dropOldPartitions, readTables, type Tables } from './tables.ts'

/** A paused cell refuses writes with 503: rather than longer, it is paused another time. */
const defaultMaxPauseMs = 8000
const tries = 10
/** A lock that is not to be had at once keeps writers waiting; past a second, they may be taken for a deadlock's. */
const lockTimeout = '1300ms'
const betweenTriesMs = 2000
/** Counting larger tables takes longer than a pause should. */
const countedRows = 2_000_000

class NotNow extends Error {}

/** @throws when nothing was handed over, or the source no longer says whether it was */
export const handOver = async (both: Both): Promise<void> => {
  const { cell, from, to, signal, say } = both
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted()
    const pausedAt = performance.now()
    try {
      await closeSource(both, pausedAt)
    } catch (error) {
      await from.query('rollback').catch(() => Promise.reject(error))
      await to.query('rollback')
      await to.query('alter subscription pgcue_move enable')
      const { code, message } = error as Error & { code?: string }
      const mayPass = error instanceof NotNow || code === '55P03' || code === '40P01'
      if (!mayPass || attempt === tries) throw error
      say(`  not yet: ${message}; the cell goes on at the source and is paused again in ${betweenTriesMs / 1000} s`)
      await delay(betweenTriesMs, undefined, { signal }).catch(() => {})
      await waitUntilCaughtUp(both)
      continue
    }
    say('Opening the target')
    await to.query('drop schema if exists pgcue_copy')
    return say(`Cell ${cell} is handed over; writes were paused for ${Math.round(performance.now() - pausedAt)} ms`)
  }
}

const closeSource = async (both: Both, pausedAt: number): Promise<void> => {
  const { from, to, targetForReplicas, maxPauseMs = defaultMaxPauseMs, signal, say } = both
  const tables = await readTables(from)
  const names = [...tables.replicated, ...tables.unlogged]
  if ((await releaseOf(from)) !== (await releaseOf(to)))
    throw new Error('the source was migrated after the copy had begun: abort the move and begin again')
  say('Pausing the cell: locking its tables against writes')
  const estimated = await estimate(from, names)
  await from.query(`begin; set local lock_timeout = '${lockTimeout}'`)
  await from.query(`lock table ${names.join(', ')} in share row exclusive mode`)

  say('Waiting until the target has everything')
  const lsn = await flushWal(both)
  while ((await readLag(both, lsn)).lag > 0) {
    signal.throwIfAborted()
    if (performance.now() - pausedAt > maxPauseMs) throw new NotNow(`the target needs more than ${maxPauseMs / 1000} s to catch up`)
    await delay(10)
  }
  await to.query('alter subscription pgcue_move disable')

  say('Copying sequences and unlogged tables')
  await copySequences(both, tables)
  await copyUnlogged(both, tables)
  await dropOldPartitions(from, to)

  const counted = names.filter(name => (estimated.get(name) ?? 0) <= countedRows)
  say(`Comparing the numbers of rows of ${counted.length} tables`)
  const rows = await compare(both, counted)
  const large = names.filter(name => !counted.includes(name))
  say(`  ${rows} rows in both${large.length > 0 ? `; not counted, as they are large: ${large.join(', ')}` : ''}`)

  signal.throwIfAborted()
  say('Closing the source for good')
  const { name } = await readOne<{ name: string }>(from, 'select current_database() as name')
  await from.query('select cue.leave_cell($1, $2::text[]::regclass[])', [targetForReplicas, [...names, ...(await partitions(from))]])
  await from.query(`alter database ${pg.escapeIdentifier(name)} set default_transaction_read_only = on`)
  await from.query('commit')
}

/**
 * The end of the WAL once all of it is on disk: commits with synchronous_commit = off may not be yet, and nothing is sent before. A commit of
 * our own sees to that.
 */
const flushWal = ({ source }: Both): Promise<string> =>
  withClient(source, async client => {
    await client.query('set synchronous_commit = local')
    await client.query("select pg_logical_emit_message(true, 'pgcue_move', '')")
    return (await readOne<{ lsn: string }>(client, 'select pg_current_wal_lsn()::text as lsn')).lsn
  })

/** Some functions write to partitions by their names. */
const partitions = async (client: Client): Promise<string[]> =>
  (
    await read<{ name: string }>(
      client,
      `select c.oid::regclass::text as name from pg_class c
        where c.relnamespace in ('cue'::regnamespace, 'pgboss'::regnamespace) and c.relispartition and c.relkind = 'r' order by 1`
    )
  ).map(({ name }) => name)

/** A few numbers further: one that was given out and then rolled back counts as used. */
const copySequences = async ({ from, to }: Both, { sequences }: Tables): Promise<void> => {
  const values = sequences.map(name => `select '${name}' as name, last_value::text as value, is_called from ${name}`).join(' union all ')
  for (const { name, value, is_called } of await read<{ name: string; value: string; is_called: boolean }>(from, values)) {
    await to.query('select setval($1::regclass, $2::bigint, $3)', [name, value, is_called])
  }
}

/** As JSON, which keeps every type that they have. */
const copyUnlogged = async ({ from, to }: Both, { unlogged }: Tables): Promise<void> => {
  await to.query('begin')
  for (const name of unlogged) {
    await to.query(`truncate ${name}`)
    await from.query(`declare unlogged no scroll cursor for select to_json(t)::text as row from ${name} t`)
    for (;;) {
      const rows = await read<{ row: string }>(from, 'fetch 1000 from unlogged')
      if (rows.length === 0) break
      await to.query(`insert into ${name} select * from json_populate_recordset(null::${name}, $1::json)`, [
        `[${rows.map(({ row }) => row).join(',')}]`
      ])
    }
    await from.query('close unlogged')
  }
  await to.query('commit')
}

const estimate = async (client: Client, names: string[]): Promise<Map<string, number>> => {
  const rows = await read<{ name: string; rows: number }>(
    client,
    `select t.name, (select sum(greatest(c.reltuples, 0)) from pg_partition_tree(t.name::regclass) p join pg_class c on c.oid = p.relid)::float8 as rows
       from unnest($1::text[]) as t (name)`,
    [names]
  )
  return new Map(rows.map(({ name, rows }) => [name, rows]))
}

/** @throws naming the tables that differ. @returns the sum */
const compare = async ({ from, to }: Both, names: string[]): Promise<number> => {
  const query = names.map(name => `select '${name}' as name, count(*)::float8 as rows from ${name}`).join(' union all ')
  const [here, there] = await Promise.all([from, to].map(client => read<{ name: string; rows: number }>(client, query)))
  const copied = new Map(there!.map(({ name, rows }) => [name, rows]))
  const different = here!.filter(({ name, rows }) => copied.get(name) !== rows)
  if (different.length > 0)
    throw new Error(
      `rows are missing or too many: ${different.map(({ name, rows }) => `${name} has ${rows} in the source and ${copied.get(name)} in the target`).join('; ')}`
    )
  return here!.reduce((sum, { rows }) => sum + rows, 0)
}
