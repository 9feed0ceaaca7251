import type pg from 'pg'
import { type Config, ConfigError } from '../config.ts'
import { functions } from '../database/functions.ts'

/**
 * Checks that the database has all functions this release calls, by name and arguments. After a migration by another release, calls would
 * otherwise fail one by one.
 * @throws {ConfigError} naming the missing functions
 */
export const requireFunctions = async (db: pg.Pool, { migrate }: Pick<Config, 'migrate'>) => {
  const { rows } = await db.query<{ name: string; arguments: string[]; required: number }>(
    `select proname as name, pronargs - pronargdefaults as required,
            array(select name from unnest(proargnames, proargmodes) with ordinality as a (name, mode, place)
                   where mode is null or mode in ('i', 'b', 'v') order by place) as arguments
       from pg_proc where pronamespace = to_regnamespace('cue')`
  )
  const isCallable = ([name, [, signature]]: [string, readonly [string, string, ...unknown[]]]) => {
    const parameters = signature
      .split(' ')
      .filter(Boolean)
      .map(parameter => `p_${parameter}`)
    return rows.some(
      found =>
        found.name === name &&
        parameters.every(parameter => found.arguments.includes(parameter)) &&
        found.arguments.slice(0, found.required).every(parameter => parameters.includes(parameter))
    )
  }
  const missing = Object.entries(functions).filter(entry => !isCallable(entry))
  if (missing.length === 0) return
  if (!migrate) throw new ConfigError('MIGRATE is off, and the database does not match this release: run `npm run migrate`')
  const names = missing
    .slice(0, 3)
    .map(([name]) => name)
    .join(', ')
  throw new ConfigError(
    `The database was migrated by a newer release, whose functions this one cannot call (${names}): start the newer release`
  )
}
