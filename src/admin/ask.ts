/** One question to all cells. A cell that does not answer is listed with the reason, never left out. */
import { read, reasonOf, withClient } from './database.ts'

export type Answer<T> = { cell: number; rows?: T[]; error?: string }

const answerMs = 60_000

/** @param query returns rows of one column of JSON */
export const askCells = async <T>(urls: readonly string[], query: string): Promise<Answer<T>[]> => {
  const answers = await askCitus<T>(urls[0]!, query).catch(() => new Map<number, T[]>())
  return Promise.all(urls.map((url, index) => answerOf<T>(url, index + 1, query, answers.get(index + 1))))
}

const answerOf = async <T>(url: string, cell: number, query: string, cached: T[] | undefined): Promise<Answer<T>> => {
  if (cached) return { cell, rows: cached }
  try {
    const rows = await withClient(url, async client => {
      await client.query(`set statement_timeout = ${answerMs}`)
      return read<Record<string, T>>(client, query)
    })
    return { cell, rows: rows.map(row => Object.values(row)[0]!) }
  } catch (error) {
    return { cell, error: reasonOf(error) }
  }
}

/** Where the home cell coordinates a Citus cluster, its nodes are asked through it; those that do not answer are asked directly, too. */
const askCitus = async <T>(home: string, query: string): Promise<Map<number, T[]>> =>
  withClient(home, async client => {
    await client.query(`set statement_timeout = ${answerMs}`)
    const [citus] = await read(client, "select from pg_extension where extname = 'citus'")
    if (!citus) return new Map()
    // A cell that has moved, or is being copied, is there twice.
    const nodes = await read<{ success: boolean; result: string }>(client, 'select success, result from run_command_on_all_nodes($1)', [
      `select json_build_object('cell', (select id from cue.cell),
         'is_here', to_regnamespace('pgcue_copy') is null and not exists (select from pg_trigger where tgname = 'cell_has_moved'),
         'rows', (select coalesce(json_agg(q.one), '[]') from (${query}) q (one)))`
    ])
    const answers = nodes.flatMap(({ success, result }) =>
      success ? (JSON.parse(result) as { cell: number; is_here: boolean; rows: T[] }) : []
    )
    return new Map(answers.filter(({ is_here }) => is_here).map(({ cell, rows }) => [cell, rows]))
  })
