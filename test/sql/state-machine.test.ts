/**
 * Random walks through every operation on executions and their cues, by one to four concurrent callers, checked against a model after each step.
 * TEST_CASES=840 makes a million steps.
 */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { BegunAttempt, Functions } from '../../src/database/functions.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { firstSlot } from '../support/cue-model.ts'
import { createCueSteps, drawOverlap } from '../support/cue-steps.ts'
import { isQueued } from '../support/overlap-model.ts'
import { setLockTimeout } from '../support/patient.ts'
import { below, cases, chance, pick, random } from '../support/seed.ts'
import { awaiting, type Result, refused, resultsOf, stage } from '../support/stage.ts'
import { type Cue, createDriver, type Step } from '../support/state-driver.ts'
import { move, type Operation, type State } from '../support/state-model.ts'

const steps = cases(1200)

t.setTimeout(0) // a long walk takes its time

t.test(`${steps} random steps`, { timeout: 0 }, async t => {
  const { fn, pool, url, clock, account_id, cue: addCue, rows } = await stage(t)
  await fn.setPlans({ plans: { scale: { requests_per_minute: 500, cues: 1_000_000, executions_per_month: 1_000_000_000 } } })
  await setLockTimeout(rows, 'short', '10s')
  // Each partition costs time in every plan.
  const unused = `select inhrelid::regclass as name from pg_inherits
    where inhparent in ('cue.executions'::regclass, 'cue.attempts'::regclass, 'cue.fixed_requests'::regclass) and inhrelid::regclass::text !~ '2030_0[12]$'`
  for (const { name } of await rows(unused)) await rows(`drop table ${name}`)
  const driver = await createDriver(pool, url, clock, 4)
  t.teardown(driver.close)
  const { states, cueOf, deleted } = driver

  const now = () => clock.now().getTime()
  const cueSteps = createCueSteps(driver, account_id, now)

  const kinds: [Cue['transport'], object, Partial<Cue>][] = [
    ['webhook', {}, {}],
    ['webhook', { retry_max_attempts: 1 }, { maxAttempts: 1 }],
    ['webhook', { ...awaiting, verification_mode: 'require_external_id' }, { awaits: true, mode: 'require_external_id' }],
    ['worker', { callback_url: null }, {}],
    ['worker', { callback_url: null, retry_max_attempts: 1, verification_mode: 'manual' }, { maxAttempts: 1, mode: 'manual' }],
    ['worker', { callback_url: null, retry_on_worker_failure: true, verification_mode: 'manual' }, { retriesReports: true, mode: 'manual' }]
  ]
  let cues: Cue[] = []
  const makeCues = async () => {
    cues = []
    for (const [transport, columns, rules] of kinds) {
      const drawn = { overlap: drawOverlap(), schedule_rules: pick([null, null, { max_runs: 1 + below(8) }]) }
      const cue_id = await addCue({ transport, ...drawn, retry_backoff_minutes: [1], ...columns }, { next_run: new Date(firstSlot) })
      cues.push({ cue_id, transport, maxAttempts: 3, awaits: false, mode: null, backoffMs: 60_000, retriesReports: false, ...rules })
    }
    await driver.readCues()
  }

  // State of engines and workers: begun attempts, which they may end late or never, and tokens of lost claims.
  let attempts: BegunAttempt[] = []
  let tokens: string[] = []
  const unended = new Map<number, Set<string>>()
  const workers = ['w1', 'w2', 'w3']
  const live = () => [...states.values()].filter(({ ended_at, id }) => ended_at === null && !deleted.has(cueOf.get(id)!.cue_id))

  /** The last of a flight's attempts to end removes the flight. */
  const endsFlight = ({ flight_id, execution_id }: BegunAttempt): number[] => {
    const open = unended.get(flight_id)
    return open?.delete(execution_id) && open.size === 0 ? [flight_id] : []
  }
  const results: Result[] = [
    {},
    {},
    refused,
    { ...refused, gone: true },
    { report: { success: true } },
    { report: { success: false, error: 'no' } }
  ]

  const on = (state: State, operation: Operation, call: (fn: Functions) => Promise<unknown>): Step => ({ on: state.id, operation, call })

  const ofAttempt = (attempt: BegunAttempt): Step => {
    const state = states.get(attempt.execution_id)!
    const { execution_id, flight_id } = attempt
    if (chance(0.15)) {
      const error = 'stopped'
      return on(state, { kind: 'lose', flight: flight_id }, f => f.loseAttempts({ execution_ids: [execution_id], flight_id, error }))
    }
    if (chance(0.15)) {
      endsFlight(attempt)
      return on(state, { kind: 'giveBack', flight: flight_id }, f => f.releaseFlight({ flight_id, execution_ids: [execution_id] }))
    }
    const result = pick(results)
    const flight_ids = endsFlight(attempt)
    const operation: Operation = {
      kind: 'settle',
      attempt: attempt.attempt,
      error: result.error ?? null,
      gone: result.gone ?? false,
      reported: result.report?.success ?? null
    }
    const columns = resultsOf([attempt], result, clock.now())
    const isPlain = attempt.plain && operation.error === null
    return on(state, operation, async f => {
      const moved = await (isPlain ? f.finishAttempts(columns) : f.settleAttempts(columns))
      await f.endFlights({ flight_ids })
      return moved
    })
  }

  const cancel = (state: State) => on(state, { kind: 'cancel' }, f => f.cancelExecution({ account_id, execution_id: state.id }))
  const replay = (state: State): Step => {
    const overlap = drawOverlap()
    return on(state, { kind: 'replay', overlap }, f => f.replayExecution({ account_id, execution_id: state.id, overlap }))
  }

  const ofExecution = (state: State): Step => {
    const execution_id = state.id
    const ids = { account_id, execution_id }
    const token = chance(0.4)
      ? undefined
      : chance(0.7) && state.claim_token
        ? state.claim_token
        : (pick([...tokens, randomUUID()]) as string)
    const worker_id = chance(0.6) && state.claimed_by_worker ? state.claimed_by_worker : pick(workers)
    switch (below(9)) {
      case 0:
      case 1: {
        const success = chance(0.6)
        const external_id = chance(0.3) ? 'x' : null
        return on(state, { kind: 'report', success, token, external_id }, f =>
          f.reportOutcome({ ...ids, success, claim_token: token, external_id })
        )
      }
      case 2: {
        const external_id = pick(['x', 'y'])
        return on(state, { kind: 'attach', external_id }, f => f.attachEvidence({ ...ids, external_id }))
      }
      case 3: {
        const to = pick(['verified_success', 'verification_failed', 'verification_pending'] as const)
        return on(state, { kind: 'verify', state: to }, f => f.verifyOutcome({ ...ids, state: to }))
      }
      case 4:
        return chance(0.3) ? cancel(state) : replay(state)
      case 5: {
        const worker = token && chance(0.5) ? undefined : worker_id
        return on(state, { kind: 'heartbeat', worker, token }, f => f.heartbeatExecution({ ...ids, worker_id: worker, claim_token: token }))
      }
      case 6:
        return on(state, { kind: 'release', token: token ?? randomUUID() }, f =>
          f.releaseExecution({ ...ids, claim_token: token ?? randomUUID() })
        )
      default:
        return on(state, { kind: 'claim', worker: worker_id }, f => f.claimExecutions({ ...ids, worker_id }))
    }
  }

  const sweeps = {
    recoverFlights: f => f.recoverFlights({ limit: 1000 }),
    recoverStuck: f => f.recoverStuck({}),
    recoverLeases: f => f.recoverLeases({}),
    missUnclaimed: f => f.missUnclaimed({}),
    expireOutcomes: f => f.expireOutcomes({})
  } satisfies Record<string, (fn: Functions) => Promise<unknown>>
  const sweep = (kind: keyof typeof sweeps): Step => ({ operation: { kind }, call: sweeps[kind] })
  const begin = (limit: number): Step => ({ operation: { kind: 'begin' }, call: f => beginWaiting(f, { limit }) })

  const draw = (focus: State | undefined): Step => {
    const all = [...states.values()]
    const some = focus ?? (chance(0.8) ? pick(live()) : pick(all))
    const begunOf = attempts.filter(({ execution_id }) => !focus || execution_id === focus.id)
    const dice = random()
    const cue = focus ? cueOf.get(focus.id)! : pick(cues)
    if (!some || (dice < 0.08 && live().length < 40)) return cueSteps.fire(pick(cues))
    if (dice < 0.17 && live().length < 40) return cueSteps.slot(cue)
    if (dice < 0.21) return cueSteps.change(cue)
    if (dice < 0.28)
      return { operation: { kind: 'extend' }, call: f => f.extendFlights({ flight_ids: Object.keys(driver.flights()).map(Number) }) }
    if (dice < 0.38) return begin(1 + below(5))
    if (dice < 0.55 && begunOf.length > 0)
      return ofAttempt(chance(0.8) ? begunOf.at(-1 - below(Math.min(5, begunOf.length)))! : pick(begunOf))
    if (dice < 0.65) return sweep(pick(Object.keys(sweeps) as (keyof typeof sweeps)[]))
    if (dice < 0.72) {
      const worker = pick(workers)
      const limit = 1 + below(3)
      return { operation: { kind: 'claimNext', worker }, call: f => f.claimExecutions({ account_id, worker_id: worker, limit }) }
    }
    if (dice < 0.74) {
      const worker = pick(workers)
      return { operation: { kind: 'removeWorker', worker }, call: f => f.deleteWorker({ account_id, worker_id: worker }) }
    }
    if (dice < 0.76) {
      const worker = pick(workers)
      return { operation: { kind: 'showWorker' }, call: f => f.heartbeatWorker({ account_id, worker_id: worker, handlers: [] }) }
    }
    if (dice < 0.765) {
      const cue = pick(cues)
      return { operation: { kind: 'deleteCue' }, cue, call: f => f.deleteCue({ account_id, cue_id: cue.cue_id }) }
    }
    return ofExecution(some)
  }

  /** Records what callers learn from their results. */
  const learn = (done: Awaited<ReturnType<typeof driver.step>>) => {
    for (const { operation, answer } of done) {
      if (operation.kind === 'begin' || (operation.kind === 'slot' && Array.isArray(answer))) {
        for (const attempt of answer as BegunAttempt[]) {
          attempts.push(attempt)
          unended.set(attempt.flight_id, (unended.get(attempt.flight_id) ?? new Set()).add(attempt.execution_id))
        }
      }
      if (operation.kind === 'claim' || operation.kind === 'claimNext') {
        for (const { execution_id, claim_token } of (answer ?? []) as { execution_id: string; claim_token: string }[]) {
          if (states.get(execution_id)?.status === 'delivering' && !tokens.includes(claim_token)) tokens.push(claim_token)
        }
      }
    }
    attempts = attempts.slice(-60)
    tokens = tokens.slice(-20)
  }

  /** Executions that a sweep would change now. */
  const dueFor = (kind: keyof typeof sweeps) =>
    [...states.values()].filter(state =>
      kind === 'recoverFlights' && state.flight_id !== null
        ? (driver.flights()[state.flight_id]?.lease ?? now()) < now()
        : move({ kind }, { now: now(), rules: cueOf.get(state.id)!, state, deleted: false, workerHeardAt: () => 0 }) !== undefined
    )
  /** A sweep without contention leaves nothing behind. */
  const leavesNothing = ({ kind }: Operation) => {
    if (!(kind in sweeps) || kind === 'recoverStuck') return
    const left = dueFor(kind as keyof typeof sweeps)
    if (left.length > 0) driver.fail(`${kind} left something`, left)
  }

  const alone = async (step: Step) => {
    const done = await driver.step([step])
    learn(done)
    leavesNothing(step.operation)
    return done[0]!
  }

  /** No engine does this in tests. */
  const vacuum = async (schema: string) => {
    for (const { name } of await rows(
      "select oid::regclass::text as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r'",
      [schema]
    ))
      await rows(`vacuum ${name}`)
  }

  /** With only engines and the clock, everything ends. Then starts afresh, since many rows and partitions make steps slow. */
  let drained = 0
  const drain = async () => {
    for (const state of live().filter(isQueued)) if (chance(0.8)) await alone(cancel(state))
    for (let round = 0; live().length > 0; round++) {
      if (round > 200) driver.fail('these never end', live())
      clock.advance('1 minute')
      for (const kind of Object.keys(sweeps) as (keyof typeof sweeps)[]) if (dueFor(kind).length > 0) await alone(sweep(kind))
      if (live().some(({ attempt_due_at }) => attempt_due_at !== null && attempt_due_at <= now())) await alone(begin(50))
      if (round % 2 === 0) attempts = []
      for (const attempt of attempts) if (states.get(attempt.execution_id)!.attempts === attempt.attempt) await alone(ofAttempt(attempt))
    }
    const tables = ['cue.cues', 'cue.executions', 'cue.attempts', 'cue.flights', 'cue.workers', 'pgboss.job', 'test.moves']
    await rows(tables.map(name => `delete from ${name}`).join(';'))
    clock.set(new Date(Date.UTC(2030, 0, 31, below(24)))) // some end in the next month
    if (++drained % 20 === 0) for (const schema of ['cue', 'pgboss', 'test']) await vacuum(schema)
    driver.forget()
    attempts = []
    tokens = []
    unended.clear()
    await makeCues()
  }

  await makeCues()
  const walked: Record<string, number> = {}
  for (let n = 1; n <= steps; n++) {
    if (chance(0.3)) clock.set(new Date(now() + pick([1, 999, 2000, 4001, 30_000, 61_000, 185_000, 301_000, 901_000])))
    const count = chance(0.5) ? 1 : 2 + below(driver.callers - 1)
    const focus = count > 1 && chance(0.6) ? pick(live()) : undefined
    const drawn = Array.from({ length: count }, () => draw(focus))
    for (const { operation } of drawn) walked[operation.kind] = (walked[operation.kind] ?? 0) + 1
    if (count === 1) await alone(drawn[0]!)
    else learn(await driver.step(drawn))
    if (n % 10_000 === 0) t.comment(`${n} steps`)
    if (n % 300 === 0 || cues.every(({ cue_id }) => deleted.has(cue_id))) await drain()
  }
  await drain()
  t.comment(JSON.stringify(walked))
  t.ok(driver.repairs() <= steps / 100, `${driver.repairs()} queues were repaired`)
  t.pass('every step was as the model has it')
})
