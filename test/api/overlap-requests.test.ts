// Fires and replays that specify overlap, catch-up, and changes of a cue's overlap.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { minuteMs, overlapStage } from '../support/overlap-stage.ts'

const at = (minutes: number) => new Date(Date.parse('2030-01-15T09:00:00Z') + minutes * minuteMs)

t.test('a fire ignores the overlap of its cue', async t => {
  const { running, fn, account_id, states } = await overlapStage(t)
  for (const overlap of ['skip', 'queue_one', 'queue_all', 'cancel_previous']) {
    const cue_id = await running({ overlap })
    await fn.fireCue({ account_id, cue_id })
    t.same(await states(cue_id), ['pending', 'pending'], overlap)
  }
})

t.test('a fire that is skipped is refused, and leaves nothing behind', async t => {
  const { running, fn, account_id, states, used, run, rows, missed } = await overlapStage(t)
  const cue_id = await running({ overlap: 'queue_all' })
  const fire = { account_id, cue_id, overlap: 'skip' as const, idempotency_key: 'k', request_hash: 'h' }
  await t.rejects(fn.fireCue(fire), {
    code: 'QU029',
    message: `Cue ${cue_id} is running (overlap: skip). Try again when it has ended.`
  })
  await fn.fireCue({ account_id, cue_id, overlap: 'queue_one' })
  await t.rejects(fn.fireCue({ ...fire, overlap: 'queue_one' }), {
    code: 'QU029',
    message: `Cue ${cue_id} is running, and another execution is queued (overlap: queue_one). Try again when it has ended.`
  })
  t.same(await states(cue_id), ['pending', 'queued'])
  t.equal(await used(), 2)
  exactly(t, await run(cue_id), { run_count: 2, fired_count: 1 })
  t.equal((await rows('select * from cue.fires')).length, 1)
  t.same(await missed(cue_id), [], 'missed is for slots')
})

t.test('a fire or replay beyond 100 in the queue is refused', async t => {
  const { running, slot, fn, account_id, finish, begin, open } = await overlapStage(t)
  const cue_id = await running({ overlap: 'queue_all' })
  const [first] = await open(cue_id)
  await finish(await begin())
  for (let n = 0; n < 101; n++) await slot(cue_id)
  const full = { code: 'QU029', message: `The queue of cue ${cue_id} is full: 100 executions. Try again when one has ended.` }
  await t.rejects(fn.fireCue({ account_id, cue_id, overlap: 'queue_all' }), full)
  await t.rejects(fn.replayExecution({ account_id, execution_id: first!.id, overlap: 'queue_all' }), full)
})

t.test('a cue with overlap allow is tracked for a fire or replay that specifies one, until all have ended', async t => {
  const { cue, take, fn, account_id, finish, begin, states, run, clock, fireTracked, rows } = await overlapStage(t)
  const cue_id = await cue()
  const sent = await take([cue_id], { next: at(1) })
  await fn.fireCue({ account_id, cue_id })
  await t.rejects(fn.fireCue({ account_id, cue_id, overlap: 'skip' }), { code: 'QU029' })
  exactly(t, await run(cue_id), { tracked: false }, 'a refusal changes nothing')
  clock.advance('1 second')
  await fn.fireCue({ account_id, cue_id, overlap: 'queue_one' })
  exactly(t, await run(cue_id), { tracked: true })
  t.equal((await rows('select * from cue.open_executions')).length, 3)
  await finish(sent)
  const fired = await begin()
  t.equal(fired.length, 1, 'the queued one still waits')
  await finish(fired)
  const queued = await begin()
  t.equal(queued.length, 1)
  clock.set(at(1))
  t.equal(await fireTracked([cue_id]), 1)
  t.same(await states(cue_id), ['success', 'success', 'delivering', 'pending'], 'a slot runs beside it')
  await finish([...queued, ...(await begin())])
  clock.set(at(2))
  t.equal(await fireTracked([cue_id]), 1)
  exactly(t, await run(cue_id), { tracked: false })
  t.same(await rows('select * from cue.open_executions'), [])
  clock.set(at(3))
  t.equal((await take([cue_id])).length, 1, 'an ordinary cue again')
})

t.test('a replay follows the overlap that it specifies', async t => {
  const { running, slot, fn, account_id, finish, begin, states, open, clock } = await overlapStage(t)
  const cue_id = await running({ overlap: 'skip' })
  const [first] = await open(cue_id)
  const ids = { account_id, execution_id: first!.id }
  await finish(await begin())
  await slot(cue_id)
  await t.rejects(fn.replayExecution({ ...ids, overlap: 'skip' }), { code: 'QU029' })
  clock.advance('1 second')
  await fn.replayExecution({ ...ids, overlap: 'queue_one' })
  t.same(await states(cue_id), ['success', 'pending', 'queued'])
  clock.advance('1 second')
  await fn.replayExecution({ ...ids, overlap: 'cancel_previous' })
  t.same(await states(cue_id), ['success', 'failed', 'failed', 'pending'])
  clock.advance('1 second')
  await fn.replayExecution(ids)
  t.same(await states(cue_id), ['success', 'failed', 'failed', 'pending', 'pending'])
})

t.test('a deferred fire counts as running, and a queued one still waits for its time', async t => {
  const { cue, fn, account_id, begin, finish, fireTracked, states, clock, execution } = await overlapStage(t)
  const cue_id = await cue({ overlap: 'skip' })
  await fn.fireCue({ account_id, cue_id, send_at: at(10) })
  await fireTracked([cue_id])
  t.same(await states(cue_id), ['pending'])
  const { id } = await fn.fireCue({ account_id, cue_id, send_at: at(20), overlap: 'queue_one' })
  clock.set(at(10))
  await finish(await begin())
  exactly(t, await execution(id), { status: 'pending', attempt_due_at: at(20) })
})

const changed = { success_due: [], missed_after: '100 years' }

t.test('a cue that becomes tracked knows its executions, and an edit keeps the queue', async t => {
  const { cue, take, fn, account_id, clock, fireTracked, states, missed, finish, begin, run } = await overlapStage(t)
  const cue_id = await cue()
  const sent = await take([cue_id], { next: at(1) })
  const change = async (overlap: string) => {
    const { version } = await run(cue_id)
    await fn.updateCue({ account_id, cue_id, version, changes: JSON.stringify({ overlap }), next_run: null })
  }
  await change('skip')
  clock.set(at(1))
  await fireTracked([cue_id])
  t.same(await states(cue_id), ['delivering'])
  t.equal((await missed(cue_id)).length, 1)
  await change('queue_all')
  clock.set(at(2))
  await fireTracked([cue_id])
  await change('allow')
  clock.set(at(3))
  await fireTracked([cue_id])
  t.same(await states(cue_id), ['delivering', 'queued', 'pending'])
  await finish(sent)
  t.same(await states(cue_id), ['success', 'queued', 'pending'])
  await finish(await begin())
  t.same(await states(cue_id), ['success', 'pending', 'success'])
})

for (const [overlap, expected, dropped] of [
  ['skip', ['pending'], [{ first: at(1), last: at(4), count: 4, reason: 'overlap' }]],
  ['queue_one', ['pending', 'queued'], [{ first: at(2), last: at(4), count: 3, reason: 'overlap' }]],
  ['queue_all', ['pending', 'queued', 'queued', 'queued', 'queued'], []],
  ['cancel_previous', ['failed', 'failed', 'failed', 'failed', 'pending'], []]
] as const) {
  t.test(`slots that catch up follow ${overlap}`, async t => {
    const { cue, fn, clock, states, missed, run, used } = await overlapStage(t)
    const cue_id = await cue({ overlap, catch_up: 'replay_all_missed' })
    clock.set(at(5))
    const slots = [0, 1, 2, 3, 4].map(at)
    const cues = JSON.stringify([{ cue_id, version: 1, expected: at(0), next_run: at(6), slots, dropped: null }])
    t.equal(await fn.catchUpCues({ cues }), 1)
    t.same(await states(cue_id), expected)
    exactly(
      t,
      (await missed(cue_id)).map(({ policy, ...row }) => row),
      [...dropped]
    )
    exactly(t, await run(cue_id), { next_run: at(6), last_slot: at(4), fired_count: expected.length, run_count: expected.length })
    t.equal(await used(), expected.length)
  })
}

t.test('two engines that fire the same slot create one execution', async t => {
  const { running, clock, connect, states, run, open, begin, finish, rows } = await overlapStage(t)
  const cue_id = await running({ overlap: 'queue_all' })
  await finish(await begin())
  clock.advance('1 minute')
  const [runs] = [await rows('select * from cue.cue_runs where cue_id = $1', [cue_id])]
  const args = { cue_ids: [cue_id], versions: [runs[0].version], expected: [runs[0].next_run], next: [at(2)], ...changed }
  const [one, two] = await Promise.all([connect(), connect()])
  const moved = await Promise.all([one.fn.fireTrackedCues(args), two.fn.fireTrackedCues(args)])
  t.equal(moved[0]! + moved[1]!, 1)
  t.same(await states(cue_id), ['success', 'pending'])
  t.equal((await open(cue_id)).length, 1)
  exactly(t, await run(cue_id), { run_count: 2, fired_count: 2 })
})

t.test('a slot and a fire at the same time: one runs, the other is skipped', async t => {
  const { cue, connect, fn, account_id, fireTracked, rows } = await overlapStage(t)
  const cue_id = await cue({ overlap: 'skip' })
  const first = await connect()
  await first.client.query('begin')
  await first.fn.fireCue({ account_id, cue_id, overlap: 'skip' })
  t.equal(await fireTracked([cue_id]), 0, 'the cue is locked: left to the next look')
  const second = await connect()
  const refused = second.fn.fireCue({ account_id, cue_id, overlap: 'skip' }).catch(error => error.code)
  await second.blocked()
  await first.client.query('commit')
  t.equal(await refused, 'QU029')
  await fireTracked([cue_id], fn)
  t.equal((await rows('select * from cue.executions')).length, 1)
})

t.test('cancel_previous leaves a slot whose execution is locked to the next look', async t => {
  const { running, connect, slot, fireTracked, open, states } = await overlapStage(t)
  const cue_id = await running({ overlap: 'cancel_previous' })
  const [own] = await open(cue_id)
  const { client } = await connect()
  await client.query('begin')
  await client.query('select from cue.executions where id = $1 for update', [own!.id])
  t.equal(await slot(cue_id), 0)
  await client.query('rollback')
  t.equal(await fireTracked([cue_id]), 1)
  t.same(await states(cue_id), ['failed', 'pending'])
})
