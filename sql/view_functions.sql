-- Functions that return rows of views. Loaded after the views.

-- One statement for the reads of many requests, with a generic plan: planning over all partitions takes thirty times as long as the read.
create or replace function cue.read_cues(p_account_ids uuid[], p_cue_ids text[]) returns setof cue.cue_view
language plpgsql stable security definer as $$
begin
  return query
  select c.* from unnest(p_account_ids, p_cue_ids) as u (account_id, cue_id)
   cross join lateral (select * from cue.cue_view v where v.id = u.cue_id and v.account_id = u.account_id limit 1) c;
end $$;
comment on function cue.read_cues is 'Returns cues by account and id; rows not found are left out.';

-- Without an id: another transaction has locked the account (is_locked), another cue has the key (taken_by), or message says why. With none of
-- these, create_cue raises the error, or can create the cue now.
-- session_user has the collation of names, which ids must not get: no index of ids would be used.
create or replace function cue.create_each_cue(
  p_account_ids uuid[], p_cues jsonb, p_next_runs timestamptz[], p_now timestamptz default now(), p_next_slots timestamptz[] default '{}',
  p_actors text[] default null
) returns setof cue.created_cue_view
language plpgsql security definer as $$
declare
  v_ids text[];
  v_refusals text[];
begin
  select array_agg(a.id), array_agg(a.refusal) into v_ids, v_refusals from cue.add_cues(p_account_ids, p_cues, p_next_runs, p_now, p_next_slots) a;
  perform cue.record_cue_events(
    p_account_ids, 'cue.created', coalesce(p_actors, array_fill(session_user::text collate "default", array[cardinality(v_ids)])), v_ids, '{}', p_now);
  return query
  select u.refusal is not distinct from 'locked', h.cue_id,
         case when u.refusal = 'limit' then cue.cue_limit_message(u.account_id)
              when h.cue_id is not null then cue.key_taken_message(p_cues -> (u.place - 1)::int ->> 'key', h.cue_id) end, c.*
    from unnest(v_ids, v_refusals, p_account_ids) with ordinality as u (id, refusal, account_id, place)
   cross join lateral (
     select case u.refusal when 'key' then cue.cue_id_by_key(u.account_id, p_cues -> (u.place - 1)::int ->> 'key') end as cue_id offset 0) h
    left join lateral (select * from cue.cue_view v where v.id = u.id limit 1) c on true
   order by u.place;
end $$;
comment on function cue.create_each_cue is 'Creates cues and returns, in order, each of them, or why it was not created.';

create or replace function cue.read_cue_details(p_account_ids uuid[], p_cue_ids text[]) returns setof cue.cue_detail_view
language plpgsql stable security definer as $$
begin
  return query
  select d.* from unnest(p_account_ids, p_cue_ids) as u (account_id, cue_id)
   cross join lateral (select * from cue.cue_detail_view v where v.id = u.cue_id and v.account_id = u.account_id limit 1) d;
end $$;
comment on function cue.read_cue_details is
  'Returns cues by account and id, with their latest executions and missed slots; rows not found are left out.';

-- Without the payloads, which may have megabytes each.
create or replace function cue.read_declared_cues(p_account_id uuid, p_keys text[])
returns table (id text, key text, status cue.cue_status, transport cue.transport, schedule jsonb, callback jsonb, on_failure jsonb, delivery jsonb,
               next_run timestamptz, next_slot timestamptz, last_slot timestamptz, version int)
language plpgsql stable security definer as $$
begin
  return query
  select c.* from unnest(p_keys) as u (key)
   cross join lateral (
     select v.id, v.key, v.status, v.transport, v.schedule, v.callback, v.on_failure, v.delivery, v.next_run, v.next_slot, v.last_slot, v.revision
       from cue.cue_view v where v.account_id = p_account_id and v.key = u.key limit 1) c;
end $$;
comment on function cue.read_declared_cues is 'Returns what new definitions of cues depend on, by their keys; cues not found are left out.';

-- Headers are hashed: different values must differ, but not be shown. So is a large payload.
create or replace function cue.cue_definition(p_cue_id text) returns jsonb
language plpgsql stable security definer as $$
begin
  return (
    select to_jsonb(d) from (
      select v.name, v.description, v.tags, v.managed_by, v.status, v.schedule, v.retry, v.on_failure, v.delivery, v.alerts, v.catch_up, v.overlap, v.gate, v.after, v.approval, v.template,
             v.verification, c.payload,
             jsonb_set(v.callback, '{headers}', coalesce(
               (select jsonb_object_agg(h.key, md5(h.value)) from jsonb_each_text(c.callback_headers) h), '{}')) as callback,
             (select jsonb_build_object('bytes', octet_length(p.body), 'sha256', encode(p.hash, 'hex'))
                from cue.payloads p where p.id = c.payload_id) as large_payload
        from cue.cue_view v join cue.cues c using (id) where v.id = p_cue_id limit 1) d);
end $$;
comment on function cue.cue_definition is 'Returns the definition of a cue as the API shows it, with hashes of its headers and of a large payload.';

create or replace function cue.read_execution_details(p_account_ids uuid[], p_execution_ids uuid[]) returns setof cue.execution_detail_view
language plpgsql stable security definer as $$
begin
  return query
  select e.* from unnest(p_account_ids, p_execution_ids) as u (account_id, execution_id)
   cross join lateral (select * from cue.execution_detail_view v where v.id = u.execution_id and v.account_id = u.account_id limit 1) e;
end $$;
comment on function cue.read_execution_details is 'Returns executions with their attempts, by account and id; rows not found are left out.';

create or replace function cue.cue_detail_by_key(p_account_id uuid, p_key text) returns setof cue.cue_detail_view
language plpgsql stable security definer as $$
begin
  return query select * from cue.read_cue_details(array[p_account_id], array[cue.cue_id_by_key(p_account_id, p_key)]);
end $$;
comment on function cue.cue_detail_by_key is 'Returns the cue with a key, with its latest executions and missed slots.';

-- All executions are created as this row, with the task and payload of c: a webhook with a flight is being sent; otherwise the execution waits
-- until p_due_at, or is due now if that is null; p_slot_due_at is when its slot was meant to fire; with p_ended, the slot did not run. Inlined: a function that inserts would need another
-- tenth of a millisecond to take a single cue.
create or replace function cue.new_execution(
  c cue.cues, p_id uuid, p_scheduled_for timestamptz, p_due_at timestamptz default null, p_triggered_by cue.trigger_kind default 'schedule',
  p_flight_id bigint default null, p_replayed_from uuid default null, p_ended cue.execution_status default null, p_error text default null,
  p_slot_due_at timestamptz default null, p_now timestamptz default now(), p_parents jsonb default null
) returns setof cue.new_executions
language sql stable as $$
  select p_id, c.account_id, c.id, c.transport, coalesce(p_ended, case when n.is_sent then 'delivering'::cue.execution_status else 'pending' end),
         p_triggered_by, p_replayed_from, p_scheduled_for, nullif(p_slot_due_at, p_scheduled_for),
         case when c.payload_ref is null then c.payload end, coalesce(c.payload_id, c.payload_ref), c.task,
         n.is_sent::int, case when n.is_sent then p_now end,
         case when n.is_sent then p_now end, case when n.is_sent then p_flight_id end,
         case when n.waits and c.transport = 'webhook' then n.due_at end, case when n.waits and c.transport = 'worker' then n.due_at end,
         case when n.waits and c.transport = 'worker' then n.due_at + cue.claim_timeout(c.claim_timeout_seconds) end, p_error,
         case when p_ended is not null then p_now end, p_now, p_now,
         case when p_replayed_from is not null then (select coalesce(x.lineage_id, x.id) from cue.executions x where x.id = p_replayed_from limit 1) end,
         p_parents, case when c.template and p_ended is null then true end
    from (select p_ended is null and (p_flight_id is null or c.transport = 'worker') as waits,
                 p_ended is null and p_flight_id is not null and c.transport = 'webhook' as is_sent,
                 coalesce(p_due_at, p_now) as due_at) n
$$;
comment on function cue.new_execution is 'Returns the row of a new execution of a cue: sent with a flight, waiting until it is due, or ended.';
