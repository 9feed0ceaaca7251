/**
 * Storage used per delivery: bytes of tables, indexes and WAL, with a small payload and with a large incompressible one, and by the peers with
 * the small one. A peer's WAL includes that of enqueuing, as ours includes that of firing.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { addAccounts, addCues, payload, schedule, settled } from './cues.ts'
import { type Figure, figuresOf } from './figures.ts'
import type { Measure, Options } from './measure.ts'
import { nameOf, peers, startPeer } from './peers/peers.ts'
import type { Stage } from './stage.ts'

const rounds = 10
const large = `"${randomBytes(75_000).toString('base64').slice(0, 99_998)}"`

type Sizes = { table: number; index: number; wal: number }

/** Sizes of all tables of a schema, including TOAST, and of their indexes, and the WAL position. */
const sizes = async (pool: pg.Pool, schema = 'cue'): Promise<Sizes> => {
  const { rows } = await pool.query(
    `select sum(pg_table_size(oid))::float8 as table, sum(pg_indexes_size(oid))::float8 as index,
            pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal
       from pg_class where relnamespace = $1::regnamespace and relkind = 'r'`,
    [schema]
  )
  return rows[0]
}

const measure = async (stage: Stage, { runs, n }: Options): Promise<Figure[]> => {
  const figures: Figure[] = []
  const perRound = Math.ceil(n / rounds)
  for (const [name, body] of Object.entries({ small: payload, large })) {
    const replica = await stage.startReplica(`storage_${name}`)
    const accounts = await addAccounts(replica.pool, 10)
    const cueIds = await addCues(replica.pool, { accounts, count: perRound, callbackUrl: `${stage.receiver.url}/hook`, body })
    await replica.pool.query('vacuum full cue.cues') // excludes what creating the cues has left
    await delay(1000)
    const left: Record<string, number>[] = []
    for (let run = 0; run < runs; run++) {
      const before = await sizes(replica.pool)
      let wal = 0
      for (let round = 0; round < rounds; round++) {
        await stage.receiver.reset()
        await schedule(replica.pool, cueIds, Array<number>(perRound).fill(Date.now() + 2500))
        const scheduled = await sizes(replica.pool)
        await stage.receiver.wait(perRound)
        await settled(replica.pool)
        wal += (await sizes(replica.pool)).wal - scheduled.wal
      }
      left.push(perDelivery(before, { ...(await sizes(replica.pool)), wal: before.wal + wal }, perRound))
    }
    await replica.stop()
    figures.push(...figuresOf(left, `${name}_`))
  }
  for (const peer of Object.keys(peers)) figures.push(...figuresOf(await measurePeer(stage, peer, runs, perRound), `${nameOf(peer)}_`))
  return figures
}

const perDelivery = (before: Sizes, after: Sizes, perRound: number) => {
  const each = (name: keyof Sizes) => Math.round((after[name] - before[name]) / (rounds * perRound))
  return { table_bytes: each('table'), index_bytes: each('index'), wal_bytes: each('wal') }
}

const measurePeer = async (stage: Stage, name: string, runs: number, perRound: number) => {
  const { contender, pool, enqueueHerd, close } = await startPeer(stage, perRound, name, `storage_${nameOf(name)}`)
  await delay(1000)
  const left: Record<string, number>[] = []
  for (let run = 0; run < runs; run++) {
    const before = await sizes(pool, peers[name]!.schema)
    for (let round = 0; round < rounds; round++) {
      await stage.receiver.reset()
      await enqueueHerd(Date.now() + 1000)
      await stage.receiver.wait(perRound)
      await contender.settled()
    }
    left.push(perDelivery(before, await sizes(pool, peers[name]!.schema), perRound))
  }
  await close()
  return left
}

export default {
  title: n =>
    `what ${n} deliveries leave behind, each: payloads of ${payload.length} and of ${large.length} bytes, ${rounds} slots a cue; peers`,
  runs: 3,
  n: 2000,
  measure
} satisfies Measure
