/** Removes what a move leaves in the two databases: after it, or instead of it. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Client, nameOf, read, readOne } from '../database.ts'
import type { Both } from './both.ts'

/** Nothing of the target is dropped unless it is marked as a copy. */
export const clear = async (both: Both): Promise<void> => {
  const { from, to, source, target, say } = both
  await unsubscribe(both)
  const { is_copy } = await readOne<{ is_copy: boolean }>(to, "select to_regnamespace('pgcue_copy') is not null as is_copy")
  if (is_copy) {
    say(`Dropping the incomplete copy in ${nameOf(target)}`)
    // The mark goes last: what is killed here is cleared by the next run.
    await to.query('drop schema if exists pgboss cascade')
    await to.query('drop schema if exists cue cascade')
    await to.query('drop schema if exists pgcue_copy')
  }
  say(`Removing publication and slot from ${nameOf(source)}`)
  await unpublish(from)
}

/** After the source was closed. Safe to repeat. */
export const finish = async (both: Both): Promise<void> => {
  const { from, to, source, say } = both
  await to.query('drop schema if exists pgcue_copy')
  say(`Ending the connections to ${nameOf(source)}: replicas go to the new server`)
  await endSessions(both)
  await unsubscribe(both)
  say('Removing publication and slot')
  await unpublish(from)
}

/** Sessions from before the move would still read. Twice, for those that were being opened. */
const endSessions = async ({ from, say }: Both): Promise<void> => {
  for (let i = 0; i < 2; i++) {
    const sessions = await read<{ pid: number; name: string }>(
      from,
      `select pid, application_name as name from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`
    )
    for (const { pid, name } of sessions) {
      await from
        .query('select pg_terminate_backend($1::int)', [pid])
        .catch(error => say(`  ${name} (pid ${pid}) stays connected: ${error.message}`))
    }
    await delay(100)
  }
}

const unsubscribe = async ({ from, to, say }: Both): Promise<void> => {
  const [subscription] = await read<{ oid: number }>(
    to,
    `select s.oid::int8 as oid from pg_subscription s join pg_database d on d.oid = s.subdbid where s.subname = 'pgcue_move' and d.datname = current_database()`
  )
  if (!subscription) return
  say('Removing the subscription')
  await to.query('alter subscription pgcue_move disable')
  // Without its slot it is dropped whether the source answers or not.
  await to.query('alter subscription pgcue_move set (slot_name = none)')
  await to.query('drop subscription pgcue_move')
  await dropSlots(from, `pg\\_${subscription.oid}\\_sync\\_%`)
}

const unpublish = async (client: Client): Promise<void> => {
  await dropSlots(client, 'pgcue\\_move')
  await client.query('drop publication if exists pgcue_move')
}

const dropSlots = async (client: Client, pattern: string): Promise<void> => {
  const slots = await read<{ name: string }>(
    client,
    'select slot_name as name from pg_replication_slots where slot_name like $1 and database = current_database()',
    [pattern]
  )
  for (const { name } of slots) await dropSlot(client, name)
}

const dropTries = 100

/** Its sender may still be leaving. */
const dropSlot = async (client: Client, name: string): Promise<void> => {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query('select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1', [name])
      return
    } catch (error) {
      if ((error as { code?: string }).code !== '55006' || attempt === dropTries) throw error
      await client.query(
        'select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active_pid is not null',
        [name]
      )
      await delay(100)
    }
  }
}
