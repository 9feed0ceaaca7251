/**
 * Reads every few seconds, in one statement, when the next work of each kind is due. Notifications usually arrive sooner, but they may be lost, and
 * an administrator's SQL sends none.
 */
import type { Functions } from '../database/functions.ts'
import type { Flights } from '../deliveries/flights.ts'
import type { Pump } from '../deliveries/pump.ts'
import type { Ahead } from '../firing/look-ahead.ts'
import type { Jobs } from '../jobs/boss.ts'
import type { Deadlines } from './deadlines.ts'

type Options = {
  fn: Pick<Functions, 'nextWakes'>
  flights: Pick<Flights, 'isEmpty'>
  pump: Pick<Pump, 'expectWaiting'>
  deadlines: Pick<Deadlines, 'isAt'>
  ahead: Pick<Ahead, 'firstIs'>
  jobs: Pick<Jobs, 'expect'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
}

export const createWakeTimes = ({ fn, flights, pump, deadlines, ahead, jobs, now }: Options) => {
  let hasFlights = true
  // When the first cue is due, and when the first window ends of those that end before their cue is due again.
  let dueAt = 0
  let windowAt = 0

  return {
    /** Whether nothing is in flight, here or elsewhere. After flights of this engine, only a reading tells: others' may be left. */
    isIdle: (): boolean => {
      if (!flights.isEmpty) hasFlights = true
      return !hasFlights
    },
    /** Whether a window for a success may have passed: one that ends before its cue is due again, or that of a cue that is due and does not fire. */
    mayHavePassedWindow: (): boolean => Math.min(windowAt, dueAt) <= now(),
    read: async (): Promise<void> => {
      const { waiting_at, deadline_at, due_at, window_at, job_queues, job_waits_ms, has_flights } = await fn.nextWakes({})
      if (waiting_at) pump.expectWaiting(waiting_at.getTime())
      if (deadline_at) deadlines.isAt(deadline_at.getTime())
      dueAt = due_at?.getTime() ?? Number.POSITIVE_INFINITY
      ahead.firstIs(dueAt)
      jobs.expect(job_queues, job_waits_ms)
      windowAt = window_at?.getTime() ?? Number.POSITIVE_INFINITY
      hasFlights = has_flights
    }
  }
}
