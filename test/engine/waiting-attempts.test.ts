/** Reading waiting attempts: what is read, kept and passed on. */
import { setImmediate as tick } from 'node:timers/promises'
import t from 'tap'
import { createWaitingAttempts } from '../../src/deliveries/waiting-attempts.ts'
import { createDueQueue, type WaitingAttempt } from '../../src/firing/due-queue.ts'
import { createRun } from '../support/run.ts'

type Row = { account_id: string; at: number }
const start = Date.parse('2030-01-15T09:00:00Z')
const idOf = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** Waiting attempts at instants in epoch microseconds, and a reader at a time set by the test. */
const setup = (given: Row[]) => {
  let time = start
  let pages = 0
  const rows = given.map((row, n) => ({ execution_id: idOf(n), account_id: row.account_id, due_at: row.at }))
  const queue = createDueQueue()
  const waiting = createWaitingAttempts({
    queue,
    fn: {
      lookWaiting: async ({ after, after_id, limit }) => {
        pages++
        const all = rows
          .filter(row => row.due_at > after || (row.due_at === after && row.execution_id > after_id))
          .sort((a, b) => a.due_at - b.due_at || (a.execution_id < b.execution_id ? -1 : 1))
        const due = all.filter(row => row.due_at <= time * 1000).slice(0, limit ?? 1000)
        const next = all.filter(row => row.due_at > time * 1000).slice(0, 1)
        return [...due.map(row => ({ ...row, is_due: true })), ...next.map(row => ({ ...row, is_due: false }))]
      }
    },
    now: () => time,
    run: createRun(() => {})
  })
  const takeAttempts = (limit: number, admit?: (account: string) => boolean) => {
    const attempts = queue.take('send', time, limit, admit) as WaitingAttempt[]
    waiting.taken(attempts)
    return attempts
  }
  /** Reads until nothing is left at this time. */
  const read = async () => {
    for (let n = 0; n < 500; n++) {
      takeAttempts(1, () => false)
      waiting.lookIfDue()
      await tick()
    }
  }
  const take = (limit: number, admit?: (account: string) => boolean) => takeAttempts(limit, admit).map(attempt => attempt.account_id)
  const remove = (ids: Set<string>) => {
    for (let n = rows.length - 1; n >= 0; n--) if (ids.has(rows[n]!.execution_id)) rows.splice(n, 1)
  }
  const add = (row: Row) => rows.push({ execution_id: idOf(rows.length), account_id: row.account_id, due_at: row.at })
  const advance = (ms: number) => {
    time += ms
  }
  return { queue, waiting, read, take, takeAttempts, add, remove, pages: () => pages, advance }
}

t.test('10,000 attempts of an account without capacity neither hide others nor are read again for them', async t => {
  const hog = Array.from({ length: 10_000 }, () => ({ account_id: 'hog', at: (start - 60_000) * 1000 }))
  const { queue, waiting, read, take, add, pages, advance } = setup([...hog, { account_id: 'victim', at: (start - 1000) * 1000 }])
  const notHog = (account: string) => account !== 'hog'
  await read()
  t.equal(pages(), 11)
  t.same(take(300, notHog), ['victim'])
  for (let n = 0; n < 20; n++) {
    advance(100)
    add({ account_id: 'victim', at: (start + n * 100 + 50) * 1000 })
    waiting.expect(start + n * 100 + 50)
    await read()
    t.same(take(300, notHog), ['victim'])
  }
  t.ok(pages() <= 31, `${pages()} pages were read`)
  t.equal(queue.held, 500, 'of the other only some are held')
})

t.test('reads further attempts of an account once those read before are used up', async t => {
  const { queue, waiting, read, takeAttempts, advance, remove } = setup(
    Array.from({ length: 1200 }, () => ({ account_id: 'hog', at: (start - 1000) * 1000 }))
  )
  let taken = 0
  for (let n = 0; n < 8; n++) {
    await read()
    const some = takeAttempts(300)
    const ids = new Set(some.map(attempt => attempt.execution_id))
    remove(ids)
    waiting.ended(some, ids)
    taken += some.length
    advance(1000)
  }
  t.equal(taken, 1200)
  t.equal(queue.held, 0)
})

t.test('finds an attempt that was committed late, before the current position', async t => {
  const { waiting, read, take, add } = setup([{ account_id: 'a', at: start * 1000 }])
  await read()
  t.same(take(10), ['a'])
  add({ account_id: 'b', at: (start - 500) * 1000 + 7 })
  waiting.expect(start - 500)
  await read()
  t.same(take(10), ['b'])
})

t.test('takes nothing before it is due, and knows when the next attempt is', async t => {
  const { waiting, read, take, advance } = setup([{ account_id: 'a', at: (start + 5000) * 1000 }])
  await read()
  t.same(take(10), [])
  t.equal(waiting.wakeAt, start + 5000)
  advance(5000)
  await read()
  t.same(take(10), ['a'])
})

t.test('reads an attempt that could not be begun again after half a second', async t => {
  const { waiting, read, takeAttempts, remove, advance } = setup([0, 1].map(n => ({ account_id: `${n}`, at: (start - 1000 + n) * 1000 })))
  await read()
  const [locked, begun] = takeAttempts(2)
  const ids = new Set([begun!.execution_id])
  remove(ids)
  waiting.ended([locked!, begun!], ids)
  await read()
  t.same(takeAttempts(2), [])
  advance(500)
  await read()
  t.same(takeAttempts(2), [locked])
})
