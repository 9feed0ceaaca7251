-- Change, delete and fire cues. The caller computes cron slots and passes the next run with the version it was computed from.

create or replace function cue.with_changes(old cue.cues, p_changes jsonb) returns cue.cues
language plpgsql stable as $$
declare
  v_fixed text[] := '{id,account_id,transport,memory_check,payload_id,payload_ref,payload_since_run,paused_at,paused_by,completed_reason,tracked,created_at,updated_at,deleted_at}';
  c cue.cues := jsonb_populate_record(case when p_changes @> '{"replaces": true}' then cue.reset_cue(old) else old end, p_changes - v_fixed);
begin
  if p_changes ? 'callback_headers' then
    select coalesce(jsonb_object_agg(n.key, coalesce(case when n.value = to_jsonb(cue.mask()) then o.value end, n.value)), '{}') into c.callback_headers
      from jsonb_each(c.callback_headers) n left join jsonb_each(old.callback_headers) o on lower(o.key) = lower(n.key);
  end if;
  if c.payload = coalesce(old.payload, (select p.body from cue.payloads p where p.id = old.payload_id)) then
    c.payload := old.payload;
    c.payload_id := old.payload_id;
  end if;
  -- Unset means false, and views show it so.
  if p_changes @> '{"replaces": true}' and c.await_outcome is not true and old.await_outcome is not true then
    c.await_outcome := old.await_outcome;
  end if;
  if p_changes ? 'after' then
    c.after := cue.resolve_parents(old.account_id, case when p_changes @> '{"replaces": true}' then '{}' else coalesce(old.after, '{}') end || c.after);
  end if;
  -- A set names its cues by their keys.
  if c.key is null then c.managed_by := null; end if;
  return c;
end $$;
comment on function cue.with_changes is
  'Returns a cue with the columns that p_changes names; with the member replaces, the others have their defaults. A header whose value is the '
  'mask keeps its value.';

-- p_next_run and p_next_slot (null if it fires at once) apply if the schedule changes or the cue is resumed. p_changes has a member calendars, the
-- revisions that they were computed from, if there are any. For p_changes see with_changes; with replaces, key and status stay, but an
-- ended cue becomes active again if its schedule changes and has a next run. A recurring cue that has completed does so with any change.
-- QU001 not found. QU014 p_version is outdated, or p_next_run has fired. QU011 the status of an ended cue, a max_runs that is used up, or the schedule and payload of a
-- memory_check cue: it isn't counted, so it must not become an ordinary cue. QU015 another cue has the key. QU030 resuming would exceed the
-- plan's limit, as after a downgrade. QU063 to QU065 see require_chains. QU052 see require_account_scope. QU076 see require_change.
create or replace function cue.update_cue(
  p_account_id uuid, p_cue_id text, p_version int, p_changes jsonb, p_next_run timestamptz default null, p_now timestamptz default now(),
  p_next_slot timestamptz default null, p_actor text default session_user, p_may_approve boolean default false
) returns boolean
language plpgsql security definer as $$
declare
  old cue.cues;
  c cue.cues;
  r cue.cue_runs;
  v_reschedule boolean;
  v_replaces boolean := p_changes @> '{"replaces": true}';
  v_lesser boolean := (p_changes ->> 'callback_allowed')::boolean is false
    and (v_replaces or p_changes ?| '{callback_url,callback_method,callback_headers,on_failure_webhook}');
begin
  -- Most replacements change nothing, and need no locks then.
  if v_replaces then
    select q.* into old from cue.cues q join cue.cue_runs n on n.cue_id = q.id
     where q.id = p_cue_id and q.account_id = p_account_id and q.deleted_at is null and n.version = p_version;
    if found and cue.with_changes(old, p_changes) is not distinct from old then return false; end if;
  end if;
  -- Cues are counted and keys compared while the account is locked. For callbacks, it keeps webhook_authorization unchanged until commit.
  if v_replaces or p_changes ?| '{key,calendars,gate,after}' or p_changes ->> 'status' = 'active'
     or exists (select from cue.cues where id = p_cue_id and status = 'completed') then
    perform from cue.accounts where id = p_account_id for no key update;
  elsif v_lesser then
    perform from cue.accounts where id = p_account_id for share;
  end if;
  select * into old from cue.cues where id = p_cue_id and account_id = p_account_id and deleted_at is null for no key update;
  perform cue.refuse_if(not found, 'QU001', format('cue %s not found', p_cue_id));
  select * into r from cue.cue_runs where cue_id = p_cue_id for update;
  perform cue.refuse_if(r.version <> p_version, 'QU014', format('Cue %s was changed at the same time. Try again.', p_cue_id));
  perform cue.refuse_if(p_changes ? 'status' and old.status in ('completed', 'failed'), 'QU011',
    format('Cue %s is %s, which is final. Create a new cue.', p_cue_id, old.status));
  c := cue.with_pause(old, cue.with_changes(old, p_changes), p_changes ?| '{pause_reason,paused_until}', p_now);
  if c is not distinct from old then return false; end if;
  c.tracked := c.overlap <> 'allow' or old.tracked and exists (select from cue.open_executions_of(c.id));
  v_reschedule := (c.schedule_type, c.cron, c.at, c.timezone, c.schedule_rules)
    is distinct from (old.schedule_type, old.cron, old.at, old.timezone, old.schedule_rules);
  if v_reschedule and (p_next_run is not null or c.schedule_type is null) and old.status in ('completed', 'failed') and (v_replaces or old.schedule_type = 'recurring') then
    c.status := 'active';
  end if;
  perform cue.require_change(old, c, r, v_reschedule, coalesce(p_next_slot, p_next_run), p_may_approve);
  v_reschedule := v_reschedule or c.status = 'active' and old.status = 'paused';
  if v_lesser and (c.callback_url, c.callback_method, c.callback_headers, c.on_failure_webhook)
       is distinct from (old.callback_url, old.callback_method, old.callback_headers, old.on_failure_webhook) then
    perform cue.require_account_scope(p_account_id);
  end if;
  if (c.payload, c.payload_id) is distinct from (old.payload, old.payload_id) then
    c.payload_id := case when cue.is_large(c.payload) then cue.store_payload(p_account_id, p_cue_id, c.payload, r.run_count, null, p_now) end;
    if c.payload_id is not null then c.payload := null; end if;
    if old.payload_id <> coalesce(c.payload_id, 0) then perform cue.retire_payload(old.payload_id, r.run_count, p_now); end if;
  end if;
  if p_changes ? 'calendars' then perform cue.require_calendars(p_account_id, p_changes -> 'calendars'); end if;
  -- The others are checked by whoever computed the changes, from what they name. Values that masks stand for are only known here.
  if c.template and (not old.template or (c.callback_headers, c.after) is distinct from (old.callback_headers, old.after)) then
    perform cue.require_names(c, c.callback_headers::text, 'callback.headers');
  end if;
  perform cue.write_change(old, c, v_reschedule, p_next_run, p_next_slot, p_now);
  if c.after is distinct from old.after then
    perform cue.link_cues(array[c.id]);
    if c.after is null then perform cue.end_waits(c, p_now); end if;
    if not p_changes ? 'in_set' then perform cue.require_chains(array[c.id]); end if;
  end if;
  perform cue.record_cue_events(
    array[p_account_id],
    case when c.status = 'paused' and (old.status <> 'paused' or p_changes ? 'status') then 'cue.paused'
         when c.status = 'active' and old.status = 'paused' then 'cue.resumed' else 'cue.updated' end::cue.audit_event,
    array[p_actor], array[c.id], jsonb_build_object('fields', cue.changed_fields(old, c)), p_now);
  return true;
end $$;
comment on function cue.update_cue is 'Changes a cue, if it still has p_version; returns whether any column changed.';

-- p_slot: the one that the changed cue would run next.
create or replace function cue.require_change(
  old cue.cues, c cue.cues, r cue.cue_runs, p_reschedule boolean, p_slot timestamptz, p_may_approve boolean
) returns void
language plpgsql security definer as $$
begin
  if old.approval is not null and not p_may_approve then
    if cue.unapproved_after(c.approval) < cue.unapproved_after(old.approval) then perform cue.refuse_protected(old, 'remove or weaken it'); end if;
    if c.key is distinct from old.key then perform cue.refuse_protected(old, 'change its key'); end if;
  end if;
  if c.key is distinct from old.key then perform cue.require_free_key(c.account_id, c.key); end if;
  if c.gate is distinct from old.gate then perform cue.require_gate(c.account_id, c.gate); end if;
  perform cue.refuse_if(
    old.memory_check and (p_reschedule or (c.payload, c.task, c.callback_url, c.callback_method, c.callback_headers)
      is distinct from (old.payload, old.task, old.callback_url, old.callback_method, old.callback_headers)),
    'QU011', format('Cue %s belongs to the memory block, and its schedule and payload cannot be changed. Pause or delete it, or turn the memory '
      'block off with PATCH /v1/auth/me {"memory_block_enabled": false}.', c.id));
  perform cue.refuse_if(p_reschedule and cue.runs_left(c.schedule_rules, r.fired_count, r.skipped_count) = 0, 'QU011',
    format('Cue %s has used up its runs: schedule.max_runs must be more than %s.', c.id, r.fired_count - coalesce(r.skipped_count, 0)));
  if c.status = 'active' and old.status <> 'active' then perform cue.require_room(old); end if;
  perform cue.refuse_if(c.status = 'active' and (p_reschedule or old.status = 'paused') and p_slot <= r.last_slot, 'QU014',
    format('Cue %s ran at the same time. Try again.', c.id));
end $$;
comment on function cue.require_change is 'Raises the error for a change that a cue must not get, with QU011, QU014, QU015, QU030, QU038 or QU076.';

create or replace function cue.write_change(
  old cue.cues, c cue.cues, p_reschedule boolean, p_next_run timestamptz, p_next_slot timestamptz, p_now timestamptz
) returns void
language plpgsql security definer as $$
begin
  c.updated_at := p_now;
  perform cue.save_cue(c);
  if c.tracked and not old.tracked then perform cue.track_cue(c.id); end if;
  update cue.cue_runs
     set version = version + 1, tracked = cue.can_be_held(c),
         next_run = case when c.status <> 'active' then null when p_reschedule then date_trunc('milliseconds', p_next_run) else next_run end,
         next_slot = case when c.status <> 'active' then null when p_reschedule then p_next_slot else next_slot end,
         refused_from = case when c.status = 'active' and not p_reschedule then refused_from end,
         -- Rescheduling or a new number of slots resets the window; the next run opens another.
         success_due_at = case when c.status = 'active' and not p_reschedule
           and c.alert_missed_window_multiplier is not distinct from old.alert_missed_window_multiplier then success_due_at end,
         failed_runs = case when c.on_failure_pause_after is null or c.status = 'active' and old.status <> 'active' then 0 else failed_runs end
   where cue_id = c.id;
  if c.gate is distinct from old.gate then perform cue.change_gate(c, p_now); end if;
  if p_reschedule or c.status <> 'active' then perform cue.watch_exclusions(array[c.id], p_now); end if;
  if c.status = 'active' and p_reschedule then perform cue.wake('cue_due', p_next_run); end if;
  perform cue.wake('cue_deadline', c.paused_until);
  if c.name <> old.name or old.status in ('completed', 'failed') and c.status = 'active' then perform cue.note_memory(c.account_id); end if;
end $$;
comment on function cue.write_change is 'Writes a changed cue and its cue_runs, with another next run if it is rescheduled or resumed.';

-- Without their values: they may be secrets, and payloads are large.
create or replace function cue.changed_fields(old cue.cues, c cue.cues) returns jsonb
language plpgsql immutable as $$
declare
  v_fields text[] := case when (c.payload, c.payload_id) is distinct from (old.payload, old.payload_id) then '{payload}' else '{}'::text[] end;
  v_not text[] := '{task,payload_ref,payload_since_run,tracked,updated_at,completed_reason,paused_at,paused_by}';
begin
  select null, null, null, null into old.payload, c.payload, old.payload_id, c.payload_id;
  return to_jsonb(v_fields || array(
    select n.key from jsonb_each(to_jsonb(c)) n join jsonb_each(to_jsonb(old)) o using (key)
     where n.value is distinct from o.value and n.key <> all (v_not) order by n.key));
end $$;
comment on function cue.changed_fields is 'Returns the names of the columns in which a changed cue differs from the old one.';

create or replace function cue.may_resume(c cue.cues) returns boolean
language sql stable security definer as $$
  select c.memory_check or p.cues is null or p.cues > (
           select count(*) from cue.cues q where q.account_id = c.account_id and q.deleted_at is null and q.status = 'active' and not q.memory_check)
    from cue.accounts a cross join lateral cue.limits_of(a) p where a.id = c.account_id
$$;
comment on function cue.may_resume is 'Returns whether the plan allows one more active cue; the caller has locked the account.';

-- The caller has locked the account. Paused cues may exceed the plan's limit, after a downgrade; ended cues are not counted at all.
create or replace function cue.require_room(c cue.cues) returns void
language plpgsql security definer as $$
declare
  v_limit int;
begin
  if c.memory_check then return; end if;
  select p.cues into v_limit from cue.accounts a cross join lateral cue.limits_of(a) p where a.id = c.account_id;
  perform cue.refuse_if(c.status = 'paused' and not cue.may_resume(c), 'QU030',
    format('Cue limit reached: the plan allows %s active cues. Pause or delete one, or change the plan.', v_limit));
  if c.status in ('completed', 'failed') then
    if v_limit <= (select count(*) from cue.cues
                    where account_id = c.account_id and deleted_at is null and status in ('active', 'paused') and not memory_check) then
      perform cue.refuse('QU030', cue.cue_limit_message(c.account_id));
    end if;
    update cue.cue_rooms set room = greatest(0, room - 1) where account_id = c.account_id;
  end if;
end $$;
comment on function cue.require_room is 'Raises QU030 if the plan allows no further active cue.';

create or replace function cue.delete_cues(
  p_account_id uuid, p_cue_ids text[], p_now timestamptz default now(), p_actor text default session_user, p_may_approve boolean default false
) returns setof text
language plpgsql security definer as $$
begin
  perform from cue.accounts where id = p_account_id for no key update;
  return query select cue.remove_cues(p_account_id, array(
    select u.id from unnest(p_cue_ids) as u (id) except select cue.still_followed(p_cue_ids)), p_now, p_actor, p_may_approve);
end $$;
comment on function cue.delete_cues is 'Deletes cues, except those that others follow, and returns their ids; a job purges their history in batches. QU076 see remove_cues.';

-- Also cues that others follow. The caller has locked the account.
create or replace function cue.remove_cues(
  p_account_id uuid, p_cue_ids text[], p_now timestamptz, p_actor text, p_may_approve boolean
) returns setof text
language plpgsql security definer as $$
declare
  c cue.cues;
  v_id text;
begin
  for c in
    select * from cue.cues where id = any (p_cue_ids) and account_id = p_account_id and deleted_at is null order by id for no key update
  loop
    if c.approval is not null and not p_may_approve then perform cue.refuse_protected(c, 'delete it'); end if;
    v_id := c.id;
    perform cue.record_cue_events(array[p_account_id], 'cue.deleted', array[p_actor], array[v_id], '{}', p_now);
    update cue.cues set deleted_at = p_now, status = 'paused', updated_at = p_now where id = v_id;
    delete from cue.cue_runs where cue_id = v_id;
    delete from cue.open_executions where cue_id = v_id;
    delete from cue.held_executions where cue_id = v_id;
    delete from cue.cue_parents where cue_id = v_id;
    delete from cue.approvals where cue_id = v_id and decision is null;
    perform cue.add_job('purges', jsonb_build_object('cue_id', v_id, 'account_id', p_account_id), p_singleton_key => v_id);
    return next v_id;
  end loop;
  if found then
    perform cue.note_memory(p_account_id);
    if cue.has_gates() then perform cue.free_places(p_cue_ids, p_now); end if;
  end if;
end $$;
comment on function cue.remove_cues is 'Deletes cues and returns their ids; QU076 for one with an approval, without p_may_approve.';

create or replace function cue.delete_cue(
  p_account_id uuid, p_cue_id text, p_now timestamptz default now(), p_version int default null, p_actor text default session_user,
  p_may_approve boolean default false
) returns void
language plpgsql security definer as $$
begin
  perform from cue.accounts where id = p_account_id for no key update;
  if p_version is not null then
    perform from cue.cues where id = p_cue_id and account_id = p_account_id for no key update;
    perform cue.refuse_if(p_version <> (select version from cue.cue_runs where cue_id = p_cue_id and account_id = p_account_id), 'QU014',
      format('Cue %s was changed at the same time. Try again.', p_cue_id));
  end if;
  perform cue.require_no_followers(p_account_id, p_cue_id);
  perform cue.remove_cues(p_account_id, array[p_cue_id], p_now, p_actor, p_may_approve);
  perform cue.refuse_if(not found, 'QU001', format('cue %s not found', p_cue_id));
end $$;
comment on function cue.delete_cue is 'Deletes one cue, if it still has p_version; QU001 if not found, QU014 if changed, QU066 if others follow it.';

-- The caller has locked the account or the cue.
create or replace function cue.admit_fire(p_account_id uuid, p_cue_id text, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  v_oldest timestamptz;
  v_limit int := (select l.fires_per_hour from cue.accounts a cross join lateral cue.limits_of(a) l where a.id = p_account_id);
begin
  select t.fired_at into v_oldest from cue.fires t
   where t.cue_id = p_cue_id and t.fired_at > p_now - interval '1 hour' order by t.fired_at desc offset v_limit - 1 limit 1;
  perform cue.refuse_if(found and v_limit is not null, 'QU031', format('Fire limit reached: %s per cue per hour.', v_limit),
    ceil(extract(epoch from v_oldest + interval '1 hour' - p_now))::text);
end $$;
comment on function cue.admit_fire is 'Raises QU031 if the cue was fired as often as the plan allows in an hour.';

-- p_payload and p_task replace the cue's; the caller merged them from the cue at p_version. Idempotency keys last 24 hours.
-- p_overlap applies to this fire; the cue's own does not.
-- QU001 not found, QU011 ended, QU013 idempotency key reused for another request, QU014 changed at the same time, QU029 skipped, as p_overlap
-- says, QU031 above the plan's fires per hour, QU032 above the plan's limit.
create or replace function cue.fire_cue(
  p_account_id uuid, p_cue_id text, p_payload text default null, p_task text default null, p_version int default null,
  p_send_at timestamptz default null, p_idempotency_key text default null, p_request_hash text default null,
  p_now timestamptz default now(), p_overlap cue.overlap default 'allow', p_actor text default null
) returns setof cue.executions
language plpgsql security definer as $$
declare
  c cue.cues;
  f cue.fires;
  v_id uuid;
  v_version int;
  v_held_by cue.held_by;
begin
  perform from cue.accounts where id = p_account_id for no key update;
  select * into c from cue.cues where id = p_cue_id and account_id = p_account_id and deleted_at is null for no key update;
  perform cue.refuse_if(not found, 'QU001', format('cue %s not found', p_cue_id));
  if p_idempotency_key is not null then
    select * into f from cue.fires
     where cue_id = p_cue_id and idempotency_key = p_idempotency_key and fired_at > p_now - interval '24 hours';
    if found then
      perform cue.refuse_if(f.request_hash is distinct from p_request_hash, 'QU013',
        'This idempotency_key was already used for a different request. Use a new key.');
      return query select * from cue.executions where id = f.execution_id;
      return;
    end if;
  end if;
  perform cue.refuse_if(c.status not in ('active', 'paused'), 'QU011',
    format('Only an active or paused cue can be fired; cue %s is %s.', p_cue_id, c.status));
  select version into v_version from cue.cue_runs where cue_id = p_cue_id for update;
  perform cue.refuse_if(v_version <> p_version, 'QU014', format('Cue %s was changed at the same time. Try again.', p_cue_id));
  perform cue.admit_fire(p_account_id, p_cue_id, p_now);
  perform cue.admit_execution(p_account_id, p_now);
  perform cue.admit_payload(p_account_id, cue.payload_bytes(coalesce(p_payload, c.payload), c.payload_id), p_now);
  if p_payload is not null then
    c.task := p_task;
    c.payload_id := case when cue.is_large(p_payload) then cue.store_payload(p_account_id, p_cue_id, p_payload, null, p_now, p_now) end;
    c.payload := case when c.payload_id is null then p_payload end;
    c.payload_ref := null;
    if c.template then perform cue.require_names(c, p_payload, 'payload_override'); end if;
  end if;
  v_held_by := cue.place_request(c, p_overlap, p_now);
  c.tracked := c.tracked or p_overlap <> 'allow';
  update cue.cue_runs set run_count = run_count + 1 where cue_id = p_cue_id;
  v_id := cue.queue_execution(c, 'manual_fire', greatest(p_send_at, p_now), p_now => p_now, p_held_by => v_held_by,
                              p_requested_by => coalesce(p_actor, session_user::text collate "default"));
  insert into cue.fires (id, cue_id, account_id, fired_at, idempotency_key, request_hash, execution_id)
  values (cue.uuid_v7(p_now), p_cue_id, p_account_id, p_now, p_idempotency_key, p_request_hash, v_id);
  return query select * from cue.executions where id = v_id;
end $$;
comment on function cue.fire_cue is 'Fires a cue now or at p_send_at; returns the execution, also for a repeated key.';

-- The request of a cue, by its id or key, or one to p_url. A test of a cue counts as one of its fires; those of URLs have the same limit together.
-- Requests to a URL don't carry the account's API key, whatever its settings are: a key with scope write could send it anywhere.
-- QU001 not found, QU007 the account was deleted, QU011 not a webhook cue, QU027 held, QU031 above the plan's fires per hour,
-- QU076 its approval would be got around.
create or replace function cue.begin_test(
  p_account_id uuid, p_cue_id text default null, p_url text default null, p_payload text default null, p_now timestamptz default now(),
  p_may_approve boolean default false
) returns setof cue.begun_attempt
language plpgsql security definer as $$
declare
  c cue.cues;
  v_id uuid := gen_random_uuid();
begin
  perform cue.require_unheld(p_account_id);
  if p_url is null then
    select * into c from cue.cues
     where id = coalesce((select x.id from cue.cues x where x.id = p_cue_id and x.account_id = p_account_id), cue.cue_id_by_key(p_account_id, p_cue_id))
       and account_id = p_account_id and deleted_at is null for no key update;
    perform cue.refuse_if(not found, 'QU001', format('cue %s not found', p_cue_id));
    perform cue.refuse_if(c.transport <> 'webhook', 'QU011',
      format('Only a webhook cue can be tested; workers claim the executions of cue %s.', c.id));
    if c.approval is not null and not p_may_approve then perform cue.refuse_protected(c, 'test it'); end if;
    perform cue.admit_fire(p_account_id, c.id, p_now);
    insert into cue.fires (id, cue_id, account_id, fired_at) values (cue.uuid_v7(p_now), c.id, p_account_id, p_now);
  else
    perform cue.require_tests(p_account_id, 'url_tests:', 'URLs', p_now);
  end if;
  if p_payload is not null then
    c.payload := p_payload;
    if c.template then perform cue.require_names(c, p_payload, 'payload'); end if;
  end if;
  return query
  select v_id, null::bigint, 1, p_account_id, coalesce(c.id, ''), p_now, coalesce(p_url, c.callback_url), coalesce(c.callback_method, 'POST'),
         coalesce(c.callback_headers, '{}'),
         coalesce(c.payload, (select p.body from cue.stored_payloads p where p.id = c.payload_id and p.cue_id = c.id limit 1), '{}'),
         least(coalesce(c.timeout_seconds, (cue.implied_settings()).timeout_seconds), cue.max_timeout(p_account_id)),
         a.secrets, case when p_url is null then a.api_key end, false, case when c.template then cue.example_values(c, v_id, p_now, 'manual_fire', p_now) end
    from cue.signing_account(p_account_id, p_now) a;
  perform cue.refuse_if(not found, 'QU007', 'This account no longer exists.');
end $$;
comment on function cue.begin_test is 'Counts a test and returns the request to send; stores nothing else.';
