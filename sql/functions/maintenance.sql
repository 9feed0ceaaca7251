-- Housekeeping: partitions, retention and pruning. Run by pg-boss schedules, once per cluster.

-- There is no default partition: adding a partition would scan it. Attaching a table, unlike creating a partition in place, blocks no reader or
-- writer.
create or replace function cue.maintain_partitions(p_months int default 2, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_month timestamp;
  v_parent text;
  v_name text;
  v_made int := 0;
begin
  perform pg_advisory_xact_lock(hashtext('cue.maintain_partitions'));
  for v_month in
    select generate_series(date_trunc('month', p_now at time zone 'utc'),
                           date_trunc('month', p_now at time zone 'utc') + p_months * interval '1 month', interval '1 month')
  loop
    foreach v_parent in array array['executions', 'attempts', 'fixed_requests'] loop
      v_name := v_parent || to_char(v_month, '_YYYY_MM');
      continue when to_regclass(format('cue.%I', v_name)) is not null;
      -- Each execution is updated at least once, which adds a few columns: more than half of every page stays free, so that updates are HOT.
      execute format('create table cue.%I (like cue.%I including defaults including constraints) '
                     'with (fillfactor = %s, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)',
        v_name, v_parent, case v_parent when 'executions' then 45 else 100 end);
      execute format('alter table cue.%I attach partition cue.%I for values from (%L) to (%L)', v_parent, v_name,
        cue.partition_bound(v_month), cue.partition_bound(v_month + interval '1 month'));
      v_made := v_made + 1;
    end loop;
  end loop;
  return v_made;
end $$;
comment on function cue.maintain_partitions is 'Creates the partitions of p_months ahead; returns how many.';

create or replace function cue.partition_bound(p_month timestamp) returns uuid
language sql immutable as $$
  select (lpad(to_hex(floor(extract(epoch from p_month at time zone 'utc') * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;
comment on function cue.partition_bound is 'Returns the smallest id of a month''s partitions.';

create or replace function cue.months_before(p_before timestamptz) returns setof text
language sql stable as $$
  select to_char(m.month, 'YYYY_MM')
    from pg_inherits i join pg_class p on p.oid = i.inhrelid
   cross join lateral (select to_date(substring(p.relname from '\d{4}_\d\d$'), 'YYYY_MM')::timestamp as month) m
   where i.inhparent = 'cue.executions'::regclass and (m.month + interval '1 month') at time zone 'utc' <= p_before
   order by m.month
$$;
comment on function cue.months_before is 'Returns the months of executions that end before an instant, oldest first, as YYYY_MM.';

-- Kept: months with executions that have not ended, found by their waiting columns, and months whose first 10,000 rows include one that
-- ended since p_before. Raises lock_not_available if a partition is in use, for the caller to try again: other statements queue behind this
-- lock, so lock_timeout is short.
create or replace function cue.drop_old_executions(p_before timestamptz, p_now timestamptz default now()) returns setof text
language plpgsql security definer as $$
declare
  v_month text;
  v_kept boolean;
begin
  perform cue.refuse_if(p_before > p_now - interval '35 days', 'QU011',
    format('Executions are kept for at least 35 days; %s is more recent.', p_before));
  for v_month in select cue.months_before(p_before) loop
    execute format(
      'select exists (select from cue.%1$I where attempt_due_at is not null) or exists (select from cue.%1$I where claimable_at is not null)
           or exists (select from cue.%1$I where lease_expires_at is not null)
           or exists (select from cue.%1$I where outcome_deadline_at is not null)
           or exists (select from cue.flights f cross join unnest(f.execution_ids) as u (id)
                        join cue.%1$I e on e.id = u.id and e.flight_id = f.id)
           or exists (select from (select ended_at from cue.%1$I limit 10000) e where e.ended_at >= %2$L)',
      'executions_' || v_month, p_before) into v_kept;
    continue when v_kept;
    execute format('drop table cue.%I', 'executions_' || v_month);
    execute format('drop table if exists cue.%I, cue.%I', 'attempts_' || v_month, 'fixed_requests_' || v_month);
    return next v_month;
  end loop;
end $$;
comment on function cue.drop_old_executions is 'Drops months that end before p_before; QU011 within 35 days.';

create or replace function cue.erase_executions(p_execution_ids uuid[]) returns void
language plpgsql security definer as $$
declare
  v_first uuid := (select min(u.id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_last uuid := (select max(u.id::text)::uuid from unnest(p_execution_ids) as u (id));
begin
  delete from cue.attempts where execution_id = any (p_execution_ids) and execution_id between v_first and v_last;
  delete from cue.fixed_requests where execution_id = any (p_execution_ids) and execution_id between v_first and v_last;
  delete from cue.executions where id = any (p_execution_ids) and id between v_first and v_last;
  delete from cue.dead_letters where execution_id = any (p_execution_ids);
  delete from cue.approvals where execution_id = any (p_execution_ids);
  perform cue.drop_attempt_jobs(p_execution_ids);
end $$;
comment on function cue.erase_executions is 'Deletes executions that the caller has locked, with what belongs to them.';

create or replace function cue.delete_old_executions(p_before timestamptz, p_batch int default 5000) returns int
language plpgsql security definer as $$
declare
  v_month text;
  v_ids uuid[];
begin
  for v_month in select cue.months_before(p_before) loop
    execute format('select array(select id from cue.%I where ended_at < %L order by id limit %s for update skip locked)', 'executions_' || v_month,
                   p_before, p_batch) into v_ids;
    continue when v_ids = '{}';
    perform cue.erase_executions(v_ids);
    return cardinality(v_ids);
  end loop;
  return 0;
end $$;
comment on function cue.delete_old_executions is 'Deletes a batch of old executions that could not be dropped.';

create or replace function cue.purge_cue(p_cue_id text, p_batch int default 1000) returns int
language plpgsql security definer as $$
declare
  v_ids uuid[];
  v_gone int;
begin
  if not exists (select from cue.cues where id = p_cue_id and deleted_at is not null) then return 0; end if;
  v_ids := array(select id from cue.executions where cue_id = p_cue_id order by id desc limit p_batch for update skip locked);
  if v_ids = '{}' then
    delete from cue.payloads where id = any (array(
      select id from cue.payloads where cue_id = p_cue_id order by id limit p_batch / 10 + 1 for update skip locked));
    get diagnostics v_gone = row_count;
    if v_gone > 0 then return v_gone; end if;
    delete from cue.signals where id = any (array(
      select id from cue.signals where follower_id = p_cue_id limit p_batch for update skip locked));
    get diagnostics v_gone = row_count;
    if v_gone > 0 then return v_gone; end if;
    delete from cue.cues q where q.id = p_cue_id and not exists (select from cue.executions e where e.cue_id = p_cue_id);
    return 0;
  end if;
  perform cue.erase_executions(v_ids);
  return cardinality(v_ids);
end $$;
comment on function cue.purge_cue is 'Deletes a batch of a deleted cue''s history, at last the cue; 0 when done.';

create or replace function cue.requeue_purges(p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_count int;
begin
  perform cue.add_job('purges', jsonb_build_object('cue_id', id, 'account_id', account_id), p_singleton_key => id)
     from cue.cues where deleted_at < p_now - interval '5 minutes';
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function cue.requeue_purges is 'Adds the missing jobs of cue deletions; returns how many.';

create or replace function cue.prune(p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  delete from cue.fires where fired_at < p_now - interval '24 hours';
  delete from cue.echoes where expires_at < p_now;
  delete from cue.rate_windows where expires_at < p_now;
  delete from cue.outages where until_at < p_now - interval '90 days';
  delete from cue.holds where until_at < p_now - interval '90 days';
  delete from cue.missed_slots where recorded_at < p_now - interval '90 days';
  delete from cue.stripe_events where received_at < p_now - interval '90 days';
  delete from cue.operations where ended_at < p_now - interval '90 days';
  delete from cue.payload_counters where day < (p_now at time zone 'utc')::date - 1;
  delete from cue.usage_counters where slot = 0 and month < cue.usage_month(p_now - interval '400 days');
  delete from cue.engines where last_seen_at < p_now - interval '1 hour' and last_seen_at < (select max(last_seen_at) from cue.engines);
  -- A worker that holds a claim may be sending heartbeats for that claim only.
  delete from cue.workers where (account_id, worker_id) in (
    select w.account_id, w.worker_id from cue.workers w
     where w.last_heartbeat < p_now - interval '7 days'
       and not exists (select from cue.executions e
                        where e.lease_expires_at is not null and e.account_id = w.account_id and e.claimed_by_worker = w.worker_id)
       for update of w skip locked);
  delete from cue.api_keys where revoked_at < p_now - interval '30 days';
  delete from cue.audit_events where created_at < p_now - interval '400 days';
  delete from cue.costs where reported_at < p_now - interval '400 days';
  delete from cue.sessions where expires_at <= p_now;
  delete from cue.session_tokens where expires_at <= p_now;
  delete from cue.device_codes where expires_at <= p_now;
  delete from cue.addresses where confirmed_at is null and asked_at < p_now - interval '30 days';
  delete from cue.notices where alert_id is null and due_at is null and id < cue.uuid_v7_floor(p_now - interval '1 day');
  -- No rate and no period of a budget goes back so far. A part that is used again begins anew.
  delete from cue.gate_parts p using (
    select q.account_id, q.gate from cue.gate_parts q
     where coalesce(q.last_start_at, '-infinity') < p_now - interval '32 days' and q.opened_at is null and q.alert_id is null
       and not exists (select from cue.held_executions h where h.account_id = q.account_id and h.gate = q.gate and h.held_by = 'gate')
       and not exists (select from cue.gate_starts s where s.account_id = q.account_id and s.gate = q.gate and s.holds and cue.holds_place(s, true))
     limit 10000 for update skip locked) i
   where p.account_id = i.account_id and p.gate = i.gate;
  perform cue.prune_audit(p_now);
end $$;
comment on function cue.prune is
  'Removes expired data: fires, echoes, rate windows, outages, holds, missed slots, Stripe events, operations, counters, engines, workers, keys, '
  'addresses, notices of events, parts of gates, costs and audit entries.';
