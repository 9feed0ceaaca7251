/** Steps of the walk that concern a cue: slots, fires, edits, pauses and their ends. */
import type { Functions } from '../../src/database/functions.ts'
import { type CueState, firstSlot } from './cue-model.ts'
import { type Overlap, overlaps } from './overlap-model.ts'
import { below, chance, pick } from './seed.ts'
import type { Cue, Driver, Step } from './state-driver.ts'

/** Often none: only a cue that no rule applied to is fired like most are. */
export const drawOverlap = (): Overlap => (chance(0.4) ? 'allow' : pick(overlaps))

export const createCueSteps = (driver: Driver, account_id: string, now: () => number) => {
  /** What an engine or a caller has read of a cue, which may be deleted. */
  const known = ({ cue_id }: Cue): Pick<CueState, 'version' | 'next' | 'taken' | 'max_runs' | 'overlap' | 'status'> =>
    driver.cue(cue_id) ?? { version: 0, next: firstSlot, taken: 0, max_runs: null, overlap: 'allow', status: 'active' }

  return {
    fire: (cue: Cue): Step => {
      const at = chance(0.2) ? now() + below(120_000) : now()
      const overlap = drawOverlap()
      const call = (f: Functions) => f.fireCue({ account_id, cue_id: cue.cue_id, send_at: new Date(at), overlap })
      return { operation: { kind: 'fire', at, overlap }, cue, call }
    },

    /** Fires the next slot like an engine that read the cue while it was active. */
    slot: (cue: Cue): Step => {
      const { version, next, taken, max_runs, status } = known(cue)
      const versions = [status === 'active' ? version : version - 1]
      const due = { cue_ids: [cue.cue_id], versions, expected: [new Date(next)], missed_after: '100 years' }
      const followed = { ...due, next: [new Date(next + 1)], success_due: [null] }
      const call = (f: Functions) => {
        if (driver.isTracked(cue.cue_id)) return f.fireTrackedCues(followed)
        return taken + 1 === max_runs ? f.takeLastSlots(due) : f.takeDueCues(followed)
      }
      return { operation: { kind: 'slot' }, cue, call }
    },

    /** Pauses, resumes or edits the cue, or ends its pause like an engine. */
    change: (cue: Cue): Step => {
      const { cue_id } = cue
      const { version, next, taken, max_runs, overlap, status } = known(cue)
      const change = (changes: object) => (f: Functions) => f.updateCue({ account_id, cue_id, version, changes, next_run: new Date(next) })
      if (status === 'paused' && chance(0.4)) return { operation: { kind: 'resume' }, cue, call: change({ status: 'active' }) }
      if (status === 'paused' && chance(0.7)) {
        const call = (f: Functions) => f.resumeCues({ cue_ids: [cue_id], versions: [version], next_runs: [new Date(next)] })
        return { operation: { kind: 'endPause' }, cue, call }
      }
      if (chance(0.3)) {
        const until = chance(0.3) ? null : now() + below(7_200_000)
        return { operation: { kind: 'pause', until }, cue, call: change({ status: 'paused', paused_until: until && new Date(until) }) }
      }
      const edited = {
        overlap: chance(0.7) ? drawOverlap() : overlap,
        max_runs: chance(0.3) ? max_runs : pick([null, Math.max(1, taken + below(5))])
      }
      const schedule_rules = edited.max_runs && { max_runs: edited.max_runs }
      return { operation: { kind: 'edit', ...edited }, cue, call: change({ overlap: edited.overlap, schedule_rules }) }
    }
  }
}
