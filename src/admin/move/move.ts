/**
 * Moves a running cell to another server. PostgreSQL's logical replication copies it; then one transaction in the source locks its tables, waits
 * until the target has everything, and closes the source for good. Until that commit the source is the cell, whatever fails; from it on, the
 * target is. A schema pgcue_copy keeps replicas out of the target until then, and says that its content may be dropped.
 */
import { assertDirect } from '../../database/listener.ts'
import { migrate } from '../../migrate/migrate.ts'
import { readSources } from '../../migrate/sql-files.ts'
import { type Client, connect, nameOf, read, readOne, withClient } from '../database.ts'
import { lookAt, requireServer, type Server } from '../server.ts'
import { type Both, type Move, releaseOf } from './both.ts'
import { clear, finish } from './clear.ts'
import { copy, waitUntilCaughtUp, waitUntilCopied } from './copy.ts'
import { handOver } from './hand-over.ts'
import { alignPartitions, citusTables, foreignTables, readTables } from './tables.ts'

export const moveCell = async (move: Move): Promise<number> => {
  const { cell, source, target, isAborting, signal, say } = move
  const from = await connect(source)
  const to = await connect(target).catch(async error => {
    await from.end()
    throw error
  })
  const both = { ...move, from, to }
  let state: 'none' | 'begun' | 'closed' = 'none'
  try {
    const servers = { source: await lookAt(from), target: await lookAt(to) }
    const { moved_to } = servers.source
    if (moved_to !== null) {
      if (moved_to !== move.targetForReplicas) throw new Error(`cell ${cell} has moved to ${nameOf(moved_to)} already`)
      if (isAborting) throw new Error(`cell ${cell} has moved: nothing can be aborted. Run the command without --abort to finish`)
      state = 'closed'
    } else if (isAborting) {
      await clear(both)
      say(`Nothing is left of the move; cell ${cell} stays at ${nameOf(source)}`)
      return 0
    } else {
      say(`Checking ${nameOf(source)} and ${nameOf(target)}`)
      await requireMovable(both, servers)
      state = 'begun'
      await prepare(both, servers.target)
      await waitUntilCopied(both)
      await waitUntilCaughtUp(both)
      await handOver(both)
      state = 'closed'
    }
    await finish(both)
    say(`Cell ${cell} is at ${nameOf(target)}. What remains:
1. Replace URL ${cell} in the settings of all replicas. Those that run have followed; those that restart follow for as long as
   the former server says where the cell is.
2. Restart what reaches the cell through a pooler, once that leads to the new server.
3. Back up the new server. When no replica uses the former one any more, remove it.`)
    return 0
  } catch (error) {
    if (state === 'none') throw error
    if (state === 'closed') {
      say(`Cell ${cell} has moved, but not all is cleaned up: run the same command again`)
      throw error
    }
    if (signal.aborted) {
      say('Stopped: removing what the move has left')
      await clear(both)
      say(`Cell ${cell} stays at ${nameOf(source)}`)
      return 130
    }
    const where = await withClient(source, lookAt).catch(() => undefined)
    if (!where) say(`${nameOf(source)} does not answer. When it does, run the same command again`)
    else if (where.moved_to) say(`Cell ${cell} has moved, but not all is cleaned up: run the same command again`)
    else
      say(
        `Cell ${cell} stays at ${nameOf(source)}. Run the same command to go on, or with --abort to remove the copy: until then the source keeps its WAL`
      )
    throw error
  } finally {
    await Promise.all([from.end(), to.end()])
  }
}

/** @throws when one of the two does not fit */
const requireMovable = async (
  { cell, from, to, source, target, say }: Both,
  servers: { source: Server; target: Server }
): Promise<void> => {
  const refuse = (why: string) => {
    throw new Error(why)
  }
  if (servers.source.database === servers.target.database) refuse(`${nameOf(target)} is where cell ${cell} is`)
  requireServer(servers.source, source)
  requireServer(servers.target, target)
  if (servers.source.is_copy) refuse(`${nameOf(source)} is an incomplete copy of a cell`)
  if (servers.source.cell !== cell)
    refuse(`${nameOf(source)} is ${servers.source.cell === null ? 'not a cell' : `cell ${servers.source.cell}`}`)
  if (!servers.target.is_empty && !servers.target.is_copy) refuse(`${nameOf(target)} is not empty: it has the schemas cue or pgboss`)
  if (servers.source.wal_level !== 'logical')
    refuse(`${nameOf(source)} needs wal_level = logical, which takes a restart; it is ${servers.source.wal_level}`)
  for (const [url, server] of [
    [source, servers.source],
    [target, servers.target]
  ] as const)
    if (!server.is_copy) await assertDirect({ databaseUrl: url, listenUrl: url })
  const { release } = readSources()
  if ((await releaseOf(from)) !== release.number) refuse(`${nameOf(source)} has another release than this command: migrate all cells first`)
  // A copy that is under way has what it needs.
  if (!servers.target.is_copy) {
    await requireRoom(from, source, {
      max_replication_slots: 'select count(*) from pg_replication_slots',
      max_wal_senders: 'select count(*) from pg_stat_replication'
    })
    await requireRoom(to, target, {
      max_replication_slots: 'select count(*) from pg_replication_origin',
      max_logical_replication_workers: 'select count(*) from pg_stat_subscription'
    })
  }
  if (servers.target.max_connections < servers.source.max_connections)
    say(`Note: the new server allows ${servers.target.max_connections} connections, the former ${servers.source.max_connections}`)
  const distributed = await citusTables(from)
  if (cell === 1 && distributed.length > 0)
    refuse(`the home cell coordinates Citus tables (${distributed.join(', ')}): undistribute them first`)
  if (distributed.length > 0) say(`Note: ${distributed.join(', ')} stays with Citus: add the new server to it`)
  const foreign = await foreignTables(from)
  if (foreign.length > 0) say(`Note: only the schemas cue and pgboss are moved, not ${foreign.join(', ')}`)
}

/** One for the subscription, and one or more for tables that are being copied. */
const requireRoom = async (client: Client, url: string, used: Record<string, string>): Promise<void> => {
  for (const [name, query] of Object.entries(used)) {
    const { room } = await readOne<{ room: number }>(client, `select current_setting('${name}')::int - (${query}) as room`)
    if (room < 2)
      throw new Error(`${nameOf(url)} needs a higher ${name}: ${room} of it ${room === 1 ? 'is' : 'are'} free, and 2 are required`)
  }
}

/** Makes the target ready and starts to copy, or goes on with a copy that is under way. */
const prepare = async (both: Both, { is_copy, cell: copied }: Server): Promise<void> => {
  const { cell, from, to, target, say, signal } = both
  const { slots } = await readOne<{ slots: number }>(
    from,
    "select count(*)::int as slots from pg_replication_slots where slot_name = 'pgcue_move' and database = current_database()"
  )
  const [subscription] = await read(
    to,
    "select from pg_subscription where subname = 'pgcue_move' and subdbid = (select oid from pg_database where datname = current_database())"
  )
  if (is_copy && copied === cell && subscription && slots === 1) {
    say('Going on with the copy that an earlier run has begun')
    await to.query('alter subscription pgcue_move enable')
    return
  }
  if (is_copy || slots > 0) {
    say('An earlier run has left an incomplete copy: removing it')
    await clear(both)
  }
  const { replicated, unlogged } = await readTables(from)
  say(`Preparing ${nameOf(target)}: schema, partitions`)
  await to.query('create schema pgcue_copy')
  await migrate({ connectionString: target, cell, isCopy: true })
  signal.throwIfAborted()
  const { id, created_at } = await readOne<{ id: number; created_at: string }>(from, 'select id, created_at::text from cue.cell')
  await to.query(`truncate ${[...replicated, ...unlogged, 'cue.cell'].join(', ')}`)
  await to.query('insert into cue.cell (id, created_at) values ($1, $2)', [id, created_at])
  await alignPartitions(from, to)
  signal.throwIfAborted()
  await copy(both, replicated)
}
