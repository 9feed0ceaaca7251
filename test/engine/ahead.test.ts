/** Looking ahead: which cues an engine takes, and when. */
import t from 'tap'
import { createComputing } from '../../src/firing/computing.ts'
import { createAhead } from '../../src/firing/look-ahead.ts'
import { bySchedule } from '../support/by-schedule.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { type LookAheadRow, prepared } from '../support/firing-stage.ts'

const start = Date.parse('2030-01-15T09:00:00Z')

/** Engines that see the same cues, at a time set by the test. */
const setup = (cues: Partial<LookAheadRow>[], options: Partial<Parameters<typeof createAhead>[0]> = {}, count = 1) => {
  let time = start
  let looks = 0
  const rowsOf = (some: Partial<LookAheadRow>[]) =>
    some.map(cue => ({
      account_id: 'a',
      version: 1,
      next_run: new Date(start + 100),
      transport: 'webhook',
      schedule_type: 'recurring',
      cron: '@daily',
      timezone: 'UTC',
      catch_up: 'skip_missed',
      outage_until: null,
      over_limit: false,
      window_slots: null,
      ...cue
    })) as LookAheadRow[]
  // Made in advance: the time that a look takes puts off the next.
  let rows = bySchedule(rowsOf(cues))
  /** What engines see from now on. */
  const sees = (some: Partial<LookAheadRow>[]) => {
    rows = bySchedule(rowsOf(some))
  }
  const lookAheadBySchedule = async () => {
    looks++
    return rows
  }
  const engines = Array.from({ length: count }, () =>
    createAhead({
      fn: { lookAheadBySchedule, calendarsByRevision: async () => [] },
      now: () => time,
      pollIntervalMs: 5000,
      ...options
    })
  )
  const at = (ms: number) => {
    time = start + ms
  }
  return { engines, at, look: () => Promise.all(engines.map(engine => engine.look())), looks: () => looks, sees }
}

const cuesOf = (count: number) => Array.from({ length: count }, (_, n) => ({ cue_id: `cue_${String(n).padStart(12, 'x')}` }))
const many = cuesOf(3000)
const few = cuesOf(300)
const ids = (cues: { cue_id: string }[]) => cues.map(({ cue_id }) => cue_id).sort()

t.test('engines take the same cues, beginning at different ones', async t => {
  const { engines, at, look } = setup(many, {}, 7)
  await look()
  at(99)
  for (const engine of engines) t.same(engine.takeDue('send', 5000).cues, [])
  at(100)
  const taken = engines.map(engine => engine.takeDue('send', 5000).cues)
  for (const cues of taken) t.same(ids(cues), ids(many))
  t.not(new Set(taken.map(([first]) => first!.cue_id)).size, 1)
})

t.test('while cues are near, an engine looks every 900 ms, unless a thousand are due', async t => {
  const { engines, at, look } = setup(many)
  const [engine] = engines as [(typeof engines)[0]]
  await look()
  at(99)
  t.equal(engine.wakeAt, start + 100)
  at(899)
  t.notOk(engine.isLookDue())
  at(900)
  t.notOk(engine.isLookDue(), '3,000 are due')
  engine.takeDue('send', 2000)
  t.notOk(engine.isLookDue(), '1,000 are')
  engine.takeDue('send', 1)
  t.ok(engine.isLookDue(), '999 are')
})

t.test('a look that finds a full page is followed by another at once', async t => {
  const { engines, at, look } = setup(cuesOf(16_384).map(cue => ({ ...cue, next_run: new Date(start + 1400) })))
  const [engine] = engines as [(typeof engines)[0]]
  await look()
  at(19)
  t.notOk(engine.isLookDue())
  at(800)
  t.ok(engine.isLookDue())
})

t.test('a look leaves out cues that are being taken', async t => {
  const { engines, at, look } = setup(few)
  const [engine] = engines as [(typeof engines)[0]]
  await look()
  at(150)
  const cues = engine.takeDue('send', 100).cues
  await look()
  t.equal(engine.takeDue('send', 1000).cues.length, 200)
  engine.doneWith(cues)
  await look()
  t.same(ids(engine.takeDue('send', 1000).cues), ids(cues))
})

t.test('after a look during which the only near cue was taken, the next one is a regular one', async t => {
  const { engines, at, look, sees } = setup(few.slice(0, 1))
  const [engine] = engines as [(typeof engines)[0]]
  await look()
  at(99)
  sees([])
  const looked = look()
  at(100)
  const taken = engine.takeDue('send', 1).cues
  t.equal(taken.length, 1)
  await looked
  engine.doneWith(taken)
  at(998)
  t.notOk(engine.isLookDue())
  at(999)
  t.ok(engine.isLookDue(), 'it may be due again in a moment')
})

t.test('a cue that could not be taken when due is tried once more without another look', async t => {
  const { engines, at, look, looks } = setup(few.slice(0, 1))
  const [engine] = engines as [(typeof engines)[0]]
  await look()
  at(100)
  const [cue] = engine.takeDue('send', 1).cues
  engine.tryAgain(cue!)
  t.same(engine.takeDue('send', 1).cues, [])
  t.equal(engine.wakeAt, start + 105)
  at(105)
  const [again] = engine.takeDue('send', 1).cues
  exactly(t, again, { cue_id: cue!.cue_id, slot: cue!.slot })
  engine.tryAgain(again!)
  at(899)
  t.same(engine.takeDue('send', 1).cues, [])
  t.notOk(engine.isLookDue())
  at(900)
  t.ok(engine.isLookDue(), 'the next look finds the remaining cue')
  t.equal(looks(), 1)
})

t.test('cues that are read in one row share a schedule, but neither accounts, versions nor instants; others have their own', async t => {
  let time = start
  const [alone] = bySchedule([
    {
      next_run: new Date(start + 1000),
      transport: 'webhook',
      schedule_type: 'recurring',
      cron: '* * * * * *',
      timezone: 'UTC',
      outage_until: null
    } as LookAheadRow
  ])
  const row = {
    ...alone!,
    cue_ids: ['cue_a', 'cue_b', 'cue_c'],
    account_ids: ['a', 'b', 'a'],
    versions: [1, 2, 3],
    next_runs: [start + 1000, start + 1000, start + 1400]
  }
  const other = { ...row, cron: '*/5 * * * * *', cue_ids: ['cue_d'], account_ids: ['a'], versions: [4], next_runs: [start + 1400] }
  const ahead = createAhead({
    fn: { lookAheadBySchedule: async () => [row, other], calendarsByRevision: async () => [] },
    now: () => time,
    pollIntervalMs: 5000
  })
  await ahead.look()
  const taken = (ms: number) => {
    time = start + ms
    const cues = ahead
      .takeDue('send', 10)
      .cues.map(cue => [cue.cue_id, cue.account_id, cue.version, +cue.slot.next_run - start, +cue.slot.next!.due - start])
    return cues.sort()
  }
  t.strictSame(taken(999), [])
  t.strictSame(taken(1000), [
    ['cue_a', 'a', 1, 1000, 2000],
    ['cue_b', 'b', 2, 1000, 2000]
  ])
  t.strictSame(taken(1400), [
    ['cue_c', 'a', 3, 1400, 2000],
    ['cue_d', 'a', 4, 1400, 5000]
  ])
})

t.test('an engine takes worker cues only when they are certainly due', async t => {
  const { engines, at, look } = setup([{ ...few[0], transport: 'worker' }])
  await look()
  at(101)
  t.same(engines[0]!.takeDue('workers', 1).cues, [])
  at(102)
  t.equal(engines[0]!.takeDue('workers', 1).cues.length, 1)
})

t.test('a notification causes an extra look only if no regular look is in time', async t => {
  const { engines, at, look } = setup(few.slice(0, 1))
  const [engine] = engines as [(typeof engines)[0]]
  await look()
  const lookAt = () => {
    for (let ms = 0; ; ms++) {
      at(ms)
      if (engine.isLookDue()) return ms
    }
  }
  t.equal(lookAt(), 900, 'something is near')
  for (const ms of [1501, 2500, 60_000]) engine.expect(start + ms)
  t.equal(lookAt(), 900)
  engine.expect(start + 1000)
  t.equal(lookAt(), 400, '600 ms before it is due')
  const soon = setup([])
  await soon.look()
  soon.engines[0]!.expect(start + 100)
  soon.at(1000)
  t.ok(soon.engines[0]!.isLookDue(), 'at once')

  const idle = setup([])
  await idle.look()
  idle.engines[0]!.expect(start + 4000)
  idle.at(3399)
  t.notOk(idle.engines[0]!.isLookDue())
  idle.at(3400)
  t.ok(idle.engines[0]!.isLookDue())
})

t.test('a reading of the first due cue takes the place of a look while none is near', async t => {
  const { engines, at, look, sees } = setup([])
  const [engine] = engines as [(typeof engines)[0]]
  const never = Number.POSITIVE_INFINITY
  /** When the engine looks next, in milliseconds after the start. */
  const lookAt = (from: number) => {
    for (let ms = from; ; ms++) {
      at(ms)
      if (engine.isLookDue()) return ms
    }
  }
  await look()
  t.equal(engine.wakeAt, start + 5000)
  t.equal(lookAt(0), 5000, 'without a reading')
  at(4000)
  engine.firstIs(never)
  t.equal(engine.wakeAt, start + 9000)
  engine.firstIs(start + 3999)
  t.equal(lookAt(4000), 9000, 'only a look finds out why one is still due')
  await look()
  at(13_000)
  engine.firstIs(start + 18_200)
  t.equal(lookAt(13_000), 17_600, '600 ms before it is due')
  await look()
  at(18_000)
  engine.firstIs(start + 18_500)
  t.equal(lookAt(18_000), 18_000, 'the latest look should have seen it')
  sees([{ next_run: new Date(start + 18_500) }])
  await look()
  at(18_500)
  t.equal(engine.takeDue('send', 1).cues.length, 1)
  engine.firstIs(never)
  t.equal(lookAt(18_500), 18_900, 'a regular look, since one was near')
})

const ruled = { schedule_rules: { max_runs: 5 }, runs_left: 5 }

t.test('cues whose schedule cannot be computed hold up no others, and are tried again after a minute', async t => {
  const errors: string[] = []
  const broken = { cron: 'no cron' }
  const cues = [{ cue_id: 'a' }, { cue_id: 'b', ...broken }, { cue_id: 'c', ...ruled }, { cue_id: 'd', ...ruled, ...broken }]
  const { engines, at, look } = setup(cues, { onError: (_, task) => errors.push(task) })
  const [engine] = engines as [(typeof engines)[0]]
  for (const [ms, times] of [
    [100, 1],
    [60_000, 1],
    [60_101, 2]
  ] as const) {
    at(ms)
    await look()
    await prepared()
    at(ms + 1)
    const taken = engine.takeDue('send', 10).cues
    t.same(ids(taken), ['a', 'c'])
    engine.doneWith(taken)
    engine.reset()
    t.same(
      errors.sort(),
      ['b', 'd'].flatMap(id => Array(times).fill(`prepare cue ${id}`))
    )
  }
})

t.test('an account that is passed over delays only its own cues', async t => {
  let time = 0
  let woken = 0
  const computing = createComputing(() => time)
  await computing.run('slow', () => {
    time += 10_000
  })
  const cues = [
    { cue_id: 'a', ...ruled },
    { cue_id: 'b', ...ruled, account_id: 'slow' },
    { cue_id: 'c', account_id: 'slow' }
  ]
  const { engines, at, look } = setup(cues, { computing, onPrepared: () => woken++ })
  const [engine] = engines as [(typeof engines)[0]]
  await look()
  await prepared()
  at(100)
  t.same(ids(engine.takeDue('send', 10).cues), ['a', 'c'], 'plain schedules are computed for all that share them')
  t.equal(woken, 1)
  time += 60_000
  await eventually(() => woken === 2)
  t.same(ids(engine.takeDue('send', 10).cues), ['b'])
})
