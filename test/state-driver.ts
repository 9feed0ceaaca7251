/**
 * Runs random operations of several concurrent callers, checks every update of an execution, as recorded by a trigger, against the model, and
 * then the invariants that hold whenever no operation is running.
 */
import type pg from 'pg'
import { createFunctions, type Functions } from '../src/database/functions.ts'
import { connectDirect } from '../src/database/pool.ts'
import { testConfig } from './database.ts'
import { creationFaults, isQueued, never, type Overlap, placeBeside, started, superseded } from './overlap-model.ts'
import { begun, claimMs, differences, move, type Operation, type Rules, refusal, type State, sent } from './state-model.ts'

export type Caller = {
  pid: number
  fn: Functions
  /** Waits until the server has flushed earlier changes. */
  settled: () => Promise<unknown>
  end: () => Promise<void>
}
export type Cue = Rules & { cue_id: string; transport: State['transport'] }
/** An operation on one execution, on a cue, or on whatever is due, and the call that performs it. */
export type Step = { operation: Operation; on?: string; cue?: Cue; call: (fn: Functions) => Promise<unknown> }
type Done = Step & { pid: number; answer: unknown; refused: string | null }
type Move = { seq: number; pid: number; old: State | null; new: State }
/** What engines and callers know of a cue. `next` is its next slot, or the one after its last slot while it is paused. */
export type CueState = { version: number; overlap: Overlap; status: string; next: number; overlaps: number; queue_fulls: number }
type Snapshot = {
  moves: Move[] | null
  flights: Record<string, { lease: number; created: number }> | null
  workers: Record<string, number> | null
  cues: Record<string, CueState> | null
  /** Cues with a queue although none of their executions is running. */
  stalled: string[] | null
  broken: { id: string; why: string }[] | null
  broken_cues: string[] | null
}

const fields = `id, transport, status, attempts, lost_attempts, flight_id, claim_token, claimed_by_worker, outcome_state, outcome_success, external_id`
const instants = `attempt_due_at, claimable_at, claim_deadline_at, last_heartbeat_at, lease_expires_at, outcome_deadline_at, rejected_at, ended_at`
const list = (text: string) => text.split(', ')
// JSON has no infinity.
const ms = (expression: string) =>
  `case ${expression} when 'infinity' then ${never}::float8 else (extract(epoch from ${expression}) * 1000)::float8 end`
const stateOf = (row: string) =>
  `jsonb_build_object(${[...list(fields).map(name => `'${name}', ${row}.${name}`), ...list(instants).map(name => `'${name}', ${ms(`${row}.${name}`)}`)]},
    'superseded', ${row}.status = 'failed' and ${row}.transport = 'worker' and ${row}.claim_token is null
                  and coalesce(${row}.error_message = 'superseded by the next run', false))`

/** The first slot of every cue; the others follow a millisecond apart. */
export const firstSlot = Date.parse('2030-01-15T08:00:00Z')
const nextSlot = `coalesce(r.next_run, r.last_slot + interval '1 millisecond', to_timestamp(${firstSlot} / 1000.0))`

/** A trigger logs every update of an execution, in order per row. */
export const watch = `
  create schema test;
  create unlogged table test.moves (seq bigserial primary key, pid int not null, old jsonb, new jsonb);
  create function test.watch() returns trigger language plpgsql as $$
  begin
    insert into test.moves (pid, old, new)
    values (pg_backend_pid(), case tg_op when 'UPDATE' then ${stateOf('old')} end, ${stateOf('new')});
    return null;
  end $$;
  create trigger watch after insert or update on cue.executions for each row execute function test.watch()`

const missedCounts = `cross join lateral (
  select coalesce(sum(s.count) filter (where s.reason = 'overlap'), 0)::int as overlaps,
         coalesce(sum(s.count) filter (where s.reason = 'queue_full'), 0)::int as queue_fulls from cue.missed_slots s where s.cue_id = c.id) m`

// Whatever moves a waiting execution on must exist; each ended attempt is in its log.
const snapshot = `
  select (select json_agg(json_build_object('seq', m.seq, 'pid', m.pid, 'old', m.old, 'new', m.new) order by m.seq)
            from test.moves m where m.seq > $1) as moves,
         (select json_object_agg(id, json_build_object('lease', ${ms('lease_expires_at')}, 'created', ${ms('created_at')})) from cue.flights) as flights,
         (select json_object_agg(worker_id, ${ms('last_heartbeat')}) from cue.workers) as workers,
         (select json_agg(json_build_object('id', e.id, 'why', w.why))
            from cue.executions e join cue.cues c on c.id = e.cue_id and c.deleted_at is null
           cross join lateral (select exists (select from pgboss.job j where j.name = 'attempts' and j.id = e.id and j.state < 'active'
                                                 and j.start_after = e.attempt_due_at) as due) j
           cross join lateral (values
             (e.attempt_due_at < 'infinity' and not j.due, 'waits for an attempt without a job'),
             (e.attempt_due_at = 'infinity' and exists (select from pgboss.job j where j.name = 'attempts' and j.id = e.id), 'is queued, and has a job'),
             (e.ended_at is null and c.tracked and not exists (select from cue.open_executions o where o.execution_id = e.id),
              'is not among the open executions of its cue'),
             (('infinity' in (e.attempt_due_at, e.claimable_at)) is true
                <> coalesce((select o.is_queued from cue.open_executions o where o.execution_id = e.id) and e.ended_at is null, false),
              'is queued in one table only'),
             (e.ended_at is not null and exists (select from pgboss.job j where j.name = 'attempts' and j.id = e.id), 'has ended, and has a job'),
             (e.flight_id is not null and not exists (select from cue.flights f where f.id = e.flight_id and e.id = any (f.execution_ids)),
              'flies without a flight'),
             (e.claimable_at is not null and e.claim_deadline_at is null, 'may wait for a worker for ever'),
             (e.ended_at is null and num_nonnulls(e.attempt_due_at, e.flight_id, e.claimable_at, e.lease_expires_at, e.outcome_deadline_at) <> 1,
              'has not exactly one thing to wait for'),
             (e.attempts - e.lost_attempts > c.retry_max_attempts, 'has had more attempts than its cue allows'),
             (e.transport = 'webhook' and e.lost_attempts > 5, 'has lost more attempts than five'),
             ((select coalesce(array_agg(a.attempt order by a.attempt), '{}') from cue.attempt_view a where a.execution_id = e.id)
                <> array(select generate_series(1, e.attempts - (e.status = 'delivering')::int)), 'has another log than it has attempts'))
             as w (broken, why)
           where w.broken
         ) as broken,
         (select json_object_agg(c.id, json_build_object('version', r.version, 'overlap', c.overlap, 'status', c.status, 'next', ${ms(nextSlot)},
                   'overlaps', m.overlaps, 'queue_fulls', m.queue_fulls))
            from cue.cues c join cue.cue_runs r on r.cue_id = c.id ${missedCounts} where c.deleted_at is null) as cues,
         (select json_agg(c.id || case when c.tracked <> r.tracked then ' is tracked in one table only'
                                       when not c.tracked and c.overlap <> 'allow' then ' has a rule, and is not tracked'
                                       else ' has slots that are not accounted for' end)
            from cue.cues c join cue.cue_runs r on r.cue_id = c.id ${missedCounts}
           where c.deleted_at is null
             and (c.tracked <> r.tracked or not c.tracked and c.overlap <> 'allow'
                  or r.fired_count + m.overlaps + m.queue_fulls <> round(${ms(nextSlot)} - ${firstSlot}))) as broken_cues,
         (select json_agg(distinct o.cue_id) from cue.open_executions o join cue.cues c on c.id = o.cue_id and c.deleted_at is null
           where o.is_queued and not exists (select from cue.open_executions_of(o.cue_id) x where not x.is_queued)
             and exists (select from cue.open_executions_of(o.cue_id))) as stalled`

export const createDriver = async (pool: pg.Pool, url: string, clock: { now: () => Date }, callers: number) => {
  await pool.query(watch)
  const connect = async (): Promise<Caller> => {
    const client = await connectDirect(testConfig(url))
    const { rows } = await client.query('select pg_backend_pid() as pid')
    return { pid: rows[0].pid, fn: createFunctions(client, clock.now), settled: () => client.query('select'), end: () => client.end() }
  }
  const all = await Promise.all(Array.from({ length: callers }, connect))

  const states = new Map<string, State>()
  const cueOf = new Map<string, Cue>()
  const deleted = new Set<string>()
  const begunAt = new Map<string, number>()
  let seq = 0
  let flights: NonNullable<Snapshot['flights']> = {}
  let workers: NonNullable<Snapshot['workers']> = {}
  let cues: NonNullable<Snapshot['cues']> = {}
  let repairs = 0
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
    return [cues, after.cues ?? {}].flatMap(known => known[cue!.cue_id]?.overlap ?? [])
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
    const flight = flights[old.flight_id ?? -1]
    if (operation.kind === 'recoverFlights' && !(flight && flight.lease < now))
      fail('a flight was recovered before it expired', { old, flight })
    if (operation.kind === 'recoverStuck' && !(begunAt.get(old.id)! < now - 300_000)) fail('an attempt was ended too early', old)
    // A worker may have sent a heartbeat before or after this update and then been removed, and a cue may have been deleted.
    const rules = cueOf.get(old.id)!
    const heard = [workers, after.workers ?? {}].map(known => (worker: string) => known[worker] ?? 0)
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

  /** A slot that is fired alone has an execution, or is recorded as the model says. */
  const checkSlot = ({ cue }: Done, isCreated: boolean, open: readonly State[], after: Snapshot) => {
    const [before, known] = [cues[cue!.cue_id], after.cues?.[cue!.cue_id]]
    if (!before || !known) return
    if (before.status === 'active' && known.next !== before.next + 1) fail('a slot was not fired', { before, known })
    const place = placeBeside(before.overlap, open)
    const expected = before.status !== 'active' ? [0, 0] : [Number(place === 'overlap'), Number(place === 'queue_full')]
    const added = [known.overlaps - before.overlaps, known.queue_fulls - before.queue_fulls]
    if (String(added) !== String(expected)) fail('a slot was recorded wrongly', { place, added })
    if (isCreated !== (before.status === 'active' && ['run', 'queue'].includes(place)))
      fail('a slot has no execution, or one too many', { place })
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

  /** Runs these operations concurrently, then checks. */
  const step = async (steps: Step[]): Promise<Done[]> => {
    trace = [...trace.slice(-40), { at: clock.now(), steps: steps.map(({ operation, on }) => ({ ...operation, on })) }]
    const before = new Set(deleted)
    const done = await Promise.all(steps.map((step, n) => run(all[n]!, step)))
    const after: Snapshot = (await pool.query({ name: 'snapshot', text: snapshot, values: [seq] })).rows[0]
    const moves = after.moves ?? []
    const isHeard = steps.some(({ operation }) => ['showWorker', 'heartbeat'].includes(operation.kind))
    for (const { operation, cue, refused } of done) if (operation.kind === 'deleteCue' && !refused) deleted.add(cue!.cue_id)
    const [only] = steps.length === 1 ? done : []
    const openBefore = only?.operation.kind === 'slot' ? openOf(only.cue!.cue_id) : []
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
    if (only?.operation.kind === 'slot')
      checkSlot(
        only,
        moves.some(({ old }) => !old),
        openBefore,
        after
      )
    if (after.broken ?? after.broken_cues) fail('an invariant is violated', { executions: after.broken, cues: after.broken_cues })
    flights = after.flights ?? {}
    workers = after.workers ?? {}
    cues = after.cues ?? {}
    const tokens = [...states.values()].flatMap(({ status, claim_token }) => (status === 'delivering' && claim_token ? [claim_token] : []))
    if (new Set(tokens).size < tokens.length) fail('two claims have the same token')
    if (!after.stalled) return done
    // An end that began before its cue was tracked starts nothing: repair_queues does.
    if (only) fail('a queue is stalled', after.stalled)
    repairs++
    return [...done, ...(await step([{ operation: { kind: 'repair' }, call: f => f.repairQueues({}) }]))]
  }

  return {
    states,
    cueOf,
    deleted,
    callers: all.length,
    step,
    flights: () => flights,
    /** What is known of a cue, or undefined if it is deleted. */
    cue: (cue_id: string): CueState | undefined => cues[cue_id],
    /** How often a queue had to be repaired. */
    repairs: () => repairs,
    /** Reads the cues again, after some were added. */
    readCues: async () => {
      cues = (await pool.query({ name: 'snapshot', text: snapshot, values: [seq] })).rows[0].cues ?? {}
    },
    fail,
    forget: () => {
      for (const map of [states, cueOf, begunAt, deleted]) map.clear()
    },
    close: () => Promise.all(all.map(caller => caller.end()))
  }
}

export type Driver = Awaited<ReturnType<typeof createDriver>>
