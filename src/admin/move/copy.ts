/** Copying and catching up, while the source works as ever. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { nameOf, read, readOne } from '../database.ts'
import type { Both } from './both.ts'
import { alignPartitions } from './tables.ts'

const lookEveryMs = 250
const sayEveryMs = 5000
/** So little is applied within the pause. */
const smallLag = 2 ** 20

/** The slot comes first: a subscription that makes its own would wait for itself where both databases are on one server. */
export const copy = async ({ from, to, source, sourceForTarget, say }: Both, tables: string[]): Promise<void> => {
  say(`Publishing ${tables.length} tables of ${nameOf(source)}, and keeping its WAL from here on`)
  await from.query('drop publication if exists pgcue_move')
  await from.query(`create publication pgcue_move for table ${tables.join(', ')} with (publish_via_partition_root = true)`)
  await from.query("select pg_create_logical_replication_slot('pgcue_move', 'pgoutput')")
  say('Subscribing to them: the copy begins')
  // If it fails, the server's log has the error without the statement, which contains a password. Only superusers may ask for that.
  await to.query('set log_min_error_statement = panic').catch(() => {})
  await to.query(
    `create subscription pgcue_move connection ${pg.escapeLiteral(sourceForTarget)} publication pgcue_move
       with (create_slot = false, slot_name = 'pgcue_move', copy_data = true)`
  )
  await to.query('reset log_min_error_statement').catch(() => {})
}

/** Looks again and again until `look` is done with it; says where it is every few seconds. */
const follow = async ({ signal, say, from, to }: Both, look: () => Promise<string | undefined>): Promise<void> => {
  for (let saidAt = performance.now(); ; ) {
    signal.throwIfAborted()
    const progress = await look()
    if (progress === undefined) return
    if (performance.now() - saidAt >= sayEveryMs) {
      saidAt = performance.now()
      say(`  ${progress}`)
      await alignPartitions(from, to)
    }
    await delay(lookEveryMs, undefined, { signal }).catch(() => {})
  }
}

export const waitUntilCopied = async (both: Both): Promise<void> => {
  const { to, say } = both
  const startedAt = performance.now()
  await follow(both, async () => {
    const { ready, total, size } = await readOne<{ ready: number; total: number; size: string }>(
      to,
      `select count(*) filter (where srsubstate = 'r')::int as ready, count(*)::int as total, pg_size_pretty(pg_database_size(current_database())) as size
         from pg_subscription_rel r join pg_subscription s on s.oid = r.srsubid where s.subname = 'pgcue_move'`
    )
    return ready === total ? undefined : `${ready} of ${total} tables are copied; the new database has ${size}`
  })
  say(`Copied after ${seconds(startedAt)} s; collecting statistics`)
  await to.query('vacuum (analyze)')
}

export const waitUntilCaughtUp = async (both: Both): Promise<void> => {
  both.say('Catching up')
  await follow(both, async () => {
    const { lag } = await readLag(both)
    return lag <= smallLag ? undefined : `${Math.round(lag / 2 ** 20)} MB behind`
  })
}

/** Bytes of WAL that the target has not stored for good. */
export const readLag = async ({ from, to }: Both, since?: string): Promise<{ lag: number }> => {
  const [slot] = await read<{ lag: number }>(
    from,
    `select pg_wal_lsn_diff(coalesce($1::pg_lsn, pg_current_wal_lsn()), confirmed_flush_lsn)::float8 as lag
       from pg_replication_slots where slot_name = 'pgcue_move' and database = current_database()`,
    [since ?? null]
  )
  if (!slot) throw new Error('the replication slot pgcue_move is gone from the source: abort the move and begin again')
  const [worker] = await read<{ is_enabled: boolean }>(
    to,
    "select subenabled as is_enabled from pg_subscription where subname = 'pgcue_move'"
  )
  if (!worker?.is_enabled) throw new Error('the subscription pgcue_move was disabled or removed: abort the move and begin again')
  return slot
}

export const seconds = (since: number): string => ((performance.now() - since) / 1000).toFixed(1)
