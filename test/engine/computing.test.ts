// Computing schedules: an account that takes long delays only itself.
import t from 'tap'
import { createYield } from '../../src/database/yield.ts'
import { createComputing, type Steps } from '../../src/firing/computing.ts'
import { createSweep, untilMoved } from '../../src/firing/sweep.ts'
import { eventually } from '../support/eventually.ts'
import { prepared } from '../support/firing-stage.ts'

/** Computing on a clock that only computations move, and `advance`. */
const setup = () => {
  let time = 0
  const computing = createComputing(() => time)
  const done: string[] = []
  function* taking(ms: number, steps = 1): Steps<void> {
    for (let n = 0; n < steps; n++) {
      if (n > 0) yield
      time += ms / steps
    }
  }
  return {
    computing,
    done,
    /** Starts a computation. */
    start: (account: string, ms: number, steps?: number) =>
      computing.run(account, () => taking(ms, steps)).then(() => void done.push(account)),
    advance: (ms: number) => {
      time += ms
    }
  }
}

t.test('an account that has used more than its share is passed over until it is below again, and nobody else waits', async t => {
  const { computing, done, start, advance } = setup()
  void start('a', 500)
  void start('a', 1)
  for (let n = 0; n < 5; n++) void start('b', 1)
  await eventually(() => done.length === 6)
  t.same(done, ['a', 'b', 'b', 'b', 'b', 'b'])
  t.same(computing.passedOver(), ['a'])
  advance(900)
  await prepared()
  t.same(computing.passedOver(), ['a'], 'a second of its share was not enough')
  t.equal(done.length, 6)
  advance(200)
  await eventually(() => done.length === 7)
  t.same(computing.passedOver(), [])
})

t.test('accounts that need much share a quarter of each second, and others take nothing from it', async t => {
  const { computing, start, advance } = setup()
  const many = Array.from({ length: 5 }, (_, n) => `heavy ${n}`)
  for (const account of many) await start(account, 300)
  for (let n = 0; n < 1000; n++) await start(`light ${n}`, 0.01)
  t.same(computing.passedOver(), many)
  advance(4000)
  t.same(computing.passedOver(), [])
  advance(10_000)
  await start('alone', 240)
  t.same(computing.passedOver(), [])
})

t.test('a long computation lets other accounts, and everything else, have their turns', async t => {
  const { done, start } = setup()
  void start('a', 100, 100)
  setImmediate(() => done.push('event loop'))
  void start('b', 1)
  await eventually(() => done.length === 3)
  t.same(done.sort(), ['a', 'b', 'event loop'])
})

t.test('an error ends only the computation that throws it', async t => {
  const { computing, start } = setup()
  const broken = computing.run('a', function* (): Steps<void> {
    yield
    throw new Error('broken')
  })
  await t.rejects(broken, { message: 'broken' })
  await start('a', 1)
})

t.test('cues that a sweep cannot move hold up no others, however many they are', async t => {
  const { computing } = setup()
  const rows = Array.from({ length: 1000 }, (_, n) => ({ cue_id: `cue ${n}`, account_id: n < 10 ? 'slow' : 'a', calendars: null }))
  const [locked, broken, refused] = [new Set(rows.slice(0, 450)), rows[460], rows[470]]
  const due = new Set(rows)
  const errors: string[] = []
  const sweep = untilMoved(
    createSweep<(typeof rows)[0], string>(
      {
        fn: { calendarsByRevision: async () => [] },
        computing,
        onError: (error, task) => errors.push(`${task}: ${(error as Error).message}`)
      },
      {
        task: 'move',
        read: async ({ limit, skip }) => [...due].filter(({ cue_id }) => !skip.includes(cue_id)).slice(0, limit),
        compute: row => {
          if (row === broken) throw new Error('broken')
          return row.cue_id
        },
        write: async moves => {
          if (moves.some(({ row }) => row === refused)) throw Object.assign(new Error('refused'), { code: '54000' })
          const free = moves.filter(({ row }) => !locked.has(row))
          for (const { row } of free) due.delete(row)
          return free.length
        }
      }
    )
  )
  let moved = 0
  for (let count = await sweep(); count > 0; count = await sweep()) moved += count
  t.equal(moved, 1000 - 450 - 2)
  t.same(errors.sort(), ['move of cue cue 460: broken', 'move of cue cue 470: refused'])
})

t.test('a sweep does not wait for accounts that are passed over, and writes their cues later', async t => {
  const { computing, advance } = setup()
  const rows = ['a', 'a', 'b'].map((account_id, n) => ({ cue_id: `cue ${n}`, account_id, calendars: null }))
  const due = new Set(rows)
  const page = createSweep<(typeof rows)[0], null>(
    { fn: { calendarsByRevision: async () => [] }, computing },
    {
      task: 'move',
      read: async ({ skip }) => [...due].filter(({ cue_id }) => !skip.includes(cue_id)),
      compute: ({ account_id }) => {
        if (account_id === 'a') advance(1000)
        return null
      },
      write: async moves => {
        for (const { row } of moves) due.delete(row)
        return moves.length
      }
    }
  )
  t.same(await page(), { count: 2, isFull: false })
  t.same([...due], [rows[1]])
  advance(4000)
  await eventually(async () => (await page()).count === 1)
  t.equal(due.size, 0)
})

t.test('of the long work of several requests, one part runs in each turn of the event loop', async t => {
  let turn = 0
  const parts: number[] = []
  let counting = setImmediate(function count() {
    turn++
    counting = setImmediate(count)
  })
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      const yieldToRequests = createYield()
      for (let n = 0; n < 3; n++) {
        for (const end = performance.now() + 6; performance.now() < end; );
        await yieldToRequests()
        parts.push(turn)
      }
    })
  )
  clearImmediate(counting)
  t.equal(parts.length, 15)
  t.equal(new Set(parts).size, 15, `parts began in turns ${parts}`)
})
