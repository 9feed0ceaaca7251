-- Plans, and monthly counts of executions and their results.

-- The planner inlines it, since it is stable and returns a set, and computes only the columns that are used.
create or replace function cue.limits_of(a cue.accounts) returns setof cue.plans
language sql stable rows 1 as $$
  select (jsonb_populate_record(p, a.limits)).* from cue.plans p where p.plan = a.plan limit 1
$$;
comment on function cue.limits_of is 'Returns an account''s limits: its own, or else those of its plan; null: no limit.';

-- Null: removes a limit of its own. Maximums are those of the types, and of timeouts.
create or replace function cue.check_limits(p_limits jsonb) returns void
language plpgsql security definer as $$
declare
  l record;
begin
  for l in select * from jsonb_each(p_limits) loop
    perform cue.refuse_if(
      not exists (select from jsonb_object_keys(to_jsonb(jsonb_populate_record(null::cue.plans, '{}'))) k where k = l.key and k <> 'plan'),
      'QU034', format('Unknown limit %s', l.key));
    perform cue.refuse_if(
      l.value <> 'null' and (l.value::text !~ '^\d{1,15}$' or l.key not in ('cues', 'executions_per_month') and l.value = '0'
                             or l.key = 'max_timeout_seconds' and l.value > '3600'),
      'QU034', format('Invalid limit: %s cannot be %s', l.key, l.value));
  end loop;
  perform jsonb_populate_record(null::cue.plans, p_limits);
end $$;
comment on function cue.check_limits is 'Raises QU034 unless all of these are valid limits of an account.';

create or replace function cue.is_overridden(p_name text) returns boolean
language plpgsql stable security definer as $$ begin return exists (select from cue.overridden_limits where name = p_name); end $$;
comment on function cue.is_overridden is 'Returns whether any account has, or had, a limit of its own with this name.';

create or replace function cue.executions_used(p_account_id uuid, p_now timestamptz default now()) returns bigint
language sql stable security definer as $$
  select coalesce(sum(executions), 0)::bigint from cue.usage_counters where account_id = p_account_id and month = cue.usage_month(p_now)
$$;
comment on function cue.executions_used is 'Returns the number of executions an account has created in the current UTC month.';

-- Each backend counts in rows that no other one uses, those of its slot. If one of them is locked, it continues with another slot.
create or replace function cue.counter_slot() returns int
language sql stable as $$ select coalesce(nullif(current_setting('cue.counter_slot', true), '')::int, pg_backend_pid()) $$;
comment on function cue.counter_slot is 'Returns the slot of the counter rows of this backend.';

-- Negative: process ids are positive. Kept for the session, so that only one statement waits for the locked row.
create or replace function cue.leave_counter_slot() returns int
language sql volatile as $$ select set_config('cue.counter_slot', (-1 - floor(random() * 2147483647)::int)::text, false)::int $$;
comment on function cue.leave_counter_slot is 'Gives this backend another slot of counter rows, and returns it.';

-- fold_usage sums up all slots.
create or replace function cue.count_executions(p_account_ids uuid[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  loop
    begin
      insert into cue.usage_counters as u (account_id, month, slot, executions)
      select n.id, cue.usage_month(p_now), cue.counter_slot(), count(*) from unnest(p_account_ids) as n (id) group by n.id
      on conflict (account_id, month, slot) do update set executions = u.executions + excluded.executions;
      return;
    exception when lock_not_available then perform cue.leave_counter_slot();
    end;
  end loop;
end $$;
comment on function cue.count_executions is 'Counts new executions in the current UTC month, one per element of p_account_ids.';

-- Not with an exception block, like count_executions: a batch of failures would have a subtransaction for each.
create or replace function cue.count_results(
  p_account_id uuid, p_reported int, p_succeeded int, p_failed int, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  v_month date := cue.usage_month(p_now);
  v_slot int := cue.counter_slot();
begin
  perform from cue.usage_counters where account_id = p_account_id and month = v_month and slot = v_slot for update skip locked;
  if not found and exists (select from cue.usage_counters where account_id = p_account_id and month = v_month and slot = v_slot) then
    v_slot := cue.leave_counter_slot();
  end if;
  insert into cue.usage_counters as u (account_id, month, slot, reported, succeeded, failed)
  values (p_account_id, v_month, v_slot, p_reported, p_succeeded, p_failed)
  on conflict (account_id, month, slot) do update
     set reported = u.reported + excluded.reported, succeeded = u.succeeded + excluded.succeeded, failed = u.failed + excluded.failed;
end $$;
comment on function cue.count_results is 'Counts outcomes and failures in the current UTC month.';

-- An entry counts several hits if the limit is above 500.
create or replace function cue.requests_used(p_subject text, p_window interval default '1 minute', p_now timestamptz default now())
returns int
language sql stable security definer as $$
  select coalesce((
    select case when h.count = 0 then 0 else (h.count - 1) * w.weight + w.newest end
      from cue.rate_windows w, lateral (
        select count(*)::int as count from unnest(w.hits) as u (hit) where u.hit > extract(epoch from p_now - p_window - w.started_at) * 1000) h
     where w.subject = p_subject), 0)
$$;
comment on function cue.requests_used is 'Returns the number of requests in a credential''s or address''s current rate window.';

-- All sessions of an account share a limit, as in admit.
create or replace function cue.read_usage(p_account_id uuid, p_actor text, p_now timestamptz default now()) returns table (
  plan cue.plan, cues_used int, cues_active int, cue_limit int, executions_used bigint, execution_limit int, reported bigint, succeeded bigint,
  failed bigint, requests_used int, requests_per_minute int, schedules jsonb
)
language sql stable security definer as $$
  select a.plan, c.used, c.active, p.cues, u.executions, p.executions_per_month, u.reported, u.succeeded, u.failed,
         cue.requests_used(case when p_actor like 'session:%' then 'sessions:' || a.id else p_actor end, '1 minute', p_now), p.requests_per_minute,
         s.schedules
    from cue.accounts a cross join lateral cue.limits_of(a) p,
         lateral (select count(*)::int as used, (count(*) filter (where q.status = 'active'))::int as active from cue.cues q
                   where q.account_id = a.id and q.deleted_at is null and q.status in ('active', 'paused') and not q.memory_check) c,
         lateral (select coalesce(sum(x.executions), 0)::bigint as executions, coalesce(sum(x.reported), 0)::bigint as reported,
                         coalesce(sum(x.succeeded), 0)::bigint as succeeded, coalesce(sum(x.failed), 0)::bigint as failed
                    from cue.usage_counters x where x.account_id = a.id and x.month = cue.usage_month(p_now)) u,
         lateral (select coalesce(jsonb_agg(to_jsonb(g)), '[]') as schedules
                    from (select q.schedule_type, q.cron, q.at, q.timezone,
                                 case when pg_column_size(q.schedule_rules) > 1000 then q.schedule_rules - 'exclude' else q.schedule_rules end
                                   as schedule_rules, count(*) as cues
                            from (select c.schedule_type, c.cron, c.at, c.timezone, c.schedule_rules from cue.cues c
                                   where c.account_id = a.id and c.deleted_at is null and c.status = 'active' and c.schedule_type is not null and not c.memory_check
                                   limit 1000) q
                           group by 1, 2, 3, 4, 5 order by cues desc limit 200) g) s
   where a.id = p_account_id
$$;
comment on function cue.read_usage is
  'Returns an account''s use of its plan, and of the calling credential''s rate limit; and the 200 most common schedules '
  'of up to 1,000 active cues, with how many have each.';

create or replace function cue.start_grace(a cue.accounts, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  if a.limit_reached_at is null or cue.usage_month(a.limit_reached_at) < cue.usage_month(p_now) then
    update cue.accounts set limit_reached_at = p_now, updated_at = p_now where id = a.id;
    perform cue.add_job('mails', jsonb_build_object('kind', 'limit_reached', 'account_id', a.id, 'grace_ends_at', p_now + interval '24 hours'));
    perform cue.add_limit_event(a.id, 'executions_per_month', (select executions_per_month from cue.limits_of(a)), p_now);
  end if;
end $$;
comment on function cue.start_grace is 'Starts the 24-hour grace period when the monthly limit is first reached, and queues a mail.';

-- Waits for nobody: locked rows and accounts are left to the next sweep. The account is locked too, so that nothing is counted for one that
-- is being deleted. Reads the index usage_counters_unfolded: the counters of idle accounts are all in slot 0.
create or replace function cue.fold_usage(p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  a cue.accounts;
  v_reached uuid[];
  v_count int;
begin
  if not pg_try_advisory_xact_lock(hashtext('cue.fold_usage')) then return 0; end if;
  v_reached := array(
    select c.id from (select distinct u.account_id from cue.usage_counters u where u.slot <> 0) u
      join cue.accounts c on c.id = u.account_id cross join lateral cue.limits_of(c) p
     where (c.limit_reached_at is null or cue.usage_month(c.limit_reached_at) < cue.usage_month(p_now))
       and cue.executions_used(c.id, p_now) >= p.executions_per_month);
  for a in select * from cue.accounts where id = any (v_reached) order by id for no key update skip locked loop
    perform cue.start_grace(a, p_now);
    v_reached := array_remove(v_reached, a.id);
  end loop;
  -- Accounts whose grace could not be started keep their rows, so that the next sweep checks them again.
  with held as (
    select u.account_id, u.month, u.slot from cue.usage_counters u join cue.accounts c on c.id = u.account_id
     where u.slot <> 0 and u.account_id <> all (v_reached)
       and (not exists (select from cue.usage_counters t where t.account_id = u.account_id and t.month = u.month and t.slot = 0)
            or (select true from cue.usage_counters t where t.account_id = u.account_id and t.month = u.month and t.slot = 0
                   for update skip locked))
       for update of u skip locked for key share of c skip locked),
  gone as (
    delete from cue.usage_counters u using held
     where u.account_id = held.account_id and u.month = held.month and u.slot = held.slot
    returning u.account_id, u.month, u.executions, u.reported, u.succeeded, u.failed),
  folded as (
    insert into cue.usage_counters as u (account_id, month, slot, executions, reported, succeeded, failed)
    select account_id, month, 0, sum(executions), sum(reported), sum(succeeded), sum(failed) from gone group by account_id, month
    on conflict (account_id, month, slot) do update
       set executions = u.executions + excluded.executions, reported = u.reported + excluded.reported,
           succeeded = u.succeeded + excluded.succeeded, failed = u.failed + excluded.failed)
  select count(distinct account_id) into v_count from gone;
  return v_count;
end $$;
comment on function cue.fold_usage is 'Sums up usage in slot 0, and starts grace periods; returns how many accounts.';

create or replace function cue.set_plans(p_plans jsonb) returns void
language plpgsql security definer as $$
declare
  v_below uuid[];
begin
  -- A replica of the previous release may omit limits: those stay unchanged.
  update cue.plans p
     set requests_per_minute = n.requests_per_minute, cues = n.cues, executions_per_month = n.executions_per_month,
         fires_per_hour = n.fires_per_hour, open_deliveries = n.open_deliveries, max_timeout_seconds = n.max_timeout_seconds,
         min_interval_seconds = n.min_interval_seconds, payload_bytes_per_day = n.payload_bytes_per_day
    from jsonb_each(p_plans) as l (name, limits)
   cross join lateral (select to_jsonb(q) || l.limits as limits from cue.plans q where q.plan::text = l.name) merged
   cross join lateral jsonb_populate_record(null::cue.plans, merged.limits) as n
   where p.plan = n.plan and p is distinct from n;
  if found then
    with below as (
      update cue.accounts a set limit_reached_at = null
       where a.limit_reached_at is not null
         and cue.executions_used(a.id) < (select p.executions_per_month from cue.limits_of(a) p)
      returning a.id)
    select array_agg(id) into v_below from below;
    perform cue.retry_refused(v_below);
  end if;
end $$;
comment on function cue.set_plans is 'Sets the limits of the plans from the PLANS setting at start.';
