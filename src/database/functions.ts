/**
 * The SQL functions, bound to a pool or a connection. Their names, arguments and results are generated from the catalog, so a changed argument
 * or column breaks the type check. Arguments are named as in SQL, without `p_`. Other members are ignored, so a request's body, path and caller
 * can be spread into one object. An undefined argument keeps its default.
 */
import type { QueryConfig, QueryResult } from 'pg'
import { changedNothing, isOutdated, isRefused } from '../errors.ts'
import { type Functions, functions } from './functions.types.ts'
import type { Turns } from './turns.ts'

export type * from './functions.types.ts'
export { functions } from './functions.types.ts'

/** A pool, or one connection. */
export type Queryable = { query: (query: QueryConfig) => Promise<QueryResult> }

type Row = Record<string, unknown>
type Kind = (typeof functions)[keyof typeof functions][0]

/** Converts the rows of a call, by the kind of the function's result. */
const results: Record<Kind, (rows: Row[], name: string) => unknown> = {
  rows: rows => rows,
  row: rows => rows[0],
  value: (rows, name) => rows[0]?.[name],
  values: (rows, name) => rows.map(row => row[name])
}

/** Binds the functions of this release, like `bindFunctions`. */
export const createFunctions = (db: Queryable, clock?: () => Date, limits?: Turns): Functions =>
  bindFunctions(functions, db, clock, limits) as Functions

/**
 * Binds functions to a pool or a connection, under their names in camel case. With a clock, which tests have, functions with a `p_now` get its
 * time. Calls with an account go through the connection limits, if given. A statement whose prepared plan is outdated is sent once more.
 */
export const bindFunctions = (
  table: Record<string, readonly [Kind, string, 'stable'?]>,
  db: Queryable,
  clock?: () => Date,
  limits?: Turns
): object => {
  const bind = (name: string, kind: Kind, parameters: string[], isChange: boolean) => async (args: Row) => {
    const values: unknown[] = []
    let list = ''
    for (const parameter of parameters) {
      const value = parameter === 'now' && clock ? clock() : args[parameter]
      if (value === undefined) continue
      values.push(value)
      list += `${list && ', '}p_${parameter} => $${values.length}`
    }
    // The name stands for the whole text: one prepared statement per set of arguments.
    const text = `select * from cue.${name}(${list})`
    const call = () => {
      const prepared = db.query({ name: statementName(text), text, values })
      return prepared.catch(error => (isOutdated(error) ? db.query({ text, values }) : Promise.reject(error)))
    }
    try {
      const { rows } = await (limits && typeof args.account_id === 'string' ? limits(args.account_id, call) : call())
      return results[kind](rows, name)
    } catch (error) {
      // What a request reads after a change says nothing about that.
      throw isChange && isRefused(error) ? changedNothing(error) : error
    }
  }
  const members = Object.entries(table).map(([name, [kind, parameters, volatility]]) => [
    camelCase(name),
    bind(name, kind, parameters.split(' ').filter(Boolean), volatility !== 'stable')
  ])
  return Object.fromEntries(members)
}

const camelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

const statementNames = new Map<string, string>()

/** A number, because PostgreSQL truncates identifiers to 63 bytes. */
const statementName = (text: string): string => {
  let name = statementNames.get(text)
  if (!name) {
    name = `f${statementNames.size}`
    statementNames.set(text, name)
  }
  return name
}
