import fc from 'fast-check'
import t from 'tap'
import type { DueCue } from '../../src/firing/due-cue.ts'
import { createLane } from '../../src/firing/lane.ts'
import { always } from '../support/seed.ts'

const now = 1000
const cueAt = (due: number, n: number) => ({ cue_id: `cue ${n}`, account_id: 'account', due }) as DueCue

const filled = (dues: number[]): DueCue[] => {
  const lane = createLane()
  lane.fill(dues.map(cueAt), now)
  return lane.take(Number.POSITIVE_INFINITY, dues.length)
}

t.test('cues come by instant, all overdue ones first, and those of an instant in a rotated order', t => {
  always(
    fc.property(fc.array(fc.integer({ min: now - 5, max: now + 5 }), { maxLength: 50 }), dues => {
      const instantOf = ({ due }: DueCue) => Math.max(due, now)
      const given = Map.groupBy(dues.map(cueAt), instantOf)
      const taken = Map.groupBy(filled(dues), instantOf)
      const instants = [...taken.keys()]
      const isRotated = (instant: number) => {
        const ids = (cues: DueCue[]) => cues.map(cue => cue.cue_id)
        const [before, after] = [ids(given.get(instant)!), ids(taken.get(instant)!)]
        const start = before.indexOf(after[0]!)
        return String([...before.slice(start), ...before.slice(0, start)]) === String(after)
      }
      return String(instants) === String([...given.keys()].sort((a, b) => a - b)) && instants.every(isRotated)
    })
  )
  t.pass('all of them')
  t.end()
})

t.test('engines with the same list start at different cues', t => {
  const same = Array<number>(1000).fill(now)
  const starts = new Set(Array.from({ length: 10 }, () => filled(same)[0]!.cue_id))
  t.not(starts.size, 1)
  t.end()
})
