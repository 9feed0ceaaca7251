// The short form of `npm run chaos`: processes of the real service on a PostgreSQL of their own, killed, stopped and cut off in the middle of
// their work. Nothing here depends on time. The judge itself is tested first. With TEST_CASES=2, more scenarios are played.
import { createSecretKey, randomUUID } from 'node:crypto'
import t from 'tap'
import type { Found, Slot } from '../../scripts/chaos/herd.ts'
import { play } from '../../scripts/chaos/scenarios.ts'
import { type Evidence, judge } from '../../scripts/chaos/verdict.ts'
import { endStage } from '../../scripts/stage/processes.ts'
import type { Send } from '../../scripts/stage/receiver.ts'
import { openStage } from '../../scripts/stage/stage.ts'
import { executionToken } from '../../src/deliveries/signature.ts'
import { exactly } from '../support/exactly.ts'
import { memoryDir } from '../support/memory-dir.ts'
import { cases } from '../support/seed.ts'

t.setTimeout(300_000)

const [victimKey, otherKey] = [1, 2].map(n => createSecretKey(Buffer.alloc(32, n))) as [Evidence['tokenKeys'][0], Evidence['tokenKeys'][0]]

/** A slot that was delivered correctly, and its records. */
const delivered = (cue_id: string) => {
  const slot: Slot = { cue_id, scheduled_for: 1000 }
  const id = randomUUID()
  const send: Send = { ...slot, execution_id: id, attempt: 1, token: executionToken(otherKey, id), at: 1100, status: 200 }
  const execution: Found['executions'][0] = { ...slot, id, status: 'success', attempts: 1 }
  return { slot, send, execution, attempt: { execution_id: id, attempt: 1, result: 'success' as Found['attempts'][0]['result'] } }
}

const evidenceOf = (all: ReturnType<typeof delivered>[]): Evidence => ({
  slots: all.map(({ slot }) => slot),
  sends: all.map(({ send }) => send),
  found: {
    executions: all.map(({ execution }) => execution),
    attempts: all.map(({ attempt }) => attempt),
    flights: 0,
    jobs: 0,
    deadlocks: 0
  },
  tokenKeys: [],
  changed: 0,
  crashed: 0,
  errors: [],
  withinMs: 10_000
})

t.test('a run without violations passes', async t => {
  t.same(judge(evidenceOf([delivered('a'), delivered('b')])).faults, [])
})

t.test('a retry after a rejection is not a duplicate', async t => {
  const a = delivered('a')
  const { found, ...evidence } = evidenceOf([a])
  const verdict = judge({
    ...evidence,
    sends: [
      { ...a.send, status: 500 },
      { ...a.send, attempt: 2, at: 1200 }
    ],
    found: {
      ...found,
      executions: [{ ...a.execution, attempts: 2 }],
      attempts: [
        { ...a.attempt, result: 'failed' },
        { ...a.attempt, attempt: 2 }
      ]
    }
  })
  t.same(verdict.faults, [])
  t.equal(verdict.figures.refused, 1)
})

t.test('detects every kind of violation', async t => {
  const [a, b] = [delivered('a'), delivered('b')]
  const good = evidenceOf([a, b])
  const again = { ...b.send, attempt: 2, at: 1300 }
  const found = (change: Partial<Found>) => ({ ...good, found: { ...good.found, ...change } })
  const cases: [string, Evidence][] = [
    ['lost: 1', { ...good, sends: [a.send] }],
    ['lost: 1', { ...good, sends: [a.send, { ...b.send, status: null }] }],
    ['unexpected: 1', { ...good, slots: [a.slot] }],
    ['duplicated: 1', { ...good, sends: [...good.sends, again] }],
    ['same_attempt_sent_twice: 1', { ...good, sends: [...good.sends, b.send] }],
    ['slots_without_their_execution: 1', found({ executions: [a.execution] })],
    ['slots_without_their_execution: 1', found({ executions: [a.execution, b.execution, { ...b.execution, id: randomUUID() }] })],
    ['unsuccessful: 1', found({ executions: [a.execution, { ...b.execution, status: 'delivering' }] })],
    ['wrong_attempt_logs: 1', found({ executions: [a.execution, { ...b.execution, attempts: 2 }] })],
    ['wrong_attempt_logs: 1', found({ attempts: [a.attempt, { ...b.attempt, result: 'lost' }] })],
    ['sends_not_logged: 1', found({ attempts: [a.attempt] })],
    ['flights_left: 1', found({ flights: 1 })],
    ['jobs_left: 1', found({ jobs: 1 })],
    ['deadlocks: 1', found({ deadlocks: 1 })],
    ['changed_late: 2', { ...good, changed: 2 }],
    ['replicas_crashed: 1', { ...good, crashed: 1 }],
    ['errors_logged: 1', { ...good, errors: ['Error: no'] }],
    [
      'all_delivered_ms: 10900, and at most 10000 may be',
      { ...good, sends: [a.send, { ...b.send, at: 12_000 }], fault: { since: 1100, over: 1100, held: [] } }
    ]
  ]
  for (const [fault, evidence] of cases) t.ok(judge(evidence).faults.includes(fault), fault)
})

t.test('allows duplicates only of attempts held by a victim', async t => {
  const [a, b] = [delivered('a'), delivered('b')]
  const good = evidenceOf([a, b])
  const ofVictim = { ...a.send, token: executionToken(victimKey, a.execution.id) }
  const held = [a, b].map(({ execution: { id } }) => ({ execution_id: id, attempt: 1 }))
  const log = [
    ...good.found.attempts.filter(attempt => attempt !== a.attempt),
    { ...a.attempt, result: 'lost' as const },
    { ...a.attempt, attempt: 2 }
  ]
  const evidence: Evidence = {
    ...good,
    sends: [ofVictim, b.send, { ...a.send, attempt: 2, at: 5000 }],
    found: { ...good.found, executions: [{ ...a.execution, attempts: 2 }, b.execution], attempts: log },
    fault: { since: 1200, over: 1200, held },
    tokenKeys: [victimKey]
  }
  const { figures, faults } = judge(evidence)
  t.same(faults, [])
  exactly(t, figures, { duplicated: 1, in_flight: 2, in_flight_on_victims: 1, all_delivered_ms: 0, attempts_lost: 1 })
  exactly(t, judge({ ...evidence, tokenKeys: [] }).faults, ['duplicated: 1'])
})

// The scenarios -----------------------------------------------------------------------------------------------------------------------

t.test('loses nothing, and duplicates only attempts in flight on a victim', async t => {
  t.teardown(() => endStage(!t.passing()))
  const stage = await openStage({ parent: memoryDir() })
  t.comment(`logs of a failure stay in ${stage.dir}`)
  for (const name of cases(1) > 1 ? ['kill', 'stop', 'restart'] : ['stop', 'restart']) {
    const { figures, faults } = await play(stage, name, { n: cases(300), replicas: 2, frozenMs: 8000, awayMs: 0, timed: false })
    t.same(faults, [], name)
    t.comment(JSON.stringify(figures))
  }
})
