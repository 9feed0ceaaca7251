/** Setup for tests of chains: cues that run at once, and cues that follow them. */
import type { Test } from 'tap'
import type { BegunAttempt, Functions } from '../../src/database/functions.ts'
import { overlapStage } from './overlap-stage.ts'
import { type Result, type Row, refused } from './stage.ts'

type After = { cues: string[]; when?: string; mode?: string; within?: string; wait?: string }

const byDefault = { when: 'success', mode: 'all', within: '24h' }
export const unscheduled = { schedule_type: null, cron: null }

export const chainStage = async (t: Test) => {
  const s = await overlapStage(t)
  const { cue, take, finish, settle, fn, rows } = s

  /** A cue without a schedule that follows others. */
  const follower = (after: After, columns: object = {}) =>
    cue({ ...unscheduled, after: { ...byDefault, ...after }, ...columns }, { next_run: null })
  /** Begins a run of a cue that is due each minute. */
  const begun = async (cue_id: string): Promise<BegunAttempt> => {
    await rows('update cue.cue_runs set next_run = $2, last_slot = null where cue_id = $1', [cue_id, new Date(+s.clock.now())])
    const [attempt] = await take([cue_id])
    return attempt!
  }
  /** A run that succeeds; returns its id. */
  const ran = async (cue_id: string, by: Functions = fn): Promise<string> => {
    const attempt = await begun(cue_id)
    await finish([attempt], by)
    return attempt.execution_id
  }
  /** A run that ends with this result. */
  const ended = async (cue_id: string, result: Result = refused): Promise<string> => {
    const attempt = await begun(cue_id)
    await settle([attempt], result)
    return attempt.execution_id
  }
  /** As an engine does after a notification. */
  const start = async (by: Functions = fn): Promise<boolean> => {
    let isBehind = false
    for (let after: string | null = ''; after !== null; ) {
      const page: { after: string | null; is_behind: boolean } = await by.startFollowers({ after })
      after = page.after
      isBehind ||= page.is_behind
    }
    return isBehind
  }
  /** The executions of a cue, oldest first, by the executions that they follow. */
  const followed = async (cue_id: string): Promise<string[][]> =>
    (
      await rows(
        'select parents from cue.executions e where cue_id = $1 order by (select min(s.id) from cue.signals s where s.spent_by = e.id), id',
        [cue_id]
      )
    ).map(({ parents }) => (parents ?? []).map(({ execution_id }: Row) => execution_id))
  const signals = (cue_id: string) =>
    rows(
      'select parent_id, execution_id, lineage_id, is_new, spent_at is not null as spent, spent_by from cue.signals where follower_id = $1 order by id',
      [cue_id]
    )
  return {
    ...s,
    follower,
    begun,
    ran,
    ended,
    start,
    followed,
    signals,
    parent: (columns: object = {}) => cue({ retry_max_attempts: 1, ...columns })
  }
}
