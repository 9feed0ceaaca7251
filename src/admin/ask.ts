/** One question to all cells. A cell that does not answer is listed with the reason, never left out. */
import { read, reasonOf, withClient } from './database.ts'

export type Answer<T> = { cell: number; rows?: T[]; error?: string }

const answerMs = 60_000

/** @param query returns rows of one column of JSON */
export const askCells = <T>(urls: readonly string[], query: string): Promise<Answer<T>[]> =>
  Promise.all(
    urls.map(async (url, index) => {
      const cell = index + 1
      try {
        const rows = await withClient(url, async client => {
          await client.query(`set statement_timeout = ${answerMs}`)
          return read<Record<string, T>>(client, query)
        })
        return { cell, rows: rows.map(row => Object.values(row)[0]!) }
      } catch (error) {
        return { cell, error: reasonOf(error) }
      }
    })
  )
