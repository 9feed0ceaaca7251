import fc from 'fast-check'
import t from 'tap'
import type { DueCue } from '../../src/firing/due-cue.ts'
import { createDueQueue, isCue } from '../../src/firing/due-queue.ts'
import { always } from '../support/seed.ts'

const now = 1000
const cueAt = (due: number, n: number, account_id = 'account') =>
  ({ cue_id: `cue ${n}`, account_id, due, schedule: { transport: 'webhook' }, slot: {} }) as DueCue
const attemptAt = (due: number, n: number, account_id = 'account') => ({ execution_id: `execution ${n}`, account_id, due })

const take = (queue: ReturnType<typeof createDueQueue>, limit = 1000) => queue.take('send', now, limit)
const taken = (dues: number[]) => {
  const queue = createDueQueue()
  queue.fill(dues.map((due, n) => cueAt(due, n)))
  return take(queue) as DueCue[]
}

t.test('cues come by instant, and those of an instant in a rotated order', t => {
  always(
    fc.property(fc.array(fc.integer({ min: now - 5, max: now }), { maxLength: 50 }), dues => {
      const before = Map.groupBy(
        dues.map((due, n) => cueAt(due, n)),
        cue => cue.due
      )
      const after = Map.groupBy(taken(dues), cue => cue.due)
      const instants = [...after.keys()]
      const idsOf = (cues: DueCue[]) => cues.map(cue => cue.cue_id)
      const isRotated = (instant: number) => {
        const [listed, served] = [idsOf(before.get(instant)!), idsOf(after.get(instant)!)]
        const start = listed.indexOf(served[0]!)
        return String([...listed.slice(start), ...listed.slice(0, start)]) === String(served)
      }
      return String(instants) === String([...before.keys()].sort((a, b) => a - b)) && instants.every(isRotated)
    })
  )
  t.pass('all of them')
  t.end()
})

t.test('due cues and waiting attempts of an account are served by the instant due, whichever was added first', t => {
  always(
    fc.property(fc.array(fc.record({ due: fc.integer({ min: now - 20, max: now }), isCue: fc.boolean() }), { maxLength: 50 }), items => {
      const queue = createDueQueue()
      for (const [n, item] of items.entries()) item.isCue ? queue.insert(cueAt(item.due, n)) : queue.addWaiting(attemptAt(item.due, n))
      const dues = take(queue).map(({ due }) => due)
      return String(dues) === String(items.map(({ due }) => due).sort((a, b) => a - b))
    })
  )
  t.pass('all of them')
  t.end()
})

t.test('accounts are served in turns, ten cues or attempts each', t => {
  const queue = createDueQueue()
  for (let n = 0; n < 100; n++) queue.insert(cueAt(now - 100, n, 'a'))
  queue.count('send', now)
  for (let n = 0; n < 15; n++) queue.addWaiting(attemptAt(now - 10, n, 'b'))
  const accounts = take(queue, 40).map(item => item.account_id)
  t.strictSame(accounts, [
    ...Array(10).fill('a'),
    ...Array(10).fill('b'),
    ...Array(10).fill('a'),
    ...Array(5).fill('b'),
    ...Array(5).fill('a')
  ])
  t.equal(queue.held, 75)
  t.end()
})

t.test('a new list takes the place of cues, and leaves waiting attempts', t => {
  const queue = createDueQueue()
  queue.insert(cueAt(now - 1, 1))
  queue.insert(cueAt(now + 1, 2))
  queue.addWaiting(attemptAt(now - 2, 1))
  t.equal(queue.count('send', now), 2)
  queue.fill([cueAt(now, 3)])
  t.strictSame(
    take(queue).map(item => (isCue(item) ? item.cue_id : item.execution_id)),
    ['execution 1', 'cue 3']
  )
  t.equal(queue.next, Number.POSITIVE_INFINITY)
  t.end()
})
