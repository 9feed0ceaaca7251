/** Setup for tests of overlap: a cue of each rule, slots a minute apart, and what became of them. */
import type { Test } from 'tap'
import type { BegunAttempt, Functions } from '../../src/database/functions.ts'
import { beginWaiting } from './begin-waiting.ts'
import { dueCues, type Row, stage } from './stage.ts'

export const minuteMs = 60_000

export const overlapStage = async (t: Test) => {
  const s = await stage(t)
  const { rows, fn, clock } = s
  const next = () => new Date(clock.now().getTime() + minuteMs)

  /** Fires due tracked cues like an engine that has just read them; returns the number of those that moved. */
  const fireTracked = async (cue_ids: string[], by: Functions = fn, next_run: Date | null = next()) => {
    const runs = await rows('select * from cue.cue_runs where cue_id = any ($1) and next_run <= $2', [cue_ids, clock.now()])
    return by.fireTrackedCues({ ...dueCues(runs, next_run), success_due: runs.map(() => null), missed_after: '100 years' })
  }
  return {
    ...s,
    fireTracked,
    /** Creates a cue and fires its first slot. */
    running: async (columns: object = {}): Promise<string> => {
      const id = await s.cue(columns)
      if ((await fireTracked([id], fn, 'at' in columns ? null : next())) !== 1) throw new Error('the first slot did not fire')
      return id
    },
    /** A minute later: fires the next slot. */
    slot: async (cue_id: string, by: Functions = fn) => {
      clock.advance('1 minute')
      return fireTracked([cue_id], by)
    },
    /** How many executions have ended with each status. */
    ended: async (): Promise<Record<string, number>> =>
      Object.fromEntries((await fn.endedExecutions({})).map(({ status, count }) => [status, count])),
    /** Begins all attempts that are due. */
    begin: (): Promise<BegunAttempt[]> => beginWaiting(fn, { limit: 1000 }),
    /** The executions of a cue, oldest first: status and whether it is queued. */
    states: async (cue_id: string): Promise<string[]> =>
      (
        await rows(
          `select case when h.held_by = 'overlap' then 'queued' else e.status::text end as state
             from cue.executions e left join cue.held_executions h on h.execution_id = e.id where e.cue_id = $1 order by e.scheduled_for, e.created_at, h.place`,
          [cue_id]
        )
      ).map(row => row.state),
    open: (cue_id: string): Promise<Row[]> =>
      rows(
        `select o.execution_id as id, h.execution_id is not null as is_queued
           from cue.open_executions o left join cue.held_executions h on h.execution_id = o.execution_id and h.held_by = 'overlap'
          where o.cue_id = $1 order by h.place nulls first, o.execution_id`,
        [cue_id]
      ),
    missed: (cue_id: string): Promise<Row[]> =>
      rows('select first, last, count, policy, reason from cue.missed_slots where cue_id = $1 order by id', [cue_id])
  }
}

export type OverlapStage = Awaited<ReturnType<typeof overlapStage>>
