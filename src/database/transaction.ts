/** Transactions that begin with their first statement. */
import type pg from 'pg'
import { changedNothing } from '../errors.ts'
import { createFunctions, type Functions } from './functions.ts'
import type { Turns } from './turns.ts'

type Begun = { fn: Functions; end: (command: 'commit' | 'rollback') => Promise<void> }

export type Transaction = {
  /** The SQL functions. The first call begins the transaction; one that fails rolls it back, and the next begins another. */
  fn: Functions
  /** Commits; `last` is called within the transaction, if one was begun. */
  commit: (last: (fn: Functions) => Promise<unknown>) => Promise<void>
  /** Rolls back whatever was begun. */
  rollback: () => Promise<void>
}

type Options = {
  clock?: () => Date
  /** Wraps the functions of each transaction. */
  trace?: (fn: Functions) => Functions
}

/** Opens connections of the pool within an account's limits. */
export const createTransactions = (pool: pg.Pool, limits: Turns, { clock, trace = fn => fn }: Options = {}) => {
  const begin = (account_id: string): Promise<Begun> =>
    new Promise((resolve, reject) => {
      const ended = limits(account_id, async () => {
        const client = await pool.connect()
        let isBroken = true
        try {
          await client.query('begin')
          // Without a name: a prepared statement may be outdated, and within a transaction it cannot be sent again.
          const query = ({ name, ...rest }: pg.QueryConfig) => client.query(rest)
          const command = Promise.withResolvers<'commit' | 'rollback'>()
          const end: Begun['end'] = last => {
            command.resolve(last)
            return ended
          }
          resolve({ fn: createFunctions({ query }, clock), end })
          await client.query(await command.promise)
          isBroken = false
        } finally {
          client.release(isBroken)
        }
      })
      ended.catch(reject)
    })

  /** @param first is called at the beginning of each transaction */
  return (account_id: string, first: (fn: Functions) => Promise<void>): Transaction => {
    let open: Begun | undefined
    const rollback = async () => {
      const former = open
      open = undefined
      await former?.end('rollback').catch(() => {})
    }
    const run = async <T>(call: (fn: Functions) => Promise<T>): Promise<T> => {
      try {
        if (!open) {
          open = await begin(account_id)
          await first(open.fn)
        }
        return await call(open.fn)
      } catch (error) {
        await rollback()
        throw changedNothing(error)
      }
    }
    const bound = (name: keyof Functions) => (args: never) => run(fn => fn[name](args) as Promise<unknown>)
    return {
      fn: trace(new Proxy({} as Functions, { get: (_, name) => bound(name as keyof Functions) })),
      commit: async last => {
        if (!open) return
        await run(last)
        const { end } = open
        open = undefined
        await end('commit')
      },
      rollback
    }
  }
}
