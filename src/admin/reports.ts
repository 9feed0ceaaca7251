/** The operator's views over all cells. */
import type { Output } from '../cli/output.ts'
import type { ServiceHealthRow } from '../database/functions.ts'
import { judgeCells } from '../health/check.ts'
import { type Answer, askCells } from './ask.ts'

type Filter = { limit: number; account: string | null }
type Row = Record<string, unknown>
type Report = {
  view: string
  /** Which come first, of each cell and of all. */
  order?: { by: string; descending?: true }
  hasAccounts?: true
}

export const reports: Record<string, Report> = {
  health: { view: 'cue.service_health()' },
  queues: { view: 'cue.queue_depth' },
  usage: { view: 'cue.account_usage', order: { by: 'executions_used', descending: true }, hasAccounts: true },
  due: { view: 'cue.due_cues', order: { by: 'next_run' }, hasAccounts: true },
  stuck: { view: 'cue.stuck_executions', order: { by: 'since' }, hasAccounts: true },
  failures: { view: 'cue.recent_failures', order: { by: 'id', descending: true }, hasAccounts: true }
}

export const showReports = async (urls: readonly string[], names: readonly string[], filter: Filter, out: Output): Promise<number> => {
  const shown: Row = {}
  let isWhole = true
  for (const name of names) {
    const answers = await askCells<Row>(urls, queryOf(reports[name]!, filter))
    const failed = answers.flatMap(({ cell, error }) => (error ? { cell, error } : []))
    isWhole &&= failed.length === 0
    const rows = name === 'health' ? healthOf(answers) : merge(answers, reports[name]!, filter.limit)
    shown[name] = { rows, failed }
    if (!out.json) print(name, rows, failed, out)
  }
  if (out.json) out.show(shown, () => {})
  return isWhole ? 0 : 1
}

const queryOf = ({ view, order, hasAccounts }: Report, { limit, account }: Filter): string => {
  const where = account && hasAccounts ? `where account_id = '${account.replaceAll("'", "''")}'` : ''
  const sorting = order ? `order by ${order.by} ${order.descending ? 'desc' : ''} limit ${limit}` : ''
  return `select to_json(r) from (select * from ${view} ${where} ${sorting}) r`
}

const merge = (answers: Answer<Row>[], { order }: Report, limit: number): Row[] => {
  const rows = answers.flatMap(({ cell, rows = [] }) => rows.map(row => ({ cell, ...row }) as Row))
  if (!order) return rows
  const sign = order.descending ? -1 : 1
  const compare = (a: Row, b: Row) => (a[order.by]! < b[order.by]! ? -sign : a[order.by]! > b[order.by]! ? sign : 0)
  return rows.toSorted(compare).slice(0, limit)
}

/** A cell that does not answer is down. */
const healthOf = (answers: Answer<Row>[]): Row[] => {
  const looks = answers.map(({ cell, rows }) => ({ id: cell, found: rows?.[0] ? datesOf(rows[0]) : null }))
  return judgeCells(looks, new Date()).cells.map(({ id, status, reason, poller, queue, workers, replicas }) => ({
    cell: id,
    status,
    reason: reason ?? null,
    replicas,
    lateness_ms: poller.lateness_ms,
    ...queue,
    workers: workers.active_count
  }))
}

const datesOf = (row: Row): ServiceHealthRow =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, name.endsWith('_at') && value ? new Date(String(value)) : value])
  ) as never

const print = (name: string, rows: Row[], failed: { cell: number; error: string }[], out: Output) => {
  out.line(`${name}:`)
  if (rows.length > 0)
    out.table(
      rows,
      Object.keys(rows[0]!).map(key => [key, row => row[key]])
    )
  else out.line('none')
  for (const { cell, error } of failed) out.line(`cell ${cell} does not answer: ${error}`)
  out.line('')
}
