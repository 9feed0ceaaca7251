import type pg from 'pg'

const odd = {
  datestyle: 'German, DMY',
  intervalstyle: 'sql_standard',
  timezone: 'Asia/Kathmandu',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  array_nulls: 'off',
  default_transaction_isolation: 'repeatable read',
  standard_conforming_strings: 'off',
  quote_all_identifiers: 'on',
  client_encoding: 'LATIN1',
  search_path: 'odd',
  statement_timeout: '5s',
  lock_timeout: '1',
  idle_in_transaction_session_timeout: '20',
  idle_session_timeout: '5s'
}

/**
 * Gives a database defaults that change what comes back and how transactions behave, some to it and some to the role in it, and a search path
 * with functions that aren't what they seem.
 */
export const setOddDefaults = async ({ pool, name }: { pool: pg.Pool; name: string }): Promise<void> => {
  await pool.query(`create schema odd;
    create function odd.set_config(text, text, boolean) returns text language sql as $$ select 'odd' $$;
    create function odd.now() returns timestamptz language sql as $$ select timestamptz '1999-01-01 00:00Z' $$`)
  for (const [n, [setting, value]] of Object.entries(odd).entries())
    await pool.query(`alter ${n % 2 ? 'database' : 'role current_user in database'} ${name} set ${setting} = '${value}'`)
}

/** Reads the settings of a session. */
export const settings = `select lower(name) as name, setting from pg_catalog.pg_settings
  where lower(name) = any ('{transaction_isolation,tcp_user_timeout,enable_seqscan,constraint_exclusion,${Object.keys(odd)}}')`

/** Those of the service's sessions; the operator's tool and migrations have no time limits. */
export const expected = {
  datestyle: 'ISO, MDY',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  array_nulls: 'on',
  default_transaction_isolation: 'read committed',
  transaction_isolation: 'read committed',
  standard_conforming_strings: 'on',
  quote_all_identifiers: 'off',
  client_encoding: 'UTF8',
  search_path: 'pg_catalog, pg_temp',
  statement_timeout: '30000',
  lock_timeout: '2000',
  idle_in_transaction_session_timeout: '10000',
  idle_session_timeout: '0',
  tcp_user_timeout: process.platform === 'linux' ? '5000' : '0',
  enable_seqscan: 'off',
  constraint_exclusion: 'off'
}
