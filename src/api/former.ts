/** Credentials created before there was a second cell: they belong to cell 1, but may seem to belong to any. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { App } from '../app.ts'
import { cellDigit } from '../cells/ids.ts'
import { type Former, shortHash } from './cell-of-request.ts'

const retryMs = 2000

export type OpenCell = { app: App; pool: pg.Pool }

/** Reads them as soon as the cells respond, into the object it returns. No more are created. */
export const readFormer = (cells: readonly OpenCell[], signal: AbortSignal): Former => {
  const keys = new Set<string>()
  const former = { since: new Date(0), keys, isRead: false }
  const [home, second] = cells as [OpenCell, OpenCell]
  const digits = cells.slice(1).map(({ app }) => cellDigit(app.config.cell))

  const readTime = async ({ pool }: OpenCell) => {
    const { rows } = await pool.query<{ created_at: Date }>('select created_at from cue.cell')
    former.since = new Date(Math.max(Number(former.since), Number(rows[0]!.created_at)))
  }
  void untilDone(home, signal, async () => {
    const { rows } = await home.pool.query<{ key_hash: Buffer }>(
      'select key_hash from cue.api_keys where substr(prefix, 8, 1) = any ($1) and revoked_at is null',
      [digits]
    )
    for (const { key_hash } of rows) keys.add(shortHash(key_hash))
    await readTime(home)
    former.isRead = true
  })
  // Cell 1 took its number in a migration, shortly before it encoded it in ids.
  void untilDone(second, signal, () => readTime(second))
  return former
}

const untilDone = async ({ app }: OpenCell, signal: AbortSignal, work: () => Promise<void>): Promise<void> => {
  while (!signal.aborted) {
    try {
      return await work()
    } catch (error) {
      if (!app.outageLog.lost(error, 'read older credentials', false))
        app.log.error({ err: error }, 'cannot read older credentials; trying again')
      await delay(retryMs, undefined, { signal }).catch(() => {})
    }
  }
}
