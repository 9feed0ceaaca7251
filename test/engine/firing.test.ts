// Due cues that need no delivery slot: no cue or account may block the others.
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { bisect } from '../../src/database/bisect.ts'
import { createFiring } from '../../src/firing/fire-others.ts'
import { createAhead } from '../../src/firing/look-ahead.ts'
import { exactly } from '../support/exactly.ts'
import { prepared } from '../support/firing-stage.ts'
import { once, type Row, stage } from '../support/stage.ts'

const worker = { transport: 'worker', callback_url: null, cron: '* * * * *' }

const setup = async (t: Test) => {
  const s = await stage(t)
  const ahead = createAhead({ fn: s.fn, now: () => s.clock.now().getTime() + 2, pollIntervalMs: 5000 })
  const logged: Row[] = []
  const log = pino({ level: 'error' }, { write: line => logged.push(JSON.parse(line)) })
  const firing = createFiring({ fn: s.fn, ahead, missedAfter: '60 seconds', log })
  return {
    ...s,
    logged,
    /** Fires the cues due at this instant. */
    fireAt: async (at: string) => {
      s.clock.set(at)
      await s.beat('1 day')
      ahead.reset()
      await ahead.look()
      await prepared()
      await firing.workers()
      await firing.missed()
      await firing.tracked()
    },
    fired: async () => (await s.rows('select cue_id from cue.executions order by id')).map(row => row.cue_id)
  }
}

t.test('a cue that fails to fire does not block others and is retried after a minute', async t => {
  const { cue, fireAt, fired, logged, pool } = await setup(t)
  const ids = []
  for (let n = 0; n < 7; n++) ids.push(await cue(worker))
  const spoiled = ids[4]!
  await pool.query(
    `create function public.spoil() returns trigger language plpgsql as $$ begin raise 'no index holds this' using errcode = '54000'; end $$`
  )
  await pool.query(
    `create trigger spoil before insert on cue.executions for each row when (new.cue_id = '${spoiled}') execute function public.spoil()`
  )
  await fireAt('2030-01-15T09:00:00Z')
  const others = ids.filter(id => id !== spoiled)
  t.same((await fired()).toSorted(), others.toSorted())
  await fireAt('2030-01-15T09:00:30Z')
  t.equal((await fired()).length, 6, 'it is not retried at every look')
  exactly(t, logged, [{ cue_id: spoiled, err: { code: '54000' }, msg: 'due cue skipped: it cannot be fired' }])
  await pool.query('drop trigger spoil on cue.executions')
  await fireAt('2030-01-15T09:01:00Z')
  t.ok((await fired()).includes(spoiled))
  t.equal(logged.length, 1)
})

t.test('a schedule above the execution limit continues after an outage', async t => {
  const { cue, fireAt, clock, beat, rows, run } = await setup(t)
  const id = await cue({ ...worker, cron: '0 * * * *', catch_up: 'replay_all_missed' }, { next_run: new Date('2030-01-15T10:00:00Z') })
  const single = await cue({ ...once, ...worker, cron: null }, { next_run: new Date('2030-01-15T10:00:00Z') })
  await rows("update cue.accounts set limit_reached_at = '2030-01-13T09:00:00Z'")
  clock.set('2030-01-15T12:30:00Z')
  exactly(t, await beat('60 seconds'), { outage_recorded: true })
  await fireAt('2030-01-15T12:30:00Z')
  exactly(t, await run(id), { status: 'active', next_run: new Date('2030-01-15T13:00:00Z'), run_count: 0 })
  exactly(t, await rows('select * from cue.missed_slots'), [
    {
      cue_id: id,
      first: new Date('2030-01-15T10:00:00Z'),
      last: new Date('2030-01-15T12:00:00Z'),
      count: 3,
      policy: 'replay_all_missed',
      reason: 'execution_limit'
    }
  ])
  exactly(t, await rows('select * from cue.executions'), [{ cue_id: single, status: 'failed', error_message: /^execution_limit_exceeded/ }])
  await fireAt('2030-01-15T13:00:00Z')
  exactly(t, await run(id), { status: 'active', next_run: new Date('2030-01-15T14:00:00Z') })
})

t.test('bisects a batch that is refused, and throws if the database is unavailable', async t => {
  const tried: number[][] = []
  const left: number[] = []
  const run = async (batch: number[]) => {
    tried.push(batch)
    if (batch.includes(3)) throw Object.assign(new Error('too long'), { code: '54000' })
    return batch
  }
  t.same(await bisect([1, 2, 3, 4, 5], run, one => left.push(one)), [1, 2, 4, 5])
  t.same(left, [3])
  t.same(tried, [[1, 2, 3, 4, 5], [1, 2], [3, 4, 5], [3], [4, 5]])
  const spoiled = (codes: Record<number, string>) => async (batch: number[]) => {
    const item = batch.find(item => codes[item])
    if (item) throw Object.assign(new Error('no'), { code: codes[item] })
    return batch
  }
  t.same(await bisect([1, 2, 3], spoiled({ 2: 'XX001' }), one => left.push(one)), [1, 3], 'a damaged row')
  t.same(left, [3, 2])
  await t.rejects(
    bisect([1, 2, 3], spoiled({ 1: '42501', 2: '42501', 3: '42501' }), () => t.fail('nobody is at fault')),
    { code: '42501' }
  )
  let isBroken = true
  const recovering = async (batch: number[]) => {
    const wasBroken = isBroken
    isBroken &&= batch.length > 1 || batch[0] !== 2
    return wasBroken ? Promise.reject(Object.assign(new Error('no'), { code: '58030' })) : batch
  }
  t.same(await bisect([1, 2, 3], recovering, () => t.fail('nobody is at fault')), [3, 1, 2], 'the disk works again meanwhile')
  const away = Object.assign(new Error('gone'), { code: '57P01' })
  await t.rejects(
    bisect(
      [1, 2],
      () => Promise.reject(away),
      () => t.fail('nobody is at fault')
    ),
    away
  )
})
