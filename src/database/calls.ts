/** Calls SQL functions by name, with named parameters, as prepared statements. */
import type { QueryConfig, QueryResult } from 'pg'
import { isOutdated } from '../errors.ts'
import type { Gate } from './gate.ts'

/** A pool, or one connection. */
export type Queryable = { query: (query: QueryConfig) => Promise<QueryResult> }

/** An array as PostgreSQL reads it. Instants in UTC: writing them in local time, as pg does, takes several times as long. */
export const arrayText = (values: readonly unknown[]): string => `{${values.map(elementText).join()}}`

const elementText = (value: unknown): string => {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`
  if (value instanceof Date) return value.toISOString()
  if (Buffer.isBuffer(value)) return `"\\\\x${value.toString('hex')}"`
  if (typeof value === 'object') throw new TypeError('an array for PostgreSQL holds texts, numbers, booleans, instants or bytes')
  return String(value)
}

/**
 * Makes what calls functions of schema `cue`, on a pool or a connection. With a clock, every function that has a `now` is given the clock's.
 * What is called for an account goes through the gate, if there is one.
 * @param signatures the parameters of each function, without their p_, with blanks between
 */
export const createCalls = <Name extends string>(signatures: Record<Name, string>, db: Queryable, clock?: () => Date, gate?: Gate) => {
  const run = async (name: Name, args: object): Promise<Record<string, unknown>[]> => {
    const given = args as Record<string, unknown>
    const values: unknown[] = []
    let list = ''
    for (const parameter of parametersOf(signatures[name])) {
      const value = parameter === 'now' && clock ? clock() : given[parameter]
      if (value === undefined) continue
      values.push(Array.isArray(value) ? arrayText(value) : value)
      list += `${list && ', '}p_${parameter} => $${values.length}`
    }
    // The name is the whole text, shortened: a server-side prepared statement per set of arguments.
    const text = `select * from cue.${name}(${list})`
    const ask = () => {
      const prepared = db.query({ name: statementName(text), text, values })
      return prepared.catch(error => (isOutdated(error) ? db.query({ text, values }) : Promise.reject(error)))
    }
    const { rows } = await (gate && typeof given.account_id === 'string' ? gate(given.account_id, ask) : ask())
    return rows
  }
  return {
    /** All rows. */
    rows:
      <A extends object, R>(name: Name) =>
      async (args: A) =>
        (await run(name, args)) as R[],
    /** The only row. */
    row:
      <A extends object, R>(name: Name) =>
      async (args: A) =>
        (await run(name, args))[0] as R,
    /** The value of a function that returns one. */
    value:
      <A extends object, R = void>(name: Name) =>
      async (args: A) =>
        (await run(name, args))[0]?.[name] as R,
    /** The values of a function that returns a set of them. */
    values:
      <A extends object, R>(name: Name) =>
      async (args: A) =>
        (await run(name, args)).map(r => r[name]) as R[]
  }
}

const split = new Map<string, string[]>()
const parametersOf = (signature: string): string[] => {
  let parameters = split.get(signature)
  if (!parameters) {
    parameters = signature.split(' ').filter(Boolean)
    split.set(signature, parameters)
  }
  return parameters
}

const statementNames = new Map<string, string>()

/** PostgreSQL cuts identifiers at 63 bytes, so statements are numbered. */
const statementName = (text: string): string => {
  let name = statementNames.get(text)
  if (!name) {
    name = `f${statementNames.size}`
    statementNames.set(text, name)
  }
  return name
}
