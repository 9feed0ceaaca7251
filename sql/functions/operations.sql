-- Bulk operations: created with their targets, which run_operation takes in small batches. Locks: the account, the operation, its targets, then cues and
-- the rest. A batch is acted on and removed in one transaction, so no target is acted on twice. Nothing waits for a lock: what is held is tried later.

-- p_targets: the ids of executions or cues, or the slots of a backfill, as a JSON array in the order in which they are acted on.
-- p_states: their target_state in the statement that chose them; without it, as they are now.
-- p_missing: ids that were not found; they have failed at once.
-- QU025 another operation of this type is running, and its id is the detail. QU031 above ten per hour.
create or replace function cue.create_operation(
  p_account_id uuid, p_type cue.operation_type, p_targets jsonb, p_missing text[] default '{}', p_name text default null,
  p_rate_per_minute int default null, p_settings jsonb default '{}', p_states jsonb default null, p_actor text default session_user,
  p_now timestamptz default now(), p_may_approve boolean default false
) returns setof cue.operations
language plpgsql security definer as $$
declare
  o cue.operations;
  v_total int := jsonb_array_length(p_targets);
  v_missing int := coalesce(cardinality(p_missing), 0);
  v_code text := case when cue.acts_on_executions(p_type) then 'QU002' else 'QU001' end;
  v_running text;
  v_oldest timestamptz;
begin
  perform cue.refuse_if(p_type in ('approve', 'reject') and not p_may_approve, 'QU052',
    'Only a signed-in person, or a key with scope approve, can approve and reject.');
  -- Rather than the account's row, which others need.
  perform pg_advisory_xact_lock(hashtextextended(concat_ws(' ', p_account_id, 'operations'), 0));
  select id into v_running from cue.operations where account_id = p_account_id and type = p_type and status = 'running';
  perform cue.refuse_if(found, 'QU025', format('Operation %s of type %s is still running. Wait until it has ended, or abort it.', v_running, p_type),
    v_running);
  select t.created_at into v_oldest from cue.operations t
   where t.account_id = p_account_id and t.created_at > p_now - interval '1 hour' order by t.created_at desc, t.id desc offset 9 limit 1;
  perform cue.refuse_if(found, 'QU031', 'Operation limit reached: 10 per hour.',
    ceil(extract(epoch from v_oldest + interval '1 hour' - p_now))::text);
  insert into cue.operations (id, account_id, type, name, status, settings, rate_per_minute, total, failed, errors, paced_at, worked_at,
                              created_by, may_approve, created_at, ended_at)
  values ('op_' || substring(cue.new_cue_id() from 5), p_account_id, p_type, p_name,
          case when v_total = 0 then 'completed'::cue.operation_status else 'running' end, p_settings, p_rate_per_minute, v_total + v_missing,
          v_missing,
          (select coalesce(jsonb_agg(jsonb_build_object('target', m.id, 'code', v_code, 'message', m.id || ' not found') order by m.n), '[]')
             from unnest(p_missing) with ordinality as m (id, n) where m.n <= 100),
          p_now, p_now, p_actor, p_may_approve, p_now, case when v_total = 0 then p_now end)
  returning * into o;
  insert into cue.operation_targets (operation_id, place, targets, states)
  select o.id, (g.n - 1) / 20, array_agg(g.target order by g.n),
         array_agg(coalesce(g.state, cue.target_state(p_type, g.target), '') order by g.n)
    from rows from (jsonb_array_elements_text(p_targets), jsonb_array_elements_text(p_states)) with ordinality as g (target, state, n)
   group by (g.n - 1) / 20;
  if o.status = 'running' then perform cue.queue_operation(o.id); end if;
  perform cue.record_event(p_account_id, 'operation.created', p_actor, null,
    jsonb_build_object('operation_id', o.id, 'type', o.type, 'total', o.total, 'not_found', o.failed)
    || p_settings - '{paused_until,overlap}'::text[], p_now);
  return next o;
end $$;
comment on function cue.create_operation is 'Creates an operation with its targets and queues it; QU025 if one of its type is running, QU031 above 10 per hour, QU052 it decides about approvals without p_may_approve.';

create or replace function cue.acts_on_executions(p_type cue.operation_type) returns boolean
language sql immutable as $$ select p_type in ('replay', 'cancel', 'dismiss', 'approve', 'reject') $$;
comment on function cue.acts_on_executions is 'Returns whether the targets of an operation are executions.';

create or replace function cue.target_state(p_type cue.operation_type, p_target text) returns text
language plpgsql stable security definer as $$
begin
  if p_type = 'backfill' then return null; end if;
  if cue.acts_on_executions(p_type) then
    return (select e.status || case when exists (select from cue.dead_letters d where d.execution_id = e.id) then ' dead' else '' end
              from cue.executions e where e.id = p_target::uuid);
  end if;
  return (select c.status from cue.cues c where c.id = p_target and c.deleted_at is null);
end $$;
comment on function cue.target_state is 'Returns what decides whether an operation can act on an execution or a cue; null if it is gone, or for a slot.';

create or replace function cue.queue_operation(p_operation_id text, p_delay interval default '0 seconds') returns void
language sql security definer as $$
  select cue.add_job('operations', jsonb_build_object('operation_id', o.id, 'account_id', o.account_id), p_start_after => now() + p_delay,
                     p_singleton_key => o.id)
    from cue.operations o where o.id = p_operation_id and o.status = 'running'
$$;
comment on function cue.queue_operation is 'Adds the job that goes on with a running operation, unless one is waiting.';

-- A job is missing if its replica was killed: every call of run_operation sets worked_at.
create or replace function cue.requeue_operations(p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_count int;
begin
  perform cue.queue_operation(id) from cue.operations
    where status = 'running' and greatest(worked_at, paced_at) < p_now - interval '20 seconds';
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function cue.requeue_operations is 'Adds the missing jobs of running operations; returns how many were looked at.';

create or replace function cue.abort_operation(p_account_id uuid, p_operation_id text, p_now timestamptz default now()) returns setof cue.operations
language plpgsql security definer as $$
declare
  o cue.operations;
begin
  select * into o from cue.operations where id = p_operation_id and account_id = p_account_id for update;
  perform cue.refuse_if(not found, 'QU009', format('operation %s not found', p_operation_id));
  perform cue.refuse_if(o.status = 'completed', 'QU011', format('Only a running operation can be aborted; operation %s is completed.', o.id));
  if o.status = 'running' then
    update cue.operations set status = 'aborted', ended_at = p_now where id = o.id returning * into o;
    delete from cue.operation_targets where operation_id = o.id;
    perform cue.add_operation_event(o.id, p_now);
  end if;
  return next o;
end $$;
comment on function cue.abort_operation is 'Ends an operation after its current batch; QU009 not found, QU011 completed.';

-- The next cues that a resume needs runs for: cron slots are computed by the caller.
create or replace function cue.next_resumed(p_operation_id text) returns table (account_id uuid, cue_id text)
language sql stable security definer as $$
  select o.account_id, unnest(t.targets) from cue.operations o
   cross join lateral (select targets from cue.operation_targets where operation_id = o.id order by place limit 1) t
   where o.id = p_operation_id and o.type = 'resume' and o.status = 'running'
$$;
comment on function cue.next_resumed is 'Returns the next targets of an operation that resumes cues.';

-- p_resumed: for an operation that resumes cues, {version, columns, next_run, next_slot} by cue id, or {code, message} if it cannot be resumed. status is null if the
-- operation is gone; wait_ms says when to call again.
create or replace function cue.run_operation(p_operation_id text, p_resumed jsonb default '{}', p_now timestamptz default now())
returns table (status cue.operation_status, wait_ms float8)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  o cue.operations;
  t cue.operation_targets;
  v_each interval;
  v_allowed int;
  v_at timestamptz;
  b record;
begin
  perform from cue.accounts where id = (select account_id from cue.operations where id = p_operation_id) for no key update skip locked;
  if found then
    select * into o from cue.operations q where q.id = p_operation_id and q.status = 'running' for update skip locked;
  end if;
  if o.id is null then
    return query select q.status, 50::float8 from cue.operations q where q.id = p_operation_id;
    return;
  end if;
  -- What it made would wait, and then run at once, above the operation's rate.
  if o.type in ('replay', 'fire', 'backfill') and cue.is_held(o.account_id) then
    update cue.operations q set worked_at = p_now where q.id = o.id;
    return query select 'running'::cue.operation_status, 5000::float8;
    return;
  end if;
  select * into t from cue.operation_targets where operation_id = o.id order by place limit 1;
  if not found then
    update cue.operations q set status = 'completed', ended_at = p_now where q.id = o.id;
    perform cue.add_operation_event(o.id, p_now);
    return query select 'completed'::cue.operation_status, 0::float8;
    return;
  end if;
  -- What an interruption has left undone is not caught up, but for a quarter of a second at high rates. So those have a minute that is longer by as much.
  v_each := case when o.rate_per_minute > 240 then interval '60.25 seconds' else interval '1 minute' end / o.rate_per_minute;
  if o.paced_at < p_now - interval '250 milliseconds' then
    o.paced_at := p_now - case when o.rate_per_minute > 240 then interval '250 milliseconds' else interval '0' end;
  end if;
  -- A millisecond apart, also from the last batch, so that queues and lists keep the order of the targets.
  v_at := greatest(p_now, o.worked_at);
  v_allowed := least(cardinality(t.targets), 1 + floor(extract(epoch from p_now - o.paced_at) / extract(epoch from v_each)));
  select o as operation, 0 as acted, 0 as later into b;
  if v_allowed > 0 then
    select * into b from cue.run_batch(o, t, v_allowed, p_resumed, v_at);
    o := b.operation;
    if o.status = 'completed' then o.ended_at := p_now; end if;
  end if;
  update cue.operations q
     set succeeded = o.succeeded, failed = o.failed, skipped = o.skipped, errors = o.errors, status = o.status, ended_at = o.ended_at,
         paced_at = coalesce(o.paced_at + (b.acted - b.later) * v_each, o.paced_at), worked_at = v_at + b.acted * interval '1 millisecond'
   where q.id = o.id returning * into o;
  if o.status = 'completed' then perform cue.add_operation_event(o.id, p_now); end if;
  return query select o.status, case when v_allowed > 0 and b.later = b.acted then 250
                                     when v_each is null then 0 else greatest(0, extract(epoch from o.paced_at - p_now) * 1000) end::float8;
end $$;
comment on function cue.run_operation is 'Acts on an operation''s next targets; returns its status, and when to go on.';

-- Ends after 20 ms, since it holds the locks of its cues. The caller writes the operation.
create or replace function cue.run_batch(
  o cue.operations, t cue.operation_targets, p_allowed int, p_resumed jsonb, p_at timestamptz, out operation cue.operations, out acted int, out later int
)
language plpgsql security definer as $$
declare
  v_free text[] := cue.lock_free_cues(cue.cues_of_targets(o, t.targets[:p_allowed]));
  v_later int[] := '{}';
  v_result jsonb;
  v_until timestamptz := clock_timestamp() + interval '20 milliseconds';
  n int := 0;
begin
  while n < p_allowed and (n = 0 or clock_timestamp() < v_until) loop
    n := n + 1;
    v_result := cue.act_on_target(o, t.targets[n], t.states[n], v_free, p_resumed, p_at + n * interval '1 millisecond');
    -- The slots of a backfill stay in order.
    if o.type = 'backfill' and v_result ->> 'result' = 'later' then
      n := n - 1;
      exit;
    end if;
    case v_result ->> 'result'
      when 'succeeded' then o.succeeded := o.succeeded + 1;
      when 'skipped' then o.skipped := o.skipped + 1;
      when 'later' then v_later := v_later || n;
      else
        o.failed := o.failed + 1;
        if jsonb_array_length(o.errors) < 100 then o.errors := o.errors || jsonb_build_array(v_result - 'result'); end if;
    end case;
  end loop;
  if n < cardinality(t.targets) or v_later <> '{}' then
    -- What is held comes last; if all of a batch is, the other batches come first.
    update cue.operation_targets q
       set targets = t.targets[n + 1:] || array(select t.targets[i] from unnest(v_later) as l (i)),
           states = t.states[n + 1:] || array(select t.states[i] from unnest(v_later) as l (i)),
           place = case when cardinality(v_later) = n and n > 0
             then (select max(m.place) + 1 from cue.operation_targets m where m.operation_id = o.id) else q.place end
     where q.operation_id = o.id and q.place = t.place;
  else
    delete from cue.operation_targets q where q.operation_id = o.id and q.place = t.place;
    if not exists (select from cue.operation_targets q where q.operation_id = o.id) then o.status := 'completed'; end if;
  end if;
  operation := o;
  acted := n;
  later := cardinality(v_later);
end $$;
comment on function cue.run_batch is 'Acts on a batch of targets; returns the changed operation, how many, and how many of those are left for later.';

create or replace function cue.cues_of_targets(o cue.operations, p_targets text[]) returns text[]
language plpgsql stable security definer as $$
begin
  if o.type = 'backfill' then return array[o.settings ->> 'cue_id']; end if;
  if cue.acts_on_executions(o.type) then
    return array(
      select x.cue_id from unnest(p_targets) as u (id)
       cross join lateral (select e.cue_id from cue.executions e where e.id = u.id::uuid limit 1) x);
  end if;
  return p_targets;
end $$;
comment on function cue.cues_of_targets is 'Returns the cues that acting on these targets locks.';

-- The caller has locked the account and p_free, those of the cues that are not held by others. p_state is the target's when it was chosen.
-- What was deleted since is skipped, and so are executions that have changed, and cues that are refused because they have. Any other refusal
-- is the target's error. What is held, or changed at this moment, is left for later. Anything else ends the batch.
create or replace function cue.act_on_target(
  o cue.operations, p_target text, p_state text, p_free text[], p_resumed jsonb, p_now timestamptz
) returns jsonb
language plpgsql security definer as $$
declare
  c cue.cues;
  v_version int;
  v_done boolean := true;
  v_overlap cue.overlap := coalesce(o.settings ->> 'overlap', 'allow')::cue.overlap;
  v_code text;
  v_message text;
begin
  if cue.acts_on_executions(o.type) and p_state is distinct from cue.target_state(o.type, p_target) then
    return '{"result": "skipped"}';
  end if;
  select q.* into c from cue.cues q where q.id = (cue.cues_of_targets(o, array[p_target]))[1] and q.account_id = o.account_id and q.deleted_at is null;
  if not found then return '{"result": "skipped"}'; end if;
  if c.id <> all (p_free) then return '{"result": "later"}'; end if;
  select version into v_version from cue.cue_runs where cue_id = c.id;
  case o.type
    when 'replay' then perform cue.replay_execution(o.account_id, p_target::uuid, p_now, v_overlap, o.created_by);
    when 'cancel' then perform cue.cancel_execution(o.account_id, p_target::uuid, p_now, true, o.created_by, 'operation');
    when 'dismiss' then perform cue.dismiss_execution(o.account_id, p_target::uuid, p_now);
    when 'fire' then perform cue.fire_cue(o.account_id, p_target, p_now => p_now, p_overlap => v_overlap, p_actor => o.created_by);
    when 'approve' then
      perform cue.decide_approval(o.account_id, p_target::uuid, 'approved', o.settings ->> 'reason', 'operation', o.created_by, null, p_now);
    when 'reject' then
      perform cue.decide_approval(o.account_id, p_target::uuid, 'rejected', o.settings ->> 'reason', 'operation', o.created_by, null, p_now);
    when 'backfill' then
      perform cue.backfill_slot(o.account_id, c.id, p_target::timestamptz, p_now, v_overlap, o.created_by);
      v_done := found;
    when 'delete' then perform cue.delete_cue(o.account_id, p_target, p_now, p_actor => null, p_may_approve => o.may_approve);
    when 'pause' then
      perform cue.refuse_if((o.settings ->> 'paused_until')::timestamptz > c.at, 'QU011',
        format('Cue %s would never run: it is due before the pause ends.', c.id));
      v_done := cue.update_cue(o.account_id, p_target, v_version, '{"status": "paused"}' || o.settings, null, p_now, p_actor => null);
    when 'resume' then
      if p_resumed -> p_target ? 'code' then
        if p_state is distinct from c.status::text then return '{"result": "skipped"}'; end if;
        return p_resumed -> p_target || jsonb_build_object('result', 'failed', 'target', p_target);
      end if;
      if v_version is distinct from (p_resumed -> p_target ->> 'version')::int then return '{"result": "later"}'; end if;
      v_done := cue.update_cue(o.account_id, p_target, v_version, p_resumed -> p_target -> 'columns',
                               (p_resumed -> p_target ->> 'next_run')::timestamptz, p_now, (p_resumed -> p_target ->> 'next_slot')::timestamptz, null);
  end case;
  return jsonb_build_object('result', case when v_done then 'succeeded' else 'skipped' end);
exception
  when sqlstate 'QU001' or sqlstate 'QU002' or sqlstate 'QU074' then return '{"result": "skipped"}';
  when sqlstate 'QU014' or lock_not_available or deadlock_detected or serialization_failure then return '{"result": "later"}';
  when others then
    get stacked diagnostics v_code = returned_sqlstate, v_message = message_text;
    if v_code not like 'QU%' then raise; end if;
    -- Its followers may be deleted later.
    if v_code = 'QU066' then
      return jsonb_build_object('result', case when exists (
        select from cue.operation_targets q
         where q.operation_id = o.id and q.targets && array(select p.cue_id from cue.cue_parents p where p.parent_id = p_target)) then 'later' else 'skipped' end);
    end if;
    -- There is room in the queue when an execution has ended.
    if v_code = 'QU029' and v_overlap = 'queue_all' then return '{"result": "later"}'; end if;
    if v_code = 'QU011' and p_state is distinct from coalesce(cue.target_state(o.type, p_target), '') then
      return '{"result": "skipped"}';
    end if;
    return jsonb_build_object('result', 'failed', 'target', p_target, 'code', v_code, 'message', v_message);
end $$;
comment on function cue.act_on_target is 'Does to one target what a single call would do; returns its result as an object.';
