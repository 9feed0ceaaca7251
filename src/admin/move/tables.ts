/** Which tables of a cell are replicated, which are copied while it is paused, and which stay as they are in each database. */
import { type Client, read } from '../database.ts'

export type Tables = {
  /** In the order in which the service locks them. */
  replicated: string[]
  /** Logical replication leaves unlogged tables out. */
  unlogged: string[]
  sequences: string[]
}

/** Made by migrations, statistics, or what marks the move. */
const excluded = ['cue.migrations', 'cue.cell', 'cue.moved', 'pgboss.queue_stats']
const lockedFirst = ['cue.accounts', 'cue.cues', 'cue.cue_runs', 'cue.payloads', 'cue.executions']

type Relation = { name: string; kind: string; is_unlogged: boolean; is_partition: boolean; has_identity: boolean }

/** @throws when a table could not be replicated, or is Citus' */
export const readTables = async (client: Client): Promise<Tables> => {
  const relations = await read<Relation>(
    client,
    `select c.oid::regclass::text as name, c.relkind as kind, c.relpersistence = 'u' as is_unlogged, c.relispartition as is_partition,
            c.relreplident = 'f' or exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and i.indisvalid) as has_identity
       from pg_class c
      where c.relnamespace in (to_regnamespace('cue'), to_regnamespace('pgboss')) and c.relkind in ('r', 'p', 'S')
      order by array_position($1, c.oid::regclass::text), 1`,
    [lockedFirst]
  )
  const distributed = await citusTables(client)
  const tables = relations.filter(({ kind, name, is_partition }) => kind !== 'S' && !is_partition && !excluded.includes(name))
  const bare = tables.filter(({ has_identity, is_unlogged }) => !has_identity && !is_unlogged)
  if (bare.length > 0) throw new Error(`${bare.map(({ name }) => name).join(', ')}: a table without a primary key cannot be moved`)
  const moving = tables.filter(({ name }) => !distributed.includes(name))
  return {
    replicated: moving.filter(({ is_unlogged }) => !is_unlogged).map(({ name }) => name),
    unlogged: moving.filter(({ is_unlogged }) => is_unlogged).map(({ name }) => name),
    sequences: relations.filter(({ kind }) => kind === 'S').map(({ name }) => name)
  }
}

/** Tables that Citus manages: it copies reference tables to nodes that it knows. */
export const citusTables = async (client: Client): Promise<string[]> => {
  const [citus] = await read(client, "select from pg_extension where extname = 'citus'")
  if (!citus) return []
  return (await read<{ name: string }>(client, 'select logicalrelid::text as name from pg_dist_partition')).map(({ name }) => name)
}

/** The operator's own tables, which a move leaves behind. */
export const foreignTables = async (client: Client): Promise<string[]> => {
  const rows = await read<{ name: string }>(
    client,
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p') and not c.relispartition and n.nspname !~ '^pg_|^information_schema$|^citus|^columnar'
        and n.nspname not in ('cue', 'pgboss', 'pgcue_copy')
        and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
      order by 1`
  )
  return rows.map(({ name }) => name)
}

/** The periods that have a partition: months of executions, such as 2026_11, and days of events, such as 2026_11_28. */
const readPeriods = async (client: Client, parent: 'executions' | 'events'): Promise<string[]> => {
  const rows = await read<{ period: string }>(
    client,
    "select substring(inhrelid::regclass::text from '\\d{4}(?:_\\d\\d)+$') as period from pg_inherits where inhparent = $1::regclass order by 1",
    [`cue.${parent}`]
  )
  return rows.map(({ period }) => period)
}

/** Makes the partitions that the source has and the target lacks: without them nothing could be applied there. */
export const alignPartitions = async (source: Client, target: Client): Promise<void> => {
  const missing = async (parent: 'executions' | 'events') => {
    const there = new Set(await readPeriods(target, parent))
    return (await readPeriods(source, parent)).filter(period => !there.has(period)).map(period => period.replaceAll('_', '-'))
  }
  for (const month of await missing('executions')) await target.query(`select cue.maintain_partitions(0, '${month}-01T00:00:00Z')`)
  for (const day of await missing('events')) await target.query(`select cue.add_event_day('${day}')`)
}

/** Drops the months and days that retention has dropped from the source meanwhile. */
export const dropOldPartitions = async (source: Client, target: Client): Promise<void> => {
  for (const parent of ['executions', 'events'] as const) {
    const [oldest = ''] = await readPeriods(source, parent)
    for (const period of await readPeriods(target, parent)) {
      if (period >= oldest) continue
      await target.query(
        parent === 'events'
          ? `drop table cue.events_${period}`
          : `drop table cue.executions_${period}, cue.attempts_${period}, cue.fixed_requests_${period}`
      )
    }
  }
}
