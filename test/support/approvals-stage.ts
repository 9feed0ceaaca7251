/** Setup for tests of approvals: cues with one, and decisions about their executions. */
import type { Test } from 'tap'
import type { Functions } from '../../src/database/functions.ts'
import { overlapStage } from './overlap-stage.ts'
import type { Row } from './stage.ts'

export const byDefault = { expires: '24h', on_expiry: 'skip', message: null }
export const worker = { transport: 'worker', callback_url: null }
export const person = 'session:00000000-0000-4000-8000-000000000001'

export const approvalsStage = async (t: Test) => {
  const s = await overlapStage(t)
  const { fn, rows, row, account_id } = s
  const fire = async (cue_id: string, args: object = {}): Promise<string> => (await fn.fireCue({ account_id, cue_id, ...args })).id
  return {
    ...s,
    fire,
    /** Creates a cue with an approval. */
    approved: (columns: object = {}, approval: object = {}) => s.cue({ approval: { ...byDefault, ...approval }, ...columns }),
    decide: (execution_id: string, decision: 'approved' | 'rejected' = 'approved', args: object = {}, by: Functions = fn) =>
      by.decideApproval({ account_id, execution_id, decision, actor: person, reason: decision === 'rejected' ? 'no' : null, ...args }),
    approval: (id: string): Promise<Row> => row('select * from cue.approvals where execution_id = $1', [id]),
    held: async (cue_id: string): Promise<string[]> =>
      (await rows('select held_by from cue.held_executions where cue_id = $1 order by place', [cue_id])).map(({ held_by }) => held_by),
    /** The events of an execution. */
    events: async (id: string): Promise<string[]> =>
      (await rows('select type from cue.new_events where execution_id = $1 order by seq', [id])).map(({ type }) => type)
  }
}
