// One lock order: eight connections call every operation on the same few cues concurrently, without a deadlock.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { type BegunAttempt, createFunctions, type Functions } from '../../src/database/functions.ts'
import { createPauseSweep } from '../../src/firing/ended-pauses.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { catchUpRow, lookAhead } from '../support/firing-stage.ts'
import { overlaps } from '../support/overlap-model.ts'
import { setLockTimeout } from '../support/patient.ts'
import { chance, pick, random, shuffled } from '../support/seed.ts'
import { awaiting, cueDefaults, dueCues, once, type Row, refused, resultsOf, stage } from '../support/stage.ts'

const connections = 8
const steps = 400
/** The cues most operations use. */
const often = [
  'take',
  'take',
  'fireTracked',
  'fireTracked',
  'begin',
  'begin',
  'begin',
  'finish',
  'finish',
  'finish',
  'settle',
  'settle',
  'recover',
  'recover',
  'create',
  'create'
]
/** So short that flights expire while held. */
const lease = '5 milliseconds'

/** Nothing to operate on. A refusal is a valid result, too. */
const nothing = new Error('nothing to do this to')

const some = <T>(list: T[], most = 12): T[] => shuffled(list.filter(() => chance(most / Math.max(list.length, 1))))

t.test('concurrent operations of all kinds neither deadlock nor fail', async t => {
  const { pool, url, rows, account, account_id, row } = await stage(t, new Date().toISOString())
  const accounts = [account_id, await account()]
  await rows('update cue.plans set executions_per_month = 1000000, cues = 1000000')
  await setLockTimeout(rows, 'short', '10s')
  const attempts: BegunAttempt[] = []
  const claims: { execution_id: string; claim_token: string; account_id: string; worker_id: string }[] = []
  const done = new Map<string, number>()

  const session = async () => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    t.teardown(() => client.end())
    // PostgreSQL detects a deadlock after this; ordinary waits are no longer than a batch.
    await client.query(`set deadlock_timeout = '100ms'`)
    const fn = createFunctions(client)
    const read = async (text: string, values: unknown[] = []): Promise<Row[]> => (await client.query(text, values)).rows
    return { fn, read, steps: stepsOf(fn, read) }
  }

  const stepsOf = (fn: Functions, read: (text: string, values?: unknown[]) => Promise<Row[]>): Record<string, () => Promise<unknown>> => {
    const anyCue = async () => pick(await read('select id as cue_id, account_id from cue.cues where deleted_at is null'))
    const anyExecution = async (where = 'true') => {
      const found = await read(`select id as execution_id, account_id from cue.executions where ${where} order by id desc limit 50`)
      if (found.length === 0) throw nothing
      return pick(found)
    }
    // A flight has ended if the batch contains all its attempts.
    const endedFlights = (ended: BegunAttempt[]) =>
      [...new Set(ended.map(attempt => attempt.flight_id))].filter(flight =>
        attempts.every(one => one.flight_id !== flight || ended.includes(one))
      )
    const recent = () => attempts.slice(-30)
    const keep = (begun: BegunAttempt[]) => attempts.push(...begun)
    const dueRuns = async (limit = 10) => some(await read('select * from cue.cue_runs where next_run <= clock_timestamp()'), limit)
    // Instants are in the past and a millisecond apart, so every cue is always due again.
    const next = () => new Date(Date.now() - random() * 1000)
    return {
      take: async () => {
        const due = await dueRuns()
        keep(
          await fn.takeDueCues({
            ...dueCues(due, null),
            next: due.map(run => new Date(run.next_run.getTime() + 1)),
            missed_after: '1 hour',
            lease
          })
        )
      },
      fireTracked: async () => {
        const due = (await dueRuns(20)).filter(run => run.tracked)
        const next = due.map(run => new Date(run.next_run.getTime() + 1))
        const moved = await fn.fireTrackedCues({ ...dueCues(due, null), next, success_due: due.map(() => null), missed_after: '1 hour' })
        if (moved === 0) throw nothing
      },
      repair: () => fn.repairQueues({}),
      begin: async () => keep(await beginWaiting(fn, { limit: 10, lease })),
      // Results arrive late, twice, or together with another's.
      finish: async () => {
        const ended = some(recent()).filter(attempt => attempt.plain)
        await fn.finishAttempts(resultsOf(ended, {}, new Date()))
        await fn.endFlights({ flight_ids: endedFlights(ended) })
      },
      settle: async () => {
        const ended = some(recent())
        const result = pick([{}, refused, { ...refused, gone: true }, { report: { success: true } }])
        await fn.settleAttempts(resultsOf(ended, result, new Date()))
        await fn.endFlights({ flight_ids: endedFlights(ended) })
      },
      extend: () => fn.extendFlights({ flight_ids: some(recent()).map(attempt => attempt.flight_id), lease }),
      release: async () => {
        const one = pick(recent())
        if (one)
          await fn.releaseFlight({
            flight_id: one.flight_id,
            execution_ids: attempts.filter(other => other.flight_id === one.flight_id).map(other => other.execution_id)
          })
      },
      lose: async () => {
        const one = pick(recent())
        if (one) await fn.loseAttempts({ flight_id: one.flight_id, execution_ids: [one.execution_id], error: 'stopped' })
      },
      recover: () => fn.recoverFlights({ limit: 5 }),
      recoverStuck: () => fn.recoverStuck({}),
      expire: () => fn.expireOutcomes({ limit: 20 }),
      requeue: () => fn.requeueAttempts({ limit: 20 }),
      endPauses: createPauseSweep({ fn }),
      wakes: () => fn.nextWakes({}),
      fold: () => fn.foldUsage({}),
      beat: () => fn.beatEngine({ engine_id: randomUUID(), version: 'x', lateness_ms: 1, open_deliveries: 1, missed_after: '1 hour' }),
      look: () => lookAhead(fn, { until: new Date(), limit: 4 }),
      catchUp: async () => {
        const seen = some(await lookAhead(fn, { until: new Date() }), 5)
        // An outage covers its missed slot.
        const missed = seen.map(cue => ({ ...cue, outage_until: new Date(Math.max(+next(), +cue.next_run)) }))
        await fn.catchUpCues({ cues: JSON.stringify(missed.map(catchUpRow)) })
      },
      refuse: async () => fn.refuseDueCues({ ...dueCues(await dueRuns(3), null) }),
      fire: async () => fn.fireCue({ ...(await anyCue()), overlap: pick(overlaps) }),
      replay: async () => fn.replayExecution({ ...(await anyExecution('ended_at is not null')), overlap: pick(overlaps) }),
      cancel: async () => fn.cancelExecution(await anyExecution()),
      create: async () => {
        const columns = pick([
          {},
          {},
          awaiting,
          { overlap: pick(overlaps) },
          { overlap: pick(overlaps), transport: 'worker', callback_url: null, retry_on_worker_failure: true },
          { transport: 'worker', callback_url: null, task: pick(['a', null]) },
          { ...once, at: new Date().toISOString() },
          { retry_max_attempts: 1, on_failure_pause: true }
        ])
        await fn.createCue({
          account_id: pick(accounts),
          cue: { ...cueDefaults, ...columns, retry_backoff_minutes: [0] },
          next_run: next()
        })
      },
      update: async () => {
        const { cue_id, account_id } = await anyCue()
        const [run] = await read('select version from cue.cue_runs where cue_id = $1', [cue_id])
        if (run)
          await fn.updateCue({
            account_id,
            cue_id,
            version: run.version,
            changes: pick([
              { status: 'active' },
              { status: 'paused' },
              { status: 'paused', paused_until: next() },
              { overlap: pick(overlaps) }
            ]),
            next_run: new Date()
          })
      },
      delete: async () => {
        const found = await read('select id, account_id from cue.cues where deleted_at is null')
        if (found.length < 12) return
        const { account_id } = found[0]
        await fn.deleteCues({
          account_id,
          cue_ids: some(
            found.filter(cue => cue.account_id === account_id),
            3
          ).map(cue => cue.id)
        })
      },
      purge: async () => {
        const [gone] = await read('select id from cue.cues where deleted_at is not null order by random() limit 1')
        if (gone) await fn.purgeCue({ cue_id: gone.id, batch: 20 })
      },
      claim: async () => {
        const claim = { account_id: pick(accounts), worker_id: pick(['w1', 'w2']), limit: 3, lease }
        for (const won of await fn.claimExecutions(claim)) claims.push({ ...claim, ...won })
      },
      heartbeat: async () => claims.length && fn.heartbeatExecution(pick(claims)),
      releaseClaim: async () => claims.length && fn.releaseExecution(pick(claims)),
      report: async () => fn.reportOutcome({ ...(await anyExecution("status <> 'pending'")), success: pick([true, false]) }),
      evidence: async () => fn.attachEvidence({ ...(await anyExecution('outcome_recorded_at is not null')), external_id: 'x' }),
      verify: async () => fn.verifyOutcome({ ...(await anyExecution('outcome_recorded_at is not null')), state: 'verified_success' }),
      workerAlive: () => fn.heartbeatWorker({ account_id: pick(accounts), worker_id: pick(['w1', 'w2']), handlers: [] }),
      workerGone: () => fn.deleteWorker({ account_id: pick(accounts), worker_id: pick(['w1', 'w2']) }),
      recoverLeases: () => fn.recoverLeases({ limit: 10 }),
      missUnclaimed: () => fn.missUnclaimed({ limit: 10 }),
      prune: () => fn.prune({})
    }
  }

  const unexpected: string[] = []
  const run = async () => {
    const { steps: own } = await session()
    // Leases of claims expire as fast as flights.
    const hasten = `update cue.executions set outcome_deadline_at = now() where id in (
      select id from cue.executions where outcome_deadline_at > now() limit 5 for update skip locked)`
    for (let step = 0; step < steps; step++) {
      const name = step < 4 ? 'create' : pick([...Object.keys(own), ...often])
      try {
        await own[name]!()
        done.set(name, (done.get(name) ?? 0) + 1)
      } catch (error) {
        const { code = '', message, detail } = error as pg.DatabaseError
        if (error !== nothing && !code.startsWith('QU')) unexpected.push(`${name}: ${code} ${message} ${detail}`)
      }
      if (step % 10 === 0) await pool.query(hasten)
    }
  }
  await createFunctions(pool).beatEngine({
    engine_id: randomUUID(),
    version: 'x',
    lateness_ms: 1,
    open_deliveries: 0,
    missed_after: '100 years'
  })
  await Promise.all(Array.from({ length: connections }, run))
  t.same(unexpected, [])
  for (const name of [
    'take',
    'fireTracked',
    'repair',
    'begin',
    'finish',
    'settle',
    'recover',
    'expire',
    'fire',
    'replay',
    'cancel',
    'delete',
    'purge',
    'claim',
    'report',
    'catchUp'
  ]) {
    t.ok(done.get(name), `${name} was among it`)
  }
  const { executions } = await row('select count(*)::int as executions from cue.executions')
  t.ok(executions > 100, `${executions} executions`)

  // Afterwards, nothing remains that no sweep would find.
  const last = createFunctions(pool, () => new Date(Date.now() + 3_600_000))
  await last.recoverFlights({ limit: 1000 })
  await last.requeueAttempts({ limit: 10_000 })
  t.same(await rows(`select id from cue.executions where flight_id is not null`), [], 'every attempt under way is in a flight')
  t.same(await rows('select * from cue.flights'), [])
  await last.repairQueues({})
  const running = await rows(`select distinct cue_id from cue.executions
                               where ended_at is null and 'infinity' in (attempt_due_at, claimable_at) is not true`)
  const busy = new Set(running.map(({ cue_id }) => cue_id))
  const queued = await rows(`select e.cue_id from cue.executions e join cue.cues c on c.id = e.cue_id and c.deleted_at is null
                              where 'infinity' in (e.attempt_due_at, e.claimable_at)`)
  t.same(
    queued.filter(({ cue_id }) => !busy.has(cue_id)),
    [],
    'every queued execution is behind one that is running'
  )
  t.same(
    await rows(`select e.id from cue.executions e where e.attempt_due_at < 'infinity'
                 and not exists (select from pgboss.job j where j.name = 'attempts' and j.id = e.id and j.state < 'active')`),
    [],
    'every waiting execution has a job'
  )
  t.same(
    await rows(`select j.id from pgboss.job j where j.name = 'attempts'
                 and not exists (select from cue.executions e where e.id = j.id and e.attempt_due_at is not null)`),
    [],
    'every job has a waiting execution'
  )
  t.same(
    await rows(`select e.id from cue.executions e
                 where (select count(*) from cue.attempt_view a where a.execution_id = e.id) <> e.attempts - (e.lease_expires_at is not null)::int
                   and e.ended_at is null`),
    [],
    'every ended attempt is logged'
  )
})
