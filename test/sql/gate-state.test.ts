// The state of gates with parts, and statements that began before others which have committed since.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { gatesStage } from '../support/gates-stage.ts'
import { refused } from '../support/stage.ts'

t.test('the state of a gate sums its parts, and lists the ten busiest', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1, budget_limit: '5', budget_unit: 'usd', budget_period: 'day', budget_timezone: 'UTC', budget_reserve: '0.5' })
  for (let n = 0; n < 12; n++) {
    const cue = await s.cue({ gate: n === 11 ? 'g' : `g#p${n}` })
    for (let i = 0; i <= n % 3; i++) await s.fire(cue)
  }
  t.equal((await s.begin()).length, 12)
  s.later(5000)
  const [state] = await s.rows("select * from cue.gate_states($1, 'g', $2)", [s.account_id, s.clock.now()])
  exactly(t, state, { running: 12, waiting: 12, oldest_waiting_seconds: Number, spent: '0', reserved: '6', breaker_state: null })
  t.same(
    state.parts.map(({ part, running, waiting }: Record<string, unknown>) => [part, running, waiting]),
    [...['p2', 'p5', 'p8'].map(p => [p, 1, 2]), ...['p1', 'p10', 'p4', 'p7'].map(p => [p, 1, 1]), ...['p0', 'p3', 'p6'].map(p => [p, 1, 0])]
  )
  t.same(await s.rows("select * from cue.gate_states($1, 'other', $2)", [s.account_id, s.clock.now()]), [])
})

t.test('a statement that began before a breaker closed starts one attempt, not all', async t => {
  const s = await gatesStage(t)
  const room = async (ms: number, from: Date | null = s.clock.now()) =>
    (
      await s.row(
        `select room from cue.breaker_room(
         jsonb_populate_record(null::cue.gate_parts, jsonb_build_object('starts', 7, 'ramp_starts', 7, 'ramp_from', $1::timestamptz)), 100, $2)`,
        [from, new Date(+s.clock.now() + ms)]
      )
    ).room
  t.same([await room(-5), await room(0), await room(1100), await room(2500)], [1, 1, 3, 7])
  t.equal(await room(0, null), 100, 'without a ramp')
})

t.test('failures in a row are counted in the order in which results were recorded', async t => {
  const s = await gatesStage(t)
  await s.gate({ breaker_failures: 2, breaker_open_seconds: 30, breaker_max_open_seconds: 30 })
  const cues = [await s.cue({ gate: 'g', retry_max_attempts: 1 }), await s.cue({ gate: 'g', retry_max_attempts: 1 })]
  for (let n = 0; n < 4; n++) await s.fire(cues[n % 2]!)
  const [a, b, c, d] = await s.begin()
  await s.rows('update cue.gate_parts set failures = 1')
  const { client } = await s.connect()
  await client.query('begin')
  await client.query("select cue.lock_part($1, 'g')", [s.account_id])
  await s.settle([a!], {})
  await s.settle([b!], refused)
  await client.query('rollback')
  await s.settle([c!], {})
  exactly(t, await s.row('select failures, opened_at from cue.gate_parts'), { failures: 0, opened_at: null })
  await s.settle([d!], refused)
  exactly(t, await s.row('select failures, opened_at from cue.gate_parts'), { failures: 1, opened_at: null })
})

t.test('a statement that began before the end of a period does not bring that period back', async t => {
  const s = await gatesStage(t)
  await s.gate({ budget_limit: '1', budget_unit: 'usd', budget_period: 'day', budget_timezone: 'UTC' })
  const midnight = new Date('2030-01-16T00:00:00Z')
  const start = async (now: Date) =>
    await s.row(
      `select (cue.fold_budget(g, jsonb_populate_record(null::cue.gate_parts, jsonb_build_object(
         'gate', 'g', 'spent', 0.5, 'spent_unit', 'usd', 'budget_noted', 2, 'period_start', $1::timestamptz)), $2)).*
         from cue.gates g`,
      [midnight, now]
    )
  exactly(t, await start(new Date(+midnight - 5)), { period_start: midnight, budget_noted: 2 })
  exactly(t, await start(new Date(+midnight + 86_400_000)), { period_start: new Date(+midnight + 86_400_000), budget_noted: 0 })
})

// With 10,000 waiting, a count takes some milliseconds.
t.test('many slots that come due at a full gate count once what waits there, and are all missed', async t => {
  const s = await gatesStage(t)
  await s.rows('create or replace function cue.gate_limit() returns int language sql immutable as $$ select 2 $$')
  await s.gate({ parallel: 1 })
  const cues: string[] = []
  for (let n = 0; n < 20; n++) cues.push(await s.cue({ gate: 'g' }))
  for (const cue of cues.slice(0, 3)) await s.fire(cue)
  const { client, fn } = await s.connect()
  await client.query("set track_functions = 'all'")
  t.equal(await s.fireTracked(cues, fn), 20)
  await client.query('select pg_stat_force_next_flush()')
  const { calls } = await s.row("select calls::int from pg_stat_user_functions where funcname = 'is_gate_full'")
  t.ok(calls < 5, `${calls} counts`)
  const missed = await s.rows("select cue_id from cue.missed_slots where reason = 'queue_full' order by cue_id")
  t.same(
    missed.map(row => row.cue_id),
    cues.toSorted()
  )
})
