/** The slots of a backfill: those of one cue, in a period, that have no execution. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createSingleCues } from '../cues/batched.ts'
import { createYield } from '../database/yield.ts'
import { fault, invalid } from '../errors.ts'
import { calendarsOf, slotsAfter } from '../schedule/parse-schedule.ts'
import { planOf } from '../schedule/plan.ts'
import { slotsCounted } from '../schedule/runs.ts'
import { readCalendars } from '../schedule/stored-calendars.ts'
import { type CreateOperation, MAX_SLOTS } from './schemas.ts'

/** @throws ApiError if there are too many, or the period isn't in the past */
export const slotsToBackfill = async (
  app: FastifyInstance,
  { caller }: Pick<FastifyRequest, 'caller'>,
  request: CreateOperation
): Promise<string[]> => {
  for (const name of ['cue_id', 'from', 'to'] as const)
    if (request[name] == null) throw invalid([{ type: 'missing', loc: ['body', name], msg: 'Field required', input: null }])
  for (const name of ['filter', 'ids'] as const)
    if (request[name] != null) throw invalid([fault([name], 'is not for type backfill; give cue_id, from and to')])
  const [from, to] = [new Date(request.from!), new Date(request.to!)]
  if (from >= to) throw invalid([fault(['to'], 'must be after from')])
  if (to > app.now()) throw invalid([fault(['to'], 'must not be in the future')])
  const cue = await createSingleCues(app.fn).find(caller.account_id, request.cue_id!)
  const { schedule } = cue
  if (!schedule) throw invalid([fault(['cue_id'], 'is a cue without a schedule; fire it, or replay its executions')])
  if (schedule.type === 'once') throw invalid([fault(['cue_id'], 'is a cue that runs once; fire it, or replay its execution')])
  // What is still to come runs by itself.
  const end = Math.min(+to, +(cue.next_slot ?? cue.next_run ?? to))
  const calendars = await readCalendars(app.fn, caller.account_id, schedule.exclude_calendars ?? [])
  const plan = planOf(schedule, cue.id, calendarsOf(schedule, calendars))
  const all: Date[] = []
  const yieldToRequests = createYield()
  for (const slot of slotsAfter(schedule, plan, new Date(+from - 1), MAX_SLOTS, end)) {
    all.push(new Date(slot))
    if (all.length >= slotsCounted) throw tooMany(`${slotsCounted} or more`)
    await yieldToRequests()
  }
  const slots = await app.fn.slotsWithoutExecution({ cue_id: cue.id, slots: all })
  if (slots.length > MAX_SLOTS) throw tooMany(String(slots.length))
  return slots.map(slot => slot.toISOString())
}

const tooMany = (count: string) =>
  invalid([fault(['to'], `leaves ${count} slots; a backfill has at most ${MAX_SLOTS}. Choose a shorter period`)])
