// Two engines, edits, pauses, fires, limits and outages in any order: a cue never takes more slots than max_runs allows, none twice, none outside
// its bounds, and completes exactly when none is left.
import t from 'tap'
import { createFunctions } from '../../src/database/functions.ts'
import { createPauseSweep } from '../../src/firing/ended-pauses.ts'
import { type Schedule, timetableOf } from '../../src/schedule/schedule.ts'
import { fire, look, type Seen } from '../support/firing-stage.ts'
import { below, cases, chance, pick } from '../support/seed.ts'
import { build } from '../support/setup.ts'

const start = new Date('2030-01-15T09:00:00Z')
const count = 12

/** A cue, and what it has run. */
type Model = { id: string; schedule: Schedule; slots: Set<number>; wasPaused: boolean }

t.test(`cues take no slot too many, whatever happens (${cases(150)} steps)`, async t => {
  const { call, post, get, fn, pool, clock } = await build(t, start.toISOString(), { env: { PLANS: '{"free":{"cues":100}}' } })
  const rows = async (text: string, values: unknown[] = []) => (await pool.query(text, values)).rows
  const engines = [
    { fn, seen: [] as Seen },
    { fn: createFunctions(pool, clock.now), seen: [] as Seen }
  ]
  const beat = (missed_after: string) =>
    fn.beatEngine({ engine_id: '00000000-0000-0000-0000-000000000001', version: 't', lateness_ms: null, open_deliveries: 0, missed_after })
  await beat('100 years')
  const instant = () => new Date(clock.now().getTime() + below(1_200_000)).toISOString()
  const drawn = () => ({
    ...pick<object>([
      { cron: '* * * * *' },
      { every: '90s' },
      { every: '10s', anchor: instant() },
      { crons: ['*/2 * * * *', '*/3 * * * *'] }
    ]),
    ...(chance(0.7) && { max_runs: 1 + below(8) }),
    ...(chance(0.4) && { ends_at: instant() }),
    ...(chance(0.2) && { starts_at: instant() })
  })
  const models: Model[] = []
  const urls = { callback: { url: 'http://127.0.0.1:5555/hook' } }
  const create = async () => {
    const catch_up = pick(['skip_missed', 'run_once_if_missed', 'replay_all_missed'])
    const made = await call('POST', '/v1/cues', { name: 'n', schedule: drawn(), catch_up, ...(chance(0.3) ? { worker: true } : urls) })
    if (made.status === 201) models.push({ id: made.body.id, schedule: made.body.schedule, slots: new Set(), wasPaused: false })
  }
  while (models.length < count) await create()

  const sees = async (engine: (typeof engines)[0]) => {
    engine.seen = await look({ fn: engine.fn, clock } as never)
  }
  const steps: [weight: number, step: () => Promise<unknown>][] = [
    [5, async () => clock.set(new Date(clock.now().getTime() + below(100_000)))],
    [5, () => sees(pick(engines))],
    [5, async () => fire(pick(engines).seen, pick(engines).fn)],
    [4, async () => Promise.all(engines.map(({ seen, fn }) => fire(seen, fn)))],
    [3, async () => change(pick(models), { schedule: { ...drawn(), ...(chance(0.5) && { ends_at: null }) } })],
    [2, async () => change(pick(models), { schedule: { max_runs: 1 + below(12) } })],
    [1, async () => change(pick(models), { status: pick(['active', 'paused']) })],
    [1, async () => post(`/v1/cues/${pick(models).id}/pause`, { until: instant() })],
    [1, async () => createPauseSweep({ fn })()],
    [1, async () => post(`/v1/cues/${pick(models).id}/fire`)],
    [1, async () => limitAt(chance(0.5) ? null : new Date(clock.now().getTime() - 90_000_000))],
    [1, away]
  ]
  async function limitAt(at: Date | null) {
    const accounts = await rows('update cue.accounts set limit_reached_at = $1 returning id', [at])
    await rows('select cue.retry_refused($1, $2)', [accounts.map(({ id }) => id), clock.now()])
  }
  async function away() {
    clock.set(new Date(clock.now().getTime() + 61_000 + below(900_000)))
    await beat('60 seconds')
  }
  async function change(model: Model, body: object) {
    const { status, body: cue } = await call('PATCH', `/v1/cues/${model.id}`, body)
    if (status >= 500) t.fail(`${status} ${JSON.stringify([body, cue])}`)
    if (status === 200) model.schedule = cue.schedule
  }

  /** Compares each cue with what may have happened to it. */
  const check = async (what: string) => {
    const all = await rows(
      `select c.id, c.status, c.completed_reason, coalesce(r.refused_from, r.next_run) as next_run, r.last_slot, r.fired_count::int - coalesce(r.skipped_count, 0) as taken,
              array(select extract(epoch from e.scheduled_for) * 1000 from cue.executions e where e.cue_id = c.id and e.triggered_by = 'schedule'
                       and coalesce(e.error_message, '') not like 'execution_limit%' order by e.scheduled_for)::float8[] as slots
         from cue.cues c join cue.cue_runs r on r.cue_id = c.id`
    )
    for (const { id, status, completed_reason, next_run, last_slot, taken, slots } of all) {
      const model = models.find(one => one.id === id)!
      const { schedule } = model
      const timetable = timetableOf(schedule)
      const max = (schedule.type === 'recurring' && schedule.max_runs) || Infinity
      const fail = (why: string) => {
        const about = { id, status, completed_reason, next_run, last_slot, taken, slots, schedule, now: clock.now() }
        throw new Error(`${what}: ${why}: ${JSON.stringify(about)}`)
      }
      if (taken !== slots.length) fail('runs are not counted right')
      if (new Set(slots).size !== slots.length) fail('a slot ran twice')
      if (slots.length > max) fail('more runs than max_runs')
      for (const slot of slots)
        if (!model.slots.has(slot) && timetable.next(slot - 1) !== slot) fail(`ran at ${new Date(slot).toISOString()}`)
      model.slots = new Set(slots)
      if (status === 'active' && slots.length === max) fail('active although no run is left')
      if (status === 'active' && (next_run === null || timetable.next(+next_run - 1) !== +next_run)) fail('active without a slot')
      if (status !== 'active' && next_run !== null) fail('has a slot')
      if (status === 'completed' && completed_reason === 'max_runs' && slots.length !== max) fail('completed too early')
      const hasEnded = status === 'completed' && completed_reason === 'ended'
      // The slots of a pause do not run: one that lasts beyond the end leaves none.
      if (hasEnded && !model.wasPaused && timetable.next(last_slot ? +last_slot : 0) <= +clock.now()) fail('ended before its last slot')
      if (!hasEnded) model.wasPaused = status === 'paused'
    }
    return all
  }

  const bag = steps.flatMap(([weight, step]) => Array(weight).fill(step) as (typeof step)[])
  for (let n = 0; n < cases(150); n++) {
    const step = pick(bag)
    await step()
    await beat('100 years')
    const all = await check(`step ${n}, ${step}`)
    const live = new Set(all.filter(({ status }) => status === 'active' || status === 'paused').map(({ id }) => id))
    if (live.size < count / 2) await create()
  }

  await limitAt(null)
  for (const model of models) await change(model, { status: 'active' })
  // After any starts_at, or it would be refused.
  for (const model of models) await change(model, { schedule: { ends_at: new Date(clock.now().getTime() + 1_800_000).toISOString() } })
  // One slot of each cue a turn: a cue may be hours behind.
  let left: object[] = models
  for (let n = 0; n < 3000 && left.length > 0; n++) {
    await Promise.all(engines.map(sees))
    await Promise.all(engines.map(({ seen, fn }) => fire(seen, fn)))
    if (engines.every(({ seen }) => seen.length === 0)) clock.set(new Date(clock.now().getTime() + 10_000))
    await beat('100 years')
    if (n % 10 === 0) left = (await check(`the end, turn ${n}`)).filter(({ status }) => status === 'active')
  }
  t.same(left, [], 'all have completed')
  t.ok((await get('/v1/cues?status=completed')).total > 0)
})
