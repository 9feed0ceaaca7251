import type { BegunAttempt, Functions } from '../../src/database/functions.ts'

type Options = { limit: number; skip_accounts?: string[]; lease?: string }

/** Begins the due attempts that have waited longest, as an engine does. */
export const beginWaiting = async (
  fn: Pick<Functions, 'lookWaiting' | 'beginAttempts'>,
  { limit, skip_accounts = [], ...lease }: Options
): Promise<BegunAttempt[]> => {
  const rows = await fn.lookWaiting({ after: 0, after_id: '00000000-0000-0000-0000-000000000000' })
  const due = rows.filter(row => row.is_due && !skip_accounts.includes(row.account_id)).slice(0, limit)
  return fn.beginAttempts({ execution_ids: due.map(row => row.execution_id), ...lease })
}
