/**
 * Storage used per delivery: bytes of tables, indexes and WAL, with a small payload and with a large incompressible one, and by the peers with
 * the small one. A peer's WAL includes that of enqueuing, as ours includes that of firing.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type Figures, prefixed, times } from '../stage/figures.ts'
import { addAccounts, addCues, payload, schedule, settled } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { nameOf, startPeer } from './peers/compare.ts'
import { peers } from './peers/peers.ts'
import { arrived, type Measure, startService } from './service.ts'

const rounds = 10
const large = `"${randomBytes(75_000).toString('base64').slice(0, 99_998)}"`

/** Sizes of all tables of a schema, including TOAST, and of their indexes, and the WAL position. */
const sizesOf = async (pool: pg.Pool, schema: string): Promise<Record<'table' | 'index' | 'wal', number>> => {
  const { rows } = await pool.query(
    `select sum(pg_table_size(oid))::float8 as table, sum(pg_indexes_size(oid))::float8 as index,
            pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal
       from pg_class where relnamespace = $1::regnamespace and relkind = 'r'`,
    [schema]
  )
  return rows[0]
}

type Contestant = {
  pool: pg.Pool
  schema: string
  /** Returns the WAL position from which on the round counts. */
  begin: () => Promise<number>
  settled: () => Promise<unknown>
}

const measure = async (stage: Stage, { pool, schema, begin, settled }: Contestant, runs: number, perRound: number, prefix: string) => {
  await delay(1000)
  return times(runs, async () => {
    const before = await sizesOf(pool, schema)
    let wal = 0
    for (let round = 0; round < rounds; round++) {
      await stage.receiver.reset()
      const from = await begin()
      await arrived(stage, perRound)
      await settled()
      wal += (await sizesOf(pool, schema)).wal - from
    }
    const after = await sizesOf(pool, schema)
    const each = (bytes: number) => Math.round(bytes / (rounds * perRound))
    const figures = { table_bytes: each(after.table - before.table), index_bytes: each(after.index - before.index), wal_bytes: each(wal) }
    return prefixed(`${prefix}_`, figures)
  })
}

export const storage: Measure = {
  title: n =>
    `what ${n} deliveries leave behind, each: payloads of ${payload.length} and of ${large.length} bytes, ${rounds} slots a cue; peers`,
  runs: 3,
  n: 2000,
  measure: async (stage, { runs, n }) => {
    const figures: Figures[] = Array.from({ length: runs }, () => ({}))
    const count = Math.ceil(n / rounds)
    const add = async (contestant: Contestant, prefix: string) =>
      (await measure(stage, contestant, runs, count, prefix)).forEach((run, nth) => void Object.assign(figures[nth]!, run))
    for (const [name, body] of Object.entries({ small: payload, large })) {
      const { pool, replica } = await startService(stage, `storage_${name}`)
      const cueIds = await addCues(pool, { accounts: await addAccounts(pool, 10), count, hook: `${stage.receiver.url}/hook`, body })
      await pool.query('vacuum full cue.cues') // excludes what creating the cues has left
      const begin = async () => {
        await schedule(pool, cueIds, Array<number>(count).fill(Date.now() + 2500))
        return (await sizesOf(pool, 'cue')).wal
      }
      await add({ pool, schema: 'cue', begin, settled: () => settled(pool) }, name)
      await replica.kill()
    }
    for (const [name, { schema }] of Object.entries(peers)) {
      const { pool, enqueue, settled, kill } = await startPeer(stage, count, name)
      const begin = async () => {
        const { wal } = await sizesOf(pool, schema)
        await enqueue(Date.now() + 1000)
        return wal
      }
      await add({ pool, schema, begin, settled }, nameOf(name))
      await kill()
    }
    return figures
  }
}
