/** What the walk sees of the database after each step, in one query, and the invariants that hold between its tables. */
import { type CueState, firstSlot } from './cue-model.ts'
import { isQueued, never, queueLimit } from './overlap-model.ts'
import type { Rules, State } from './state-model.ts'

/** An update of an execution. */
export type Move = { seq: number; pid: number; old: State | null; new: State }
export type Snapshot = {
  moves: Move[]
  flights: Record<string, { lease: number; ids: string[] }>
  workers: Record<string, number>
  cues: Record<string, CueState>
  tracked: string[]
  /** When the job of each execution starts; null if it does not wait. */
  jobs: Record<string, number | null>
  /** The open executions of tracked cues. */
  open: Record<string, { cue_id: string; is_queued: boolean }>
  broken_cues: { id: string; why: string }[]
}

const fields = `id, transport, status, attempts, lost_attempts, flight_id, claim_token, claimed_by_worker, outcome_state, outcome_success, external_id`
const instants = `attempt_due_at, claimable_at, claim_deadline_at, last_heartbeat_at, lease_expires_at, outcome_deadline_at, rejected_at, ended_at`
const list = (text: string) => text.split(', ')
// JSON has no infinity, and JavaScript's clock no microseconds.
const ms = (expression: string) =>
  `case ${expression} when 'infinity' then ${never}::float8 else floor(extract(epoch from ${expression}) * 1000)::float8 end`
const stateOf = (row: string) =>
  `json_build_object(${[...list(fields).map(name => `'${name}', ${row}.${name}`), ...list(instants).map(name => `'${name}', ${ms(`${row}.${name}`)}`)]},
    'superseded', ${row}.status = 'failed' and ${row}.transport = 'worker' and ${row}.claim_token is null
                  and coalesce(${row}.error_message = 'superseded by the next run', false))`

const nextSlot = `coalesce(r.next_run, r.last_slot + interval '1 millisecond', to_timestamp(${firstSlot} / 1000.0))`

/** A trigger logs every update of an execution, in order per row; queues are short, so that they fill up. */
export const watch = `
  create or replace function cue.queue_limit() returns int language sql immutable as $$ select ${queueLimit} $$;
  create schema test;
  create unlogged table test.moves (seq bigserial primary key, pid int not null, old json, new json);
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

const all = (json: string, from: string) => `(select coalesce(json_agg(${json}), '[]') from ${from})`
const byId = (id: string, json: string, from: string) => `(select coalesce(json_object_agg(${id}, ${json}), '{}') from ${from})`

/** With the moves after the move $1. */
export const snapshot = `
  select ${all(`json_build_object('seq', m.seq, 'pid', m.pid, 'old', m.old, 'new', m.new) order by m.seq`, 'test.moves m where m.seq > $1')} as moves,
         ${byId('id', `json_build_object('lease', ${ms('lease_expires_at')}, 'ids', execution_ids)`, 'cue.flights')} as flights,
         ${byId('worker_id', ms('last_heartbeat'), 'cue.workers')} as workers,
         ${byId(
           'c.id',
           `json_build_object('version', r.version, 'overlap', c.overlap, 'status', c.status, 'next', ${ms(nextSlot)},
                   'taken', r.fired_count - coalesce(r.skipped_count, 0), 'max_runs', c.schedule_rules -> 'max_runs', 'until', ${ms('c.paused_until')},
                   'overlaps', m.overlaps, 'queue_fulls', m.queue_fulls)`,
           `cue.cues c join cue.cue_runs r on r.cue_id = c.id ${missedCounts} where c.deleted_at is null`
         )} as cues,
         ${all('id', 'cue.cues where tracked')} as tracked,
         ${byId('id', `case when state < 'active' then ${ms('start_after')} end`, `pgboss.job where name = 'attempts'`)} as jobs,
         ${byId(
           'execution_id',
           `json_build_object('cue_id', cue_id, 'is_queued',
              exists (select from cue.held_executions h where h.execution_id = o.execution_id and h.held_by = 'overlap'))`,
           'cue.open_executions o'
         )} as open,
         ${all(
           `json_build_object('id', c.id, 'why', w.why)`,
           `cue.cues c join cue.cue_runs r on r.cue_id = c.id
            cross join lateral (values
              (c.tracked <> r.tracked, 'is tracked in one table only'),
              (not c.tracked and c.overlap <> 'allow', 'has a rule, and is not tracked'),
              ((c.status = 'active') <> (r.next_run is not null), 'is active without a slot, or has one and is not active'),
              (r.schedule_key <> cue.schedule_key(c), 'has the key of another schedule')) as w (broken, why)
            where w.broken and c.deleted_at is null`
         )} as broken_cues`

/** Executions whose log is not that of their attempts. */
export const brokenLogs = `
  select e.id from cue.executions e
   where (select coalesce(array_agg(a.attempt order by a.attempt), '{}') from cue.attempt_view a where a.execution_id = e.id)
         <> array(select generate_series(1, e.attempts - (e.status = 'delivering')::int))`

/** What is wrong with an execution of a cue that is not deleted; empty if nothing. */
export const faultsOf = (state: State, rules: Rules, isTracked: boolean, { jobs, open, flights }: Snapshot): string[] => {
  const { id, ended_at, attempt_due_at, flight_id, claimable_at, claim_deadline_at, lease_expires_at, outcome_deadline_at } = state
  const waits = attempt_due_at !== null && attempt_due_at !== never
  const isOpen = ended_at === null
  const reasons = [attempt_due_at, flight_id, claimable_at, lease_expires_at, outcome_deadline_at].filter(reason => reason !== null)
  const wrong: [boolean, string][] = [
    [waits && jobs[id] !== attempt_due_at, 'waits for an attempt without a job'],
    [!waits && id in jobs, 'has a job, but waits for no attempt'],
    [isOpen && isTracked && !open[id], 'is not among the open executions of its cue'],
    [isQueued(state) !== (isOpen && (open[id]?.is_queued ?? false)), 'is queued in one table only'],
    [flight_id !== null && !flights[flight_id]?.ids.includes(id), 'flies without a flight'],
    [claimable_at !== null && claim_deadline_at === null, 'may wait for a worker for ever'],
    [isOpen && reasons.length !== 1, 'has not exactly one thing to wait for'],
    [state.attempts - state.lost_attempts > rules.maxAttempts, 'has had more attempts than its cue allows'],
    [state.transport === 'webhook' && state.lost_attempts > 5, 'has lost more attempts than five']
  ]
  return wrong.flatMap(([isWrong, why]) => (isWrong ? [why] : []))
}

/** Cues with a queue although none of their executions is running. */
export const stalledCues = ({ open }: Snapshot, states: ReadonlyMap<string, State>): string[] => {
  const entries = Object.entries(open).filter(([id]) => states.get(id)?.ended_at === null)
  const running = new Set(entries.flatMap(([, { cue_id, is_queued }]) => (is_queued ? [] : [cue_id])))
  return entries.flatMap(([, { cue_id }]) => (running.has(cue_id) ? [] : [cue_id]))
}
