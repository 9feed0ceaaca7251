/** What became of a cue's slots, by day in its time zone. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { firstInstantAt } from '../schedule/next-run.ts'
import { zoneOf } from '../schedule/zones.ts'
import { defaults } from './columns.ts'
import { unknownCue } from './read.ts'
import type { History, HistoryQuery } from './schemas.ts'

const dayMs = 86_400_000
type Asked = Static<typeof HistoryQuery> & { account_id: string; cue_id: string }

/** @throws ApiError cue_not_found */
export const readHistory = async (
  { db, fn, now }: Pick<FastifyInstance, 'db' | 'fn' | 'now'>,
  { account_id, cue_id, days, until }: Asked
): Promise<Static<typeof History>> => {
  const query = db.selectFrom('cue_view').select('schedule').where('id', '=', cue_id).where('account_id', '=', account_id)
  const cue = await query.executeTakeFirst()
  if (!cue) throw unknownCue()
  const { timezone } = (cue.schedule ?? { timezone: defaults.timezone }) as { timezone: string }
  const zone = zoneOf(timezone)
  const second = Math.floor(+now() / 1000)
  const last = Date.parse(until ?? dateOf((second + zone(second).offset) * 1000))
  const first = last - (days - 1) * dayMs
  const bounds = Array.from({ length: days + 1 }, (_, n) => new Date(firstInstantAt(zone, first + n * dayMs)))
  const { complete_from, days: rows, gaps } = (await fn.readHistory({ account_id, cue_id, bounds }))[0]!
  // The day on which the reading stopped is complete only from its end.
  const complete = complete_from ? bounds.findIndex(bound => bound > complete_from) : null
  return {
    timezone,
    from: dateOf(first),
    until: dateOf(last),
    complete_from: complete === null ? null : dateOf(first + complete * dayMs),
    days: (rows as (Counts & { day: number })[]).map(({ day, ...counts }) => ({
      date: dateOf(first + day * dayMs),
      starts_at: bounds[day]!,
      ends_at: bounds[day + 1]!,
      ...counts
    })),
    gaps: gaps as Static<typeof History>['gaps']
  }
}
type Counts = Omit<Static<typeof History>['days'][number], 'date' | 'starts_at' | 'ends_at'>

const dateOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
