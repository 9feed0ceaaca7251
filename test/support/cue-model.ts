/** A model of a cue's schedule: slots, `max_runs`, pauses and their ends. Pure. Instants are epoch milliseconds. */
import { never, type Overlap, placeBeside } from './overlap-model.ts'
import type { Operation, State } from './state-model.ts'

/** The first slot of every cue; the others follow a millisecond apart. */
export const firstSlot = Date.parse('2030-01-15T08:00:00Z')

/** What engines and callers know of a cue. */
export type CueState = {
  version: number
  overlap: Overlap
  status: 'active' | 'paused' | 'completed'
  /** The next slot; for a paused or completed cue, the slot that would be next. */
  next: number
  /** Runs that count towards `max_runs`. */
  taken: number
  max_runs: number | null
  /** When a pause ends by itself. */
  until: number | null
  /** Slots that did not run, by their reason. */
  overlaps: number
  queue_fulls: number
}

export const cueOperations = ['slot', 'pause', 'resume', 'edit', 'endPause'] as const
export type CueOperation = Extract<Operation, { kind: (typeof cueOperations)[number] }>

/** The cue after an operation beside these executions, which have not ended; the same one if nothing changes. Undefined: the operation is refused. */
export const cueAfter = (operation: CueOperation, cue: CueState, open: readonly State[], now: number): CueState | undefined => {
  const version = cue.version + 1
  switch (operation.kind) {
    case 'slot': {
      if (cue.status !== 'active') return cue
      const place = placeBeside(cue.overlap, open)
      const slot = {
        ...cue,
        next: cue.next + 1,
        taken: cue.taken + Number(place === 'run' || place === 'queue'),
        overlaps: cue.overlaps + Number(place === 'overlap'),
        queue_fulls: cue.queue_fulls + Number(place === 'queue_full')
      }
      return slot.taken === cue.max_runs ? { ...slot, status: 'completed', version } : slot
    }
    case 'pause':
      if (cue.status === 'completed') return
      return cue.status === 'paused' && cue.until === operation.until ? cue : { ...cue, status: 'paused', until: operation.until, version }
    case 'resume':
      if (cue.status === 'completed') return
      return cue.status === 'active' ? cue : { ...cue, status: 'active', until: null, version }
    case 'endPause':
      return cue.until === null || cue.until > now ? cue : { ...cue, status: 'active', until: null, version }
    case 'edit': {
      const { overlap, max_runs } = operation
      if (overlap === cue.overlap && max_runs === cue.max_runs) return cue
      if (max_runs === cue.max_runs) return { ...cue, overlap, version }
      if (max_runs !== null && max_runs <= cue.taken) return
      return { ...cue, overlap, max_runs, version, status: cue.status === 'completed' ? 'active' : cue.status }
    }
  }
}

/**
 * Returns what is wrong with a cue after concurrent operations, in any order; empty if nothing is. `answers` counts what the calls returned:
 * changes of the cue, how many of those ended its pause, and slots that were fired at most.
 */
export const cueFaults = (
  before: CueState,
  after: CueState,
  answers: { changes: number; resumed: number; slots: number },
  now: number
): string[] => {
  const { changes, resumed, slots } = answers
  const completed = after.version - before.version - changes
  const wrong: [boolean, string][] = [
    [after.taken + after.overlaps + after.queue_fulls !== after.next - firstSlot, 'has slots that are not accounted for'],
    [(after.status === 'completed') !== (after.taken === after.max_runs), 'is not completed exactly when no run is left'],
    [after.max_runs !== null && after.taken > after.max_runs, 'has run more often than max_runs'],
    [after.until !== null && after.status !== 'paused', 'is to resume, but is not paused'],
    [resumed > 1 || (resumed === 1 && (before.until ?? never) > now), 'was resumed without a reason'],
    [completed < 0 || completed > slots, 'has another version than it has changes']
  ]
  return wrong.flatMap(([isWrong, why]) => (isWrong ? [why] : []))
}
