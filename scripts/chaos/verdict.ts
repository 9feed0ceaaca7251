/** Judges a scenario: compares, slot by slot, the received requests with the expected ones and with the database. */
import type { KeyObject } from 'node:crypto'
import { readExecutionToken } from '../../src/deliveries/signature.ts'
import { quantile } from '../stage/figures.ts'
import type { Send } from '../stage/receiver.ts'
import type { Found, Held, Slot } from './herd.ts'
import { faultsOf, sentTwice, type Verdict } from './world.ts'

export type Evidence = {
  slots: Slot[]
  sends: Send[]
  found: Found
  /** Beginning and end of the fault in epoch milliseconds, and attempts held when it began. */
  fault?: { since: number; over: number; held: Held[] } | undefined
  /** Identify requests of replicas that were killed, frozen or cut off. Without any, nothing may be sent twice. */
  tokenKeys: KeyObject[]
  /** Number of rows that a frozen replica changed after everything was over. */
  changed: number
  /** Number of replicas that did not stop gracefully. */
  crashed: number
  /** Errors logged by replicas. */
  errors: string[]
  /** Time limit for delivering everything after the fault. */
  withinMs: number
}

const lateMs = 1000

export const judge = ({ slots, sends, found, fault, tokenKeys, changed, crashed, errors, withinMs }: Evidence): Verdict => {
  const sendsOf = Map.groupBy(
    sends.toSorted((a, b) => a.at - b.at),
    keyOf
  )
  const executionsOf = Map.groupBy(found.executions, keyOf)
  const attemptsOf = Map.groupBy(found.attempts, attempt => attempt.execution_id)
  const expected = new Set(slots.map(keyOf))
  const ofSlots = slots.map(slot => ({ ...slot, sends: sendsOf.get(keyOf(slot)) ?? [] }))
  const late = ofSlots.map(slot => (slot.sends[0]?.at ?? Number.POSITIVE_INFINITY) - slot.scheduled_for).sort((a, b) => a - b)
  const deliveredAt = ofSlots.map(slot => slot.sends.find(isDelivered)?.at ?? Number.POSITIVE_INFINITY)
  const recorded = new Set(found.attempts.map(attemptKey))

  const mustBeNone = {
    lost: deliveredAt.filter(at => at === Number.POSITIVE_INFINITY).length,
    unexpected: sends.filter(send => !expected.has(keyOf(send))).length,
    same_attempt_sent_twice: sentTwice(sends),
    slots_without_their_execution: slots.filter(slot => executionsOf.get(keyOf(slot))?.length !== 1).length,
    unsuccessful: found.executions.filter(execution => execution.status !== 'success').length,
    wrong_attempt_logs: found.executions.filter(execution => !isLogged(execution, attemptsOf.get(execution.id) ?? [])).length,
    sends_not_logged: sends.filter(send => !recorded.has(attemptKey(send))).length,
    flights_left: found.flights,
    jobs_left: found.jobs,
    deadlocks: found.deadlocks,
    changed_late: changed,
    replicas_crashed: crashed,
    errors_logged: errors.length
  }
  const figures = {
    slots: slots.length,
    sends: sends.length,
    refused: sends.filter(isRefused).length,
    // A slot is sent once, plus once for every rejection.
    duplicated: sum(ofSlots.map(slot => Math.max(0, slot.sends.length - 1 - slot.sends.filter(isRefused).length))),
    in_flight: fault?.held.length ?? 0,
    in_flight_on_victims: tokenKeys.length > 0 && fault ? heldByVictims(fault.held, sends, tokenKeys) : 0,
    late: late.filter(ms => ms > lateMs).length,
    late_p50_ms: quantile(late, 0.5),
    late_max_ms: late.at(-1) ?? 0,
    fault_ms: fault ? fault.over - fault.since : 0,
    all_delivered_ms: fault ? Math.max(0, Math.max(...deliveredAt) - fault.over) : 0,
    executions: found.executions.length,
    attempts: found.attempts.length,
    attempts_lost: found.attempts.filter(({ result }) => result === 'lost').length,
    ...mustBeNone
  }
  const limits = { duplicated: figures.in_flight_on_victims, all_delivered_ms: withinMs }
  const none = Object.fromEntries(Object.keys(mustBeNone).map(name => [name, 0]))
  return { figures, faults: [...faultsOf(figures, { ...none, ...limits }), ...errors.slice(0, 3)] }
}

const keyOf = ({ cue_id, scheduled_for }: Slot) => `${cue_id} ${scheduled_for}`
const attemptKey = ({ execution_id, attempt }: Held) => `${execution_id} ${attempt}`
const isDelivered = (send: Send) => send.status === 200
const isRefused = (send: Send) => send.status !== null && send.status !== 200
const sum = (values: number[]) => values.reduce((a, b) => a + b, 0)

/** Attempts held by the victims: those that no other replica has sent. */
const heldByVictims = (held: Held[], sends: Send[], tokenKeys: KeyObject[]) => {
  const byOthers = new Set(sends.filter(({ token }) => !tokenKeys.some(key => readExecutionToken(key, token))).map(attemptKey))
  return held.filter(attempt => !byOthers.has(attemptKey(attempt))).length
}

/** There is one row per attempt, and the last is the success. */
const isLogged = ({ attempts }: Found['executions'][number], log: Found['attempts']) =>
  log.length === attempts && log.every(({ attempt, result }, i) => attempt === i + 1 && (result === 'success') === (attempt === attempts))
