/** What each cell is and how it is doing. */
import type { Output } from '../cli/output.ts'
import { judge } from '../health/check.ts'
import { type Answer, askCells } from './ask.ts'
import { nameOf } from './database.ts'

type Found = {
  cell: number
  postgres: string
  size_bytes: number
  accounts: number
  release: number
  has_moved: boolean
  is_moving: boolean
  health: Parameters<typeof judge>[0]
  now: string
}

/** One row of JSON, from a database of any release with cells. */
const query = `
  select json_build_object(
    'cell', (select id from cue.cell), 'postgres', current_setting('server_version'), 'size_bytes', pg_database_size(current_database()),
    'accounts', (select count(*) from cue.accounts),
    'release', (select split_part(checksum, ' ', 1)::int from cue.migrations where id = 0),
    'has_moved', exists (select from pg_trigger where tgname = 'cell_has_moved'),
    'is_moving', exists (select from pg_publication where pubname = 'pgcue_move'),
    'health', (select to_json(h) from cue.service_health() h), 'now', now())`

export const listCells = async (urls: readonly string[], out: Output): Promise<number> => {
  const cells = (await askCells<Found>(urls, query)).map(answer => describe(answer, urls))
  out.show({ cells }, () => out.list({ cells }, cells, columns, 'no cells'))
  return cells.every(({ status }) => status === 'healthy' || status === 'moving') ? 0 : 1
}

type Row = ReturnType<typeof describe>

const describe = ({ cell, rows, error }: Answer<Found>, urls: readonly string[]) => {
  const first = rows?.[0]
  const row = { cell, server: nameOf(urls[cell - 1]!) }
  const unknown = { postgres: null, release: null, size_bytes: null, accounts: null, lateness_seconds: null }
  if (!first) return { ...row, ...unknown, status: 'unavailable', reason: error ?? null }
  const { postgres, release, size_bytes, accounts, health, has_moved, is_moving } = first
  const dated = health && { ...health, last_seen_at: dateOf(health.last_seen_at), oldest_pending_at: dateOf(health.oldest_pending_at) }
  const { status, reason, queue } = judge(dated, new Date(first.now))
  const figures = { ...row, postgres, release, size_bytes, accounts, lateness_seconds: queue.oldest_pending_seconds }
  if (has_moved) return { ...figures, status: 'moved', reason: 'to another server: update CELLS' }
  if (first.cell !== cell) return { ...figures, status: 'misplaced', reason: `is cell ${first.cell}` }
  return { ...figures, status: is_moving && status === 'healthy' ? 'moving' : status, reason: reason ?? null }
}

const dateOf = (value: unknown): Date | null => (typeof value === 'string' ? new Date(value) : null)

const columns: [string, (row: Row) => unknown][] = [
  ['cell', row => row.cell],
  ['server', row => row.server],
  ['size', row => (row.size_bytes === null ? null : `${Math.round(row.size_bytes / 2 ** 20)} MB`)],
  ['accounts', row => row.accounts],
  ['late', row => (row.lateness_seconds === null ? null : `${row.lateness_seconds} s`)],
  ['postgres', row => row.postgres],
  ['release', row => row.release],
  ['status', row => row.status],
  ['reason', row => row.reason]
]
