/**
 * Runs random operations of several concurrent callers, checks every update of an execution, as recorded by a trigger, against the model, and
 * then the invariants that hold whenever no operation is running.
 */
import type pg from 'pg'
import { createFunctions, type Functions } from '../../src/database/functions.ts'
import { connectDirect } from '../../src/database/pool.ts'
import { type CueOperation, type CueState, cueAfter, cueFaults, cueOperations } from './cue-model.ts'
import { testConfig } from './database.ts'
import { creationFaults, isQueued, never, type Overlap, placeBeside, started, superseded } from './overlap-model.ts'
import { begun, claimMs, differences, move, type Operation, type Rules, refusal, type State, sent } from './state-model.ts'
import { brokenLogs, faultsOf, type Move, type Snapshot, snapshot, stalledCues, watch } from './state-snapshot.ts'

export type Cue = Rules & { cue_id: string; transport: State['transport'] }
/** An operation on one execution, on a cue, or on whatever is due, and the call that performs it. */
export type Step = { operation: Operation; on?: string; cue?: Cue; call: (fn: Functions) => Promise<unknown> }
type Done = Step & { pid: number; answer: unknown; refused: string | null }

/** The logs of attempts are read after each of so many steps. */
const logsEvery = 20

type Caller = { pid: number; fn: Functions; look: () => Promise<Snapshot>; settled: () => Promise<unknown>; end: () => Promise<void> }

export const createDriver = async (pool: pg.Pool, url: string, clock: { now: () => Date }, callers: number) => {
  await pool.query(watch)
  const connect = async () => {
    // A step that runs alone and the look after it are sent at once.
    const client = Object.assign(await connectDirect(testConfig(url)), { pipeline: true })
    const { rows } = await client.query('select pg_backend_pid() as pid')
    const pid: number = rows[0].pid
    const fn = createFunctions(client, clock.now)
    const look = async (): Promise<Snapshot> => (await client.query({ name: 'snapshot', text: snapshot, values: [seq] })).rows[0]
    return { pid, fn, look, settled: () => client.query('select'), end: () => client.end() }
  }
  let seq = 0
  const all = await Promise.all(Array.from({ length: callers }, connect))
  const [first] = all as [Caller]

  const states = new Map<string, State>()
  const cueOf = new Map<string, Cue>()
  const deleted = new Set<string>()
  const begunAt = new Map<string, number>()
  let last = await first.look()
  let repairs = 0
  let looks = 0
  let trace: object[] = []

  const fail = (message: string, detail: object = {}) => {
    throw new Error(`${message} ${JSON.stringify(detail)}\nlast steps:\n${trace.map(step => JSON.stringify(step)).join('\n')}`)
  }

  const run = async (caller: Caller, step: Step): Promise<Done> => {
    try {
      return { ...step, pid: caller.pid, answer: await step.call(caller.fn), refused: null }
    } catch (error) {
      const { code } = error as pg.DatabaseError
      if (!/^QU\d/.test(code ?? '')) fail(`${step.operation.kind} failed: ${error}`)
      await caller.settled() // a refusal is told before its locks are let go
      return { ...step, pid: caller.pid, answer: undefined, refused: code! }
    }
  }

  /** The executions of a cue that have not ended, oldest first. */
  const openOf = (cue_id: string) => [...states.values()].filter(state => state.ended_at === null && cueOf.get(state.id)!.cue_id === cue_id)

  /** The rules that an operation that creates an execution may follow: that of a slot may change at the same time. */
  const rulesOf = ({ operation, cue }: Done, after: Snapshot): Overlap[] => {
    if (operation.kind === 'fire' || operation.kind === 'replay') return [operation.overlap]
    if (operation.kind !== 'slot') return []
    return [last.cues, after.cues].flatMap(known => known[cue!.cue_id]?.overlap ?? [])
  }

  /** Checks a new execution, of which `found` is the first state. */
  const checkCreated = (found: State, done: Done, after: Snapshot) => {
    const { operation, cue, on } = done
    const now = clock.now().getTime()
    if (!['fire', 'replay', 'slot'].includes(operation.kind)) fail(`${operation.kind} created an execution`, found)
    const faults = creationFaults(rulesOf(done, after), found, openOf((cue ?? cueOf.get(on!)!).cue_id))
    const at = isQueued(found) ? never : operation.kind === 'fire' ? Math.max(operation.at, now) : now
    const wrong = differences({}, operation.kind === 'slot' && found.flight_id !== null ? sent : begun(found.transport, at), found)
    if (wrong.length + faults.length > 0) fail(`${operation.kind} created an execution other than expected`, { faults, wrong, found })
  }

  /** Checks an update that starts a queued execution, or ends one for the next; returns false if it is neither. */
  const isOverlapMove = (old: State, found: State, done: Done, after: Snapshot): boolean => {
    const now = clock.now().getTime()
    if (isQueued(old) && !isQueued(found) && found.ended_at === null) {
      const open = openOf(cueOf.get(old.id)!.cue_id)
      const wrong = differences(old, started(old, now, claimMs), found)
      const isFirst = open.find(isQueued)?.id === old.id
      if (wrong.length > 0 || !isFirst || !open.every(isQueued)) fail('a queued execution was started wrongly', { wrong, open })
      return true
    }
    if (!rulesOf(done, after).includes('cancel_previous')) return false
    const wrong = old.ended_at === null ? differences(old, superseded(old, now), found) : ['it had ended']
    if (wrong.length > 0) fail('an execution was superseded wrongly', { wrong, old, found })
    return true
  }

  /** Checks one update of a row against what the model allows its operation. */
  const check = ({ old, new: found }: Move, done: Done, after: Snapshot, deletedBefore: Set<string>, isHeard: boolean) => {
    const { operation } = done
    const now = clock.now().getTime()
    if (!old) return checkCreated(found, done, after)
    const known = states.get(old.id)
    const torn = differences(known!, {}, old)
    if (torn.length > 0) fail('a row changed without a logged update', torn)
    if (isOverlapMove(old, found, done, after)) return
    const flight = last.flights[old.flight_id ?? -1]
    if (operation.kind === 'recoverFlights' && !(flight && flight.lease < now))
      fail('a flight was recovered before it expired', { old, flight })
    if (operation.kind === 'recoverStuck' && !(begunAt.get(old.id)! < now - 300_000)) fail('an attempt was ended too early', old)
    // A worker may have sent a heartbeat before or after this update and then been removed, and a cue may have been deleted.
    const rules = cueOf.get(old.id)!
    const heard = [last.workers, after.workers].map(known => (worker: string) => known[worker] ?? 0)
    const possible = [...heard, () => now].flatMap((workerHeardAt, n) =>
      [deletedBefore, deleted].map(gone => {
        if (n === 2 && !isHeard) return ['nobody was heard of']
        const change = move(operation, { now, rules, state: old, deleted: gone.has(rules.cue_id), workerHeardAt })
        return change ? differences(old, change, found) : [`${operation.kind} must not touch it`]
      })
    )
    if (possible.every(wrong => wrong.length > 0)) fail(`${operation.kind} moved an execution wrongly`, { wrong: possible[0], old, found })
  }

  const checkSkipped = ({ operation, cue, on }: Done, isAlone: boolean) => {
    if (operation.kind !== 'fire' && operation.kind !== 'replay') return fail(`${operation.kind} was skipped`)
    const place = placeBeside(operation.overlap, openOf((cue ?? cueOf.get(on!)!).cue_id))
    if (['allow', 'cancel_previous'].includes(operation.overlap) || (isAlone && (place === 'run' || place === 'queue')))
      fail(`${operation.kind} was skipped without a reason`, { place })
  }

  /** Checks a cue after these operations on it, which ran alone or concurrently with any others. */
  const checkCue = (before: CueState, found: CueState, own: Done[], isAlone: boolean, isCreated: boolean, open: readonly State[]) => {
    const of = (...kinds: Operation['kind'][]) => own.filter(({ operation }) => kinds.includes(operation.kind))
    const resumed = of('endPause').reduce((sum, { answer }) => sum + Number(answer), 0)
    const changes = resumed + of('pause', 'resume', 'edit').filter(({ answer }) => answer).length
    const now = clock.now().getTime()
    const faults = cueFaults(before, found, { changes, resumed, slots: of('slot').length }, now)
    if (faults.length > 0) fail('a cue is wrong', { faults, before, found })
    if (!isAlone) return
    const [one] = of(...cueOperations)
    const expected = one ? cueAfter(one.operation as CueOperation, before, open, now) : before
    const wrong = Object.keys(found).filter(name => (expected ?? before)[name as keyof CueState] !== found[name as keyof CueState])
    if (wrong.length > 0 || (one && (one.refused !== null) !== (expected === undefined)))
      fail('a cue was changed wrongly', { wrong, refused: one?.refused, before, expected, found })
    if (one?.operation.kind === 'slot' && isCreated !== found.taken > before.taken)
      fail('a slot has no execution, or one too many', { before, found })
  }

  /** Checks that a caller's result fits its operation's updates and the execution's states during the call. */
  const checkAnswer = (done: Done, moves: Move[], seen: State[], isDeleted: boolean[], isAlone: boolean) => {
    const { operation, on, refused, answer } = done
    const now = clock.now().getTime()
    const nothing = refused !== null || (Array.isArray(answer) && answer.length === 0) || answer === 0
    if (refused !== null && moves.length > 0) fail(`${operation.kind} was refused but changed something`, { refused, moves })
    if (refused === 'QU029') return checkSkipped(done, isAlone)
    if (!on) return
    const judged = seen.flatMap(state => isDeleted.map(gone => refusal(operation, state, gone, now)))
    if (nothing && !judged.includes(refused ?? '')) fail(`${operation.kind} was refused without a reason`, { refused, judged, seen })
    if (!nothing && !judged.includes(null)) fail(`${operation.kind} was not refused`, { judged, seen })
    if (!nothing && moves.length === 0 && !['attach', 'replay'].includes(operation.kind)) fail(`${operation.kind} did nothing`, { answer })
  }

  /** Checks what holds whenever no operation is running. */
  const checkInvariants = async (after: Snapshot) => {
    for (const state of states.values()) {
      const cue = cueOf.get(state.id)!
      if (deleted.has(cue.cue_id)) continue
      const faults = faultsOf(state, cue, after.tracked.includes(cue.cue_id), after)
      if (faults.length > 0) fail('an execution is wrong', { faults, state })
    }
    if (after.broken_cues.length > 0) fail('a cue is wrong', after.broken_cues)
    const tokens = [...states.values()].flatMap(({ status, claim_token }) => (status === 'delivering' && claim_token ? [claim_token] : []))
    if (new Set(tokens).size < tokens.length) fail('two claims have the same token')
    if (++looks % logsEvery > 0) return
    const { rows } = await pool.query(brokenLogs)
    if (rows.length > 0) fail('executions have another log than they have attempts', rows)
  }

  /** Runs these operations concurrently, then checks. */
  const step = async (steps: Step[]): Promise<Done[]> => {
    trace = [...trace.slice(-40), { at: clock.now(), steps: steps.map(({ operation, on }) => ({ ...operation, on })) }]
    const before = new Set(deleted)
    const done = await Promise.all(steps.map((step, n) => run(all[n]!, step)))
    const after = await first.look()
    const { moves } = after
    const isHeard = steps.some(({ operation }) => ['showWorker', 'heartbeat'].includes(operation.kind))
    for (const { operation, cue, refused } of done) if (operation.kind === 'deleteCue' && !refused) deleted.add(cue!.cue_id)
    const [only] = steps.length === 1 ? done : []
    const openBefore = only?.cue ? openOf(only.cue.cue_id) : []
    const seen = new Map<string, State[]>()
    for (const { on } of steps) if (on) seen.set(on, [states.get(on)!])
    for (const moved of moves) {
      const by = done.find(({ pid }) => pid === moved.pid)!
      check(moved, by, after, before, isHeard)
      const { id } = moved.new
      if (!moved.old) cueOf.set(id, by.cue ?? cueOf.get(by.on!)!)
      if (moved.new.status === 'delivering' && moved.old?.status !== 'delivering') begunAt.set(id, clock.now().getTime())
      seen.get(id)?.push(moved.new)
      states.set(id, moved.new)
      seq = moved.seq
    }
    for (const one of done) {
      const gone = one.on ? [before, deleted].map(set => set.has(cueOf.get(one.on!)!.cue_id)) : []
      const own = moves.filter(({ pid }) => pid === one.pid)
      checkAnswer(one, own, seen.get(one.on ?? '') ?? [], gone, only !== undefined)
    }
    const isCreated = moves.some(({ old }) => !old)
    for (const [id, found] of Object.entries(after.cues)) {
      const own = done.filter(({ cue }) => cue?.cue_id === id)
      checkCue(last.cues[id]!, found, own, only !== undefined, isCreated, openBefore)
    }
    await checkInvariants(after)
    last = after
    const stalled = stalledCues(after, states)
    if (stalled.length === 0) return done
    // An end that began before its cue was tracked starts nothing: repair_queues does.
    if (only) fail('a queue is stalled', stalled)
    repairs++
    return [...done, ...(await step([{ operation: { kind: 'repair' }, call: f => f.repairQueues({}) }]))]
  }

  return {
    states,
    cueOf,
    deleted,
    callers: all.length,
    step,
    flights: () => last.flights,
    /** What is known of a cue, or undefined if it is deleted. */
    cue: (cue_id: string): CueState | undefined => last.cues[cue_id],
    isTracked: (cue_id: string) => last.tracked.includes(cue_id),
    /** How often a queue had to be repaired. */
    repairs: () => repairs,
    /** Reads the cues again, after some were added. */
    readCues: async () => {
      last = await first.look()
    },
    fail,
    forget: () => {
      for (const map of [states, cueOf, begunAt, deleted]) map.clear()
    },
    close: () => Promise.all(all.map(caller => caller.end()))
  }
}

export type Driver = Awaited<ReturnType<typeof createDriver>>
