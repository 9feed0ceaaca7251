/** Setup for tests of gates: cues behind one, and their executions in the order of the gate. */
import type { Test } from 'tap'
import type { BegunAttempt, Functions } from '../../src/database/functions.ts'
import { beginWaiting } from './begin-waiting.ts'
import { overlapStage } from './overlap-stage.ts'

export const gatesStage = async (t: Test) => {
  const s = await overlapStage(t)
  const { fn, rows, account_id, clock } = s
  return {
    ...s,
    gate: (settings: object, key = 'g') =>
      rows('select cue.put_gate($1, $2, $3, p_now => $4)', [account_id, key, JSON.stringify(settings), clock.now()]),
    pause: (reason: string, until: Date | null = null) =>
      rows('select cue.pause_gate($1, $2, $3, $4, p_now => $5)', [account_id, 'g', reason, until, clock.now()]),
    resume: () => rows('select cue.resume_gate($1, $2, p_now => $3)', [account_id, 'g', clock.now()]),
    /** Fires a cue a millisecond later, and returns the execution's id. */
    fire: async (cue_id: string, by: Functions = fn): Promise<string> => {
      clock.advance('1 millisecond')
      return (await by.fireCue({ account_id, cue_id })).id
    },
    begin: (by: Functions = fn): Promise<BegunAttempt[]> => beginWaiting(by, { limit: 1000 }),
    /** Begins and returns the executions' ids. */
    beginIds: async (): Promise<string[]> => (await beginWaiting(fn, { limit: 1000 })).map(({ execution_id }) => execution_id),
    sweep: async () => {
      for (let after: string | null = ''; after !== null; ) after = await fn.admitHeld({ after })
    },
    /** The executions that are held, in the order of the gate. */
    held: async (): Promise<string[]> =>
      (await rows('select execution_id as id from cue.held_executions where released_at is null order by due_at, execution_id')).map(
        row => row.id
      ),
    starts: () => rows('select execution_id, started_at from cue.gate_starts order by n'),
    later: (ms: number) => clock.set(new Date(clock.now().getTime() + ms))
  }
}
