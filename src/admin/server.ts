/** A server and its database, as far as a cell needs to know. */
import { type Client, nameOf, readOne } from './database.ts'

export type Server = Awaited<ReturnType<typeof lookAt>>

type Found = {
  version: string
  major: number
  encoding: string
  is_read_only: boolean
  wal_level: string
  max_connections: number
  is_empty: boolean
  is_copy: boolean
  has_moved: boolean
  database: string
}

export const lookAt = async (client: Client) => {
  const server = await readOne<Found>(
    client,
    `select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major,
            getdatabaseencoding() as encoding, pg_is_in_recovery() as is_read_only, current_setting('wal_level') as wal_level,
            current_setting('max_connections')::int as max_connections,
            to_regnamespace('cue') is null and to_regnamespace('pgboss') is null as is_empty,
            to_regnamespace('pgcue_copy') is not null as is_copy, to_regclass('cue.moved') is not null as has_moved,
            (select system_identifier from pg_control_system()) || ' ' || (select oid from pg_database where datname = current_database()) as database`
  )
  const isCell = (await readOne<{ it: boolean }>(client, "select to_regclass('cue.cell') is not null as it")).it
  const objects = isCell
    ? await readOne<{ cell: number | null; accounts: number }>(
        client,
        'select (select id from cue.cell) as cell, (select count(*)::int from (select from cue.accounts limit 1) a) as accounts'
      )
    : { cell: null, accounts: 0 }
  const moved_to = server.has_moved
    ? (await readOne<{ url: string | null }>(client, 'select (select to_url from cue.moved) as url')).url
    : null
  return { ...server, ...objects, moved_to }
}

/** @throws when it cannot carry a cell */
export const requireServer = ({ version, major, encoding, is_read_only }: Server, url: string): void => {
  const refuse = (why: string) => {
    throw new Error(`${nameOf(url)} ${why}`)
  }
  if (major < 15 || major > 18) refuse(`is PostgreSQL ${version}; 15 to 18 are supported`)
  if (encoding !== 'UTF8') refuse(`has the encoding ${encoding}; UTF8 is required`)
  if (is_read_only) refuse('is a standby: it is read-only')
}
