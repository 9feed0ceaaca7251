/** What schedules will add until the end of the month: an estimate, day by day. */
import { createYield } from '../database/yield.ts'
import { fieldValues, parseCron } from '../schedule/cron.ts'
import { lengthOf } from '../schedule/offset.ts'
import { planOf } from '../schedule/plan.ts'
import { cronsOf, type Schedule, type StoredSchedule, scheduleOf } from '../schedule/schedule.ts'
import { effort } from '../schedule/slots.ts'
import { zoneOf } from '../schedule/zones.ts'

const dayMs = 86_400_000
/** Of all searches: some tens of milliseconds. */
const stepsOfAll = 100_000

/** On a day on which it runs. */
const runsPerDay = (schedule: Schedule): number => {
  if (schedule.type === 'once') return 1
  if (schedule.every !== undefined) return Math.max(dayMs / lengthOf(schedule.every), 1)
  const times = (cron: string) => [0, 1, 2].reduce((product, field) => product * fieldValues(parseCron(cron), field).length, 1)
  return cronsOf(schedule).reduce((sum, cron) => sum + times(cron), 0)
}

/** A day that has begun, or that does not end before `end`, counts by its share. */
const runsUntil = (schedule: Schedule, now: number, end: number): number => {
  const { next, excludedAt } = planOf(schedule)
  const zone = zoneOf(schedule.timezone)
  const perDay = runsPerDay(schedule)
  let runs = 0
  for (let slot = next(now); slot < end; ) {
    const offset = zone(Math.floor(slot / 1000)).offset * 1000
    const midnight = Math.floor((slot + offset) / dayMs) * dayMs - offset
    const share = (Math.min(midnight + dayMs, end) - Math.max(midnight, now)) / dayMs
    if (!excludedAt(slot)) runs += Math.max(perDay * share, 1)
    slot = next(midnight + dayMs - 1)
  }
  return schedule.type === 'once' ? runs : Math.min(runs, schedule.max_runs ?? Number.POSITIVE_INFINITY)
}

export type Schedules = readonly (StoredSchedule & { cues: number })[]

/** @param active the number of active cues: those without a schedule here, and those for which there is no time, count as the others do */
export const scheduledUntil = async (schedules: Schedules, active: number, now: number, end: number): Promise<number> => {
  const yieldToRequests = createYield()
  const last = effort.steps + stepsOfAll
  let [runs, counted] = [0, 0]
  for (const { cues, ...schedule } of schedules) {
    if (effort.steps > last) break
    runs += cues * runsUntil(scheduleOf(schedule), now, end)
    counted += cues
    await yieldToRequests()
  }
  return Math.round((runs * active) / Math.max(counted, 1))
}
