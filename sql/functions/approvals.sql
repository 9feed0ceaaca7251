-- Approvals: executions that wait until a person decides. Locks: the cue, its cue_runs, the execution, then its row here.

-- Infinity: never. With skip, however short the time is, nothing runs unless a person approves it.
create or replace function cue.unapproved_after(p_approval jsonb) returns float8
language sql immutable as $$
  select case when p_approval is null then 0
              when p_approval ->> 'on_expiry' = 'run' and p_approval ->> 'expires' is not null
              then extract(epoch from (p_approval ->> 'expires')::interval)::float8 else 'infinity' end
$$;
comment on function cue.unapproved_after is 'Returns the seconds after which an execution runs without a decision, by its cue''s approval.';

create or replace function cue.refuse_protected(c cue.cues, p_what text) returns void
language plpgsql as $$
begin
  perform cue.refuse('QU076', format('Cue %s has an approval, and only a signed-in person, or a key with scope approve, can %s.', c.id, p_what));
end $$;
comment on function cue.refuse_protected is 'Raises QU076 for what would get around the approval of a cue.';

create or replace function cue.approval_limit() returns int language sql immutable as $$ select 100 $$;
comment on function cue.approval_limit is 'Returns the maximum number of executions of a cue that wait for approval.';

create or replace function cue.has_approval_queue(p_cue_id text) returns boolean
language sql stable security definer as $$
  select count(*) >= cue.approval_limit() from (
    select from cue.approvals a where a.cue_id = p_cue_id and a.decision is null limit cue.approval_limit()) q
$$;
comment on function cue.has_approval_queue is 'Returns whether as many executions of a cue wait for approval as may.';

-- A session that was opened with a key is the key.
create or replace function cue.principal_of(p_actor text) returns text
language sql stable security definer as $$
  select coalesce(
    (select 'key:' || s.key_id from cue.sessions s where s.id = case when p_actor like 'session:%' then substring(p_actor from 9)::uuid end), p_actor)
$$;
comment on function cue.principal_of is 'Returns the key that an actor uses, or the actor.';

create or replace function cue.describe_approval(a cue.approvals) returns jsonb
language sql stable as $$
  select jsonb_build_object(
    'message', a.message, 'requested_at', cue.iso(a.requested_at), 'requested_by', a.requested_by, 'expires_at', cue.iso(a.expires_at),
    'on_expiry', a.on_expiry, 'decision', a.decision, 'decided_at', cue.iso(a.decided_at), 'decided_by', a.decided_by, 'decided_via', a.decided_via,
    'reason', a.reason)
$$;
comment on function cue.describe_approval is 'Returns an approval as the API shows it with its execution.';

create or replace function cue.add_approval_event(p_type cue.event_type, p_execution_id uuid, p_now timestamptz) returns void
language sql security definer as $$
  select cue.add_event(a.account_id, p_type, d.data::jsonb || jsonb_build_object('approval', cue.describe_approval(a)), p_now, a.cue_id, a.execution_id)
    from cue.approvals a cross join lateral cue.execution_data(array[a.execution_id]) d where a.execution_id = p_execution_id
$$;
comment on function cue.add_approval_event is 'Adds an event about an approval, with its execution as lists show it.';

-- Without a channel, by mail. Also for reminders.
create or replace function cue.ask_for_approval(c cue.cues, a cue.approvals, p_now timestamptz) returns void
language plpgsql security definer as $$
begin
  perform cue.add_notices(c.account_id, array[h.id], 'approval', p_now, null, jsonb_build_object(
            'id', cue.uuid_v7(p_now), 'type', 'approval.requested', 'at', cue.iso(p_now), 'cue_id', c.id, 'cue_key', c.key, 'execution_id', a.execution_id,
            'data', d.data::jsonb || jsonb_build_object('approval', cue.describe_approval(a), 'reminder', a.reminders)))
     from cue.channels_for(c, 'approval.requested') h cross join cue.execution_data(array[a.execution_id]) d;
  if not found then
    perform cue.add_job('mails', jsonb_build_object('kind', 'approval_requested', 'account_id', a.account_id, 'execution_id', a.execution_id));
  end if;
end $$;
comment on function cue.ask_for_approval is 'Sends a request for approval to the channels of its cue, or else by mail.';

create or replace function cue.fix_callback(c cue.cues, p_execution_id uuid) returns void
language plpgsql security definer as $$
begin
  insert into cue.fixed_requests as f (execution_id, account_id, callback_url, callback_method, callback_headers)
  values (p_execution_id, c.account_id, c.callback_url, c.callback_method, c.callback_headers)
  on conflict (execution_id) do update
     set callback_url = excluded.callback_url, callback_method = excluded.callback_method, callback_headers = excluded.callback_headers;
  update cue.executions set is_fixed = true where id = p_execution_id and is_fixed is null;
end $$;
comment on function cue.fix_callback is 'Has an execution sent to the callback that its webhook cue has now; the caller has locked both.';

-- The caller has locked the cue and the execution, which is in the waiting room.
create or replace function cue.request_approval(c cue.cues, p_execution_id uuid, p_requested_by text, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  v_expires_at timestamptz := p_now + extract(epoch from (c.approval ->> 'expires')::interval) * interval '1 second';
  v_message text := coalesce(
    (select cue.render_text(c.approval ->> 'message', f.template_values) from cue.fixed_requests f
      where c.template and f.execution_id = p_execution_id and f.template_values is not null),
    c.approval ->> 'message');
begin
  insert into cue.approvals (execution_id, account_id, cue_id, message, on_expiry, requested_at, requested_by, expires_at, remind_at)
  values (p_execution_id, c.account_id, c.id, v_message, (c.approval ->> 'on_expiry')::cue.approval_expiry, p_now,
          cue.principal_of(p_requested_by), v_expires_at, p_now + interval '1 hour');
  if c.transport = 'webhook' then perform cue.fix_callback(c, p_execution_id); end if;
  perform cue.wake('cue_deadline', least(v_expires_at, p_now + interval '1 hour'));
  perform cue.add_approval_event('approval.requested', p_execution_id, p_now);
  perform cue.ask_for_approval(c, a, p_now) from cue.approvals a where a.execution_id = p_execution_id;
end $$;
comment on function cue.request_approval is 'Requests the approval that an execution waits for, which is sent to the callback that its cue has now.';

-- The sweep may be late: after expires_at, there is a decision already.
create or replace function cue.decide_approval(
  p_account_id uuid, p_execution_id uuid, p_decision cue.approval_decision, p_reason text default null, p_source cue.approval_source default 'call',
  p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns table (execution_id uuid, decision cue.approval_decision, decided_by text, decided_at timestamptz)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  c cue.cues := cue.lock_cue_of(p_account_id, p_execution_id);
  e cue.executions;
  a cue.approvals;
begin
  select * into e from cue.executions where id = p_execution_id for update;
  select * into a from cue.approvals q where q.execution_id = p_execution_id;
  if a.decision is null and a.expires_at <= p_now then
    a.decision := 'expired';
    a.decided_at := a.expires_at;
  end if;
  perform cue.refuse_if(a.decision <> 'cancelled', 'QU074', format('Execution %s was %s before. The first decision counts.', a.execution_id, a.decision),
    jsonb_build_object('decision', a.decision, 'decided_by', a.decided_by, 'decided_at', cue.iso(a.decided_at))::text);
  perform cue.refuse_if(a.execution_id is null or a.decision = 'cancelled', 'QU011',
    format('Only an execution that waits for approval can be %s; execution %s is %s.', p_decision, e.id, e.status));
  perform cue.refuse_if(p_source = 'link' and not exists (select from cue.accounts where id = p_account_id and approvals_by_link), 'QU076',
    'Links cannot decide for this account. Sign in.');
  perform cue.refuse_if(
    p_decision = 'approved' and p_actor is not null and a.requested_by like 'key:%' and a.requested_by = cue.principal_of(p_actor), 'QU075',
    format('Execution %s was requested with this key, which therefore cannot approve it.', e.id));
  select p_decision, p_now, p_actor, p_source, p_reason into a.decision, a.decided_at, a.decided_by, a.decided_via, a.reason;
  perform cue.end_approval(c, e, a, p_ip, p_now);
  return query select a.execution_id, a.decision, a.decided_by, a.decided_at;
end $$;
comment on function cue.decide_approval is
  'Approves or rejects an execution that waits for approval; QU002 not found, QU011 not waiting, QU074 decided before, QU075 requested by the same key, QU076 by a link that the account does not accept.';

-- The caller has locked the cue, its cue_runs and the execution.
create or replace function cue.end_approval(c cue.cues, e cue.executions, a cue.approvals, p_ip text, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  h cue.held_executions;
  v_runs boolean := a.decision = 'approved' or a.decision = 'expired' and a.on_expiry = 'run';
begin
  update cue.approvals
     set decision = a.decision, decided_at = a.decided_at, decided_by = a.decided_by, decided_via = a.decided_via, reason = a.reason, remind_at = null
   where execution_id = a.execution_id;
  select * into h from cue.held_executions q where q.execution_id = e.id for update;
  if v_runs then
    perform cue.continue_held(c, h, p_now);
  else
    e := cue.end_execution(
      e, case a.decision when 'rejected' then 'failed' else 'missed' end::cue.execution_status,
      case a.decision when 'rejected' then 'rejected' || coalesce(': ' || a.reason, '') else 'nobody decided about it in time' end, p_now,
      case a.decision when 'expired' then 'approval_expired' end::cue.missed_reason, h.since);
    perform cue.count_ended(e.status);
    perform cue.end_one_time_cue(c, 'failed', p_now);
    perform cue.follow_end(c, p_now);
  end if;
  perform cue.record_event(c.account_id, 'approval.decided', coalesce(a.decided_by, 'service'), p_ip, jsonb_strip_nulls(jsonb_build_object(
    'execution_id', e.id, 'cue_id', c.id, 'decision', a.decision, 'via', a.decided_via, 'reason', a.reason)), p_now);
  perform cue.add_approval_event('approval.decided', e.id, p_now);
end $$;
comment on function cue.end_approval is 'Records the decision about an execution, and has it go on or end.';

-- The caller has locked the cue, its cue_runs and the execution, and ends it.
create or replace function cue.cancel_approval(
  e cue.executions, p_reason text, p_actor text, p_source cue.approval_source, p_now timestamptz
) returns void
language plpgsql security definer as $$
begin
  update cue.approvals
     set decision = 'cancelled', decided_at = p_now, decided_by = p_actor, decided_via = case when p_actor is not null then p_source end,
         reason = p_reason, remind_at = null
   where execution_id = e.id and decision is null;
  if not found then return; end if;
  update cue.executions
     set held_ms = least(coalesce(held_ms, 0)::bigint + cue.milliseconds(p_now - (select h.since from cue.held_executions h where h.execution_id = e.id)), 2147483647)
   where id = e.id;
  perform cue.record_event(e.account_id, 'approval.decided', coalesce(p_actor, 'service'), null, jsonb_strip_nulls(jsonb_build_object(
    'execution_id', e.id, 'cue_id', e.cue_id, 'decision', 'cancelled', 'via', p_source, 'reason', p_reason)), p_now);
end $$;
comment on function cue.cancel_approval is 'Records in the approval of an execution, if it waits for one, that it is cancelled.';

-- What is locked is left to the next call.
create or replace function cue.meet_approvals(p_limit int default 200, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  a cue.approvals;
  c cue.cues;
  e cue.executions;
  v_count int := 0;
begin
  for a in select * from cue.approvals q where q.decision is null and q.expires_at <= p_now order by q.expires_at limit p_limit loop
    continue when cue.lock_free_cues(array[a.cue_id]) = '{}';
    select * into e from cue.executions where id = a.execution_id for update skip locked;
    continue when not found;
    -- A decision may have been committed since the row was read.
    select * into a from cue.approvals q where q.execution_id = a.execution_id and q.decision is null;
    continue when not found;
    select * into c from cue.cues where id = a.cue_id;
    a.decision := 'expired';
    a.decided_at := a.expires_at;
    perform cue.end_approval(c, e, a, null, p_now);
    v_count := v_count + 1;
  end loop;
  return v_count + cue.remind_approvals(p_limit, p_now);
end $$;
comment on function cue.meet_approvals is 'Ends approvals that have expired, and sends reminders of others; returns how many.';

-- One after an hour and one after a day. Of two that are due at once, after an outage, one is sent.
create or replace function cue.remind_approvals(p_limit int default 200, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  a cue.approvals;
  v_count int := 0;
begin
  for a in
    select * from cue.approvals q where q.remind_at <= p_now and q.expires_at > p_now is not false order by q.remind_at limit p_limit for update skip locked
  loop
    update cue.approvals
       set reminders = a.reminders + 1,
           remind_at = case when a.requested_at + interval '24 hours' > p_now then a.requested_at + interval '24 hours' end
     where execution_id = a.execution_id returning * into a;
    perform cue.ask_for_approval(c, a, p_now) from cue.cues c where c.id = a.cue_id;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.remind_approvals is 'Sends reminders of approvals that still wait; returns how many.';

-- By the link in a message, whose signature the caller has verified.
create or replace function cue.linked_approval(p_execution_id uuid) returns table (
  account_id uuid, cue_name text, scheduled_for timestamptz, payload text, template_values text, message text, expires_at timestamptz,
  decision cue.approval_decision, by_link boolean
)
language plpgsql stable security definer as $$
begin
  return query
  select a.account_id, e.cue_name, e.scheduled_for, e.payload, e.template_values, a.message, a.expires_at, a.decision, c.approvals_by_link
    from cue.approvals a
   cross join lateral (select * from cue.execution_view v where v.id = a.execution_id limit 1) e
    join cue.accounts c on c.id = a.account_id
   where a.execution_id = p_execution_id and a.decision is distinct from 'cancelled';
end $$;
comment on function cue.linked_approval is 'Returns what a person who follows a link decides about, or no row if that is gone.';
