-- Firing. The index on next_run is the queue of first attempts: a slot is taken when there is capacity to send it. Locks, here and everywhere:
-- accounts, cues, cue_runs, executions, jobs; within a table by id.

-- Engines find later instants when they next look.
create or replace function cue.wake(p_channel text, p_at timestamptz) returns void
language plpgsql as $$
begin
  if p_at <= clock_timestamp() + interval '1 minute' then
    perform pg_notify(p_channel, floor(extract(epoch from p_at) * 1000)::bigint::text);
  end if;
end $$;
comment on function cue.wake is 'Notifies engines of an instant within the next minute, in epoch milliseconds.';

create or replace function cue.signing_secrets(a cue.accounts, p_now timestamptz) returns text[]
language sql immutable as $$
  select case when a.previous_webhook_secret_until > p_now then array[a.webhook_secret, a.previous_webhook_secret]
              else array[a.webhook_secret] end
$$;
comment on function cue.signing_secrets is 'Returns the secrets that sign an account''s webhooks now, current one first.';

-- The limit keeps the planner from turning the lookup into a join.
create or replace function cue.signing_account(p_account_id uuid, p_now timestamptz) returns table (secrets text[], api_key text)
language sql stable as $$
  select cue.signing_secrets(a, p_now),
         (select k.ciphertext from cue.api_keys k
           where k.account_id = a.id and k.is_default and k.revoked_at is null and a.webhook_authorization = 'api_key')
    from cue.accounts a where a.id = p_account_id limit 1
$$;
comment on function cue.signing_account is 'Returns an account''s signing secrets, and its key if callbacks carry it.';

-- Saves the lookup per cue while none does.
create or replace function cue.limits_timeouts() returns boolean
language plpgsql stable as $$
begin
  return exists (select from cue.plans where max_timeout_seconds is not null) or cue.is_overridden('max_timeout_seconds');
end $$;
comment on function cue.limits_timeouts is 'Returns whether any plan or account limits timeouts.';

-- It also applies to cues created before the limit was set.
create or replace function cue.max_timeout(p_account_id uuid) returns int
language sql stable as $$
  select (select p.max_timeout_seconds from cue.accounts a cross join lateral cue.limits_of(a) p where a.id = p_account_id)
$$;
comment on function cue.max_timeout is 'Returns an account''s maximum timeout in seconds; null without one.';

create or replace function cue.has_used_grace(a cue.accounts, p_now timestamptz) returns boolean
language sql stable security definer as $$
  select cue.executions_used(a.id, p_now) >= 2 * p.executions_per_month::bigint from cue.limits_of(a) p
$$;
comment on function cue.has_used_grace is 'Returns whether an account has used twice its monthly executions.';

-- Stable like its body: otherwise the planner doesn't inline it.
create or replace function cue.is_over_limit(a cue.accounts, p_now timestamptz) returns boolean
language sql stable as $$
  select a.limit_reached_at is not null and cue.usage_month(a.limit_reached_at) = cue.usage_month(p_now)
     and (a.limit_reached_at + interval '24 hours' <= p_now or cue.has_used_grace(a, p_now))
$$;
comment on function cue.is_over_limit is 'Returns whether an account''s executions are refused: over the limit and its grace.';

-- Accounts are skipped with a hashed subquery: a list would be compared with every cue. A SQL function, because the planner inlines it.
create or replace function cue.runs_near(p_until timestamptz, p_skip_accounts uuid[]) returns setof cue.cue_runs
language sql stable as $$
  select * from cue.cue_runs r where r.next_run <= p_until and r.account_id not in (select unnest(p_skip_accounts))
$$;
comment on function cue.runs_near is 'Returns the runs due until p_until, except those of some accounts.';

-- By instant and account, so that one account's burst doesn't hide the others.
create or replace function cue.fair_page(p_until timestamptz, p_limit int, p_skip_accounts uuid[]) returns text[]
language plpgsql stable security definer as $$
begin
  return array(
    with recursive groups as (
      (select r.next_run, r.account_id, 1 as n from cue.cue_runs r
        where r.next_run <= p_until and r.account_id not in (select unnest(p_skip_accounts)) order by r.next_run, r.account_id limit 1)
      union all
      select f.next_run, f.account_id, g.n + 1 from groups g cross join lateral (
        select r.next_run, r.account_id from cue.cue_runs r
         where (r.next_run, r.account_id) > (g.next_run, g.account_id) and r.next_run <= p_until
           and r.account_id not in (select unnest(p_skip_accounts))
         order by r.next_run, r.account_id limit 1) f
       where g.n < p_limit)
    select p.cue_id from (
      select m.cue_id from groups g cross join lateral (
        select r.cue_id, row_number() over () as place from cue.cue_runs r
         where r.next_run = g.next_run and r.account_id = g.account_id limit greatest(10, p_limit / 10)) m
       order by m.place, g.next_run limit p_limit) p);
end $$;
comment on function cue.fair_page is 'Returns due cues for a look that finds more than p_limit: those of each instant, in turn.';

-- outage_until is set for slots that came due during an outage, or were refused: those before next_run are to be recorded. A cue
-- with schedule_rules comes alone.
create or replace function cue.look_ahead_by_schedule(
  p_until timestamptz, p_limit int default 2000, p_skip_accounts uuid[] default '{}', p_now timestamptz default now()
) returns table (
  cue_ids text[], account_ids uuid[], versions int[], next_runs bigint[], transport cue.transport, schedule_type cue.schedule_type, cron text,
  timezone text, schedule_rules jsonb, next_slot timestamptz, calendars bigint[], runs_left int, catch_up cue.catch_up, outage_until timestamptz,
  over_limit boolean, window_slots int, tracked boolean
)
language plpgsql stable security definer as $$
declare
  v_full boolean;
  v_accounts uuid[];
  v_refused uuid[];
  v_ids text[];
  v_capped boolean := cue.caps_payloads();
  -- There hardly ever is one, and looking for it costs as much per cue as reading the cue.
  v_outages boolean := exists (
    select from cue.unserved_periods o
     where o.until_at >= (select r.next_run from cue.cue_runs r where r.next_run <= p_until order by r.next_run limit 1));
begin
  if v_outages then
    if cue.is_held(null) then return; end if;
    p_skip_accounts := p_skip_accounts || array(select h.account_id from cue.holds h where h.until_at = 'infinity');
  end if;
  select coalesce(sum(a.count) >= p_limit, false), array_agg(a.account_id) into v_full, v_accounts from (
    select r.account_id, count(*) from (
      select n.account_id from cue.runs_near(p_until, p_skip_accounts) n limit p_limit) r group by r.account_id) a;
  if v_full then
    v_ids := cue.fair_page(p_until, p_limit, p_skip_accounts);
    v_accounts := array(select distinct r.account_id from unnest(v_ids) as u (id) join cue.cue_runs r on r.cue_id = u.id);
  end if;
  v_refused := array(
    select u.id from unnest(v_accounts) as u (id)
     cross join lateral (select cue.is_over_limit(q, p_now) from cue.accounts q where q.id = u.id limit 1) a
     where a.is_over_limit);
  return query
  with due as (
    select r.* from cue.runs_near(p_until, p_skip_accounts) r where not v_full
    union all
    select r.* from unnest(v_ids) as u (id) join cue.cue_runs r on r.cue_id = u.id where r.next_run is not null
    union all
    (select r.* from cue.cue_runs r where r.next_run > p_until order by r.next_run limit 1)),
  grouped as (
    select array_agg(r.cue_id) as cue_ids, array_agg(r.account_id) as account_ids, array_agg(r.version) as versions,
           array_agg((date_part('epoch', r.next_run) * 1000)::bigint) as next_runs, r.transport, r.tracked, coalesce(r.refused_from, r.next_slot) as next_slot,
           min(r.fired_count) as fired_count, min(r.skipped_count) as skipped_count,
           coalesce(r.schedule_key::text, r.cue_id) as key,
           r.success_due_at is null as opens_window,
           greatest(case when v_outages then (
                      select max(o.until_at) from cue.unserved_periods o
                       where coalesce(o.account_id, r.account_id) = r.account_id and r.next_run > o.from_at and r.next_run <= o.until_at
                         and o.until_at < 'infinity') end,
                    case when r.refused_from is not null then r.next_run - interval '1 millisecond' end) as ended_at,
           r.account_id in (select unnest(v_refused)) or r.refused_from is not null or v_capped and cue.exceeds_payload_cap(r.cue_id, p_now) as refused
      from due r
     group by r.transport, r.tracked, coalesce(r.refused_from, r.next_slot), key, opens_window, ended_at, refused)
  select g.cue_ids, g.account_ids, g.versions, g.next_runs, g.transport, c.schedule_type, c.cron, c.timezone, c.schedule_rules, g.next_slot,
         case when c.schedule_rules ? 'exclude_calendars' then cue.revisions_of(c.account_id, c.schedule_rules) end,
         cue.runs_left(c.schedule_rules, g.fired_count, g.skipped_count), c.catch_up, g.ended_at, g.refused,
         case when g.opens_window and c.schedule_type = 'recurring' then
           coalesce(c.alert_missed_window_multiplier, (cue.implied_settings()).alert_missed_window_multiplier) end,
         g.tracked
    from grouped g
   cross join lateral (select * from cue.cues q where q.id = g.cue_ids[1] limit 1) c;
end $$;
comment on function cue.look_ahead_by_schedule is 'Returns due cues and the next later one, a row for each schedule.';

create or replace function cue.is_unserved(p_account_id uuid, p_slot timestamptz) returns boolean
language plpgsql stable security definer as $$
begin
  return exists (
    select from cue.unserved_periods o
     where coalesce(o.account_id, p_account_id) = p_account_id and (p_slot > o.from_at or o.until_at = 'infinity') and p_slot <= o.until_at);
end $$;
comment on function cue.is_unserved is 'Returns whether a slot came due in an outage or a long hold, or its account is held now.';

-- With joins hashed, rows are found by their ids alone, whatever the tables' sizes when this was planned.
create or replace function cue.move_due_cues(
  p_cue_ids text[], p_expected timestamptz[], p_next timestamptz[], p_next_slots timestamptz[], p_success_due timestamptz[], p_capped boolean,
  p_now timestamptz, p_tracked boolean default false
) returns table (cue_id text, account_id uuid, slot timestamptz, expected timestamptz)
language plpgsql security definer as $$
declare
  v_first timestamptz := (select min(u.at) from unnest(p_expected) as u (at));
  v_outages boolean := exists (select from cue.outages o where o.until_at >= v_first)
    or exists (select from cue.holds h where h.until_at >= v_first);
begin
  return query
  update cue.cue_runs r
     set next_run = d.next_run, next_slot = d.next_slot, last_slot = coalesce(r.next_slot, r.next_run),
         last_run = case when r.transport = 'webhook' and not p_tracked then p_now else r.last_run end,
         fired_count = r.fired_count + 1, run_count = r.run_count + 1, success_due_at = coalesce(r.success_due_at, d.success_due)
    from unnest(p_cue_ids, p_expected, p_next, p_next_slots, p_success_due) as d (cue_id, expected, next_run, next_slot, success_due)
   where r.cue_id = any (p_cue_ids) and r.cue_id = d.cue_id and r.tracked = p_tracked
     and (select not cue.is_over_limit(a, p_now) from cue.accounts a where a.id = r.account_id)
     and not (v_outages and cue.is_unserved(r.account_id, d.expected))
     and not (p_capped and cue.exceeds_payload_cap(r.cue_id, p_now))
  returning r.cue_id, r.account_id, r.last_slot, d.expected;
end $$;
comment on function cue.move_due_cues is
  'Moves due cues, tracked or not, that the caller has locked to their next slots; null instead of an id stands for none.';

-- Null in the place of each cue that is locked, or was moved by another engine. Not `=`, so that cues are looked up by their ids: very many may
-- have one instant.
create or replace function cue.lock_due_cues(p_cue_ids text[], p_versions int[], p_expected timestamptz[], p_now timestamptz) returns text[]
language plpgsql security definer as $$
begin
  return array(
    select l.cue_id from unnest(p_cue_ids, p_versions, p_expected) with ordinality as u (id, version, expected, n)
      left join lateral (
        select r.cue_id from cue.cue_runs r
         where r.cue_id = u.id and r.version = u.version and r.next_run is not distinct from u.expected and u.expected <= p_now
         limit 1 for update skip locked) l on true
     order by u.n);
end $$;
comment on function cue.lock_due_cues is 'Locks the cue_runs of due cues that are free and unchanged; returns their ids, with null in place of the others.';

-- A cue is skipped if its version or next_run has changed since the following slot was computed. next_slot is null where it equals next_run, and
-- so is p_next_slots. Slots that came due during an outage or above the plan's limit are left to catch_up_cues and refuse_due_cues, and tracked
-- cues to fire_tracked_cues.
-- Here and in deliveries.sql, plans are generic, and one made on small tables is kept when they grow. So rows are looked up one by one in lateral
-- subqueries with a limit, which the planner doesn't reorder, and updates name their rows by "= any" beside the join. Planning for each
-- call would cost as much as the work, with so many partitions.
create or replace function cue.take_due_cues(
  p_cue_ids text[], p_versions int[], p_expected timestamptz[], p_next timestamptz[], p_success_due timestamptz[] default '{}',
  p_missed_after interval default cue.missed_after(), p_lease interval default cue.flight_lease(), p_now timestamptz default now(),
  p_next_slots timestamptz[] default '{}'
) returns setof cue.begun_attempt
language plpgsql security definer as $$
declare
  v_flight bigint;
  v_ids uuid[];
  v_accounts uuid[];
  v_cue_ids text[];
  v_expected timestamptz[];
  v_slots timestamptz[];
  v_free text[];
  v_capped boolean := cue.caps_payloads();
  v_limited boolean := cue.limits_timeouts();
begin
  if not exists (select from cue.engines where last_seen_at > p_now - p_missed_after) then return; end if;
  v_free := cue.lock_due_cues(p_cue_ids, p_versions, p_expected, p_now);
  if cardinality(array_remove(v_free, null)) = 0 then return; end if;
  select array_agg(m.cue_id), array_agg(m.account_id), array_agg(m.slot), array_agg(m.expected) into v_cue_ids, v_accounts, v_slots, v_expected
    from cue.move_due_cues(v_free, p_expected, p_next, p_next_slots, p_success_due, v_capped, p_now) m;
  if v_cue_ids is null then return; end if;
  if v_capped then perform cue.count_payloads(v_cue_ids, array_fill(1, array[cardinality(v_cue_ids)]), p_now); end if;
  v_flight := nextval('cue.flight_ids');
  -- Inserted in the order of their ids: pages of the primary key fill up before they split.
  v_ids := cue.uuids_v7(cardinality(v_cue_ids), p_now);
  perform cue.count_executions(v_accounts, p_now);
  return query
  with moved as (select * from unnest(v_ids, v_cue_ids, v_slots, v_expected) as m (id, cue_id, slot, expected)),
  fired as materialized (
    select m.id, m.slot as scheduled_for, m.expected as due_at, c.account_id, c.id as cue_id, c.transport, c.callback_url, c.callback_method,
           c.callback_headers, c.payload, c.payload_id, c.cue,
           least(coalesce(c.timeout_seconds, (cue.implied_settings()).timeout_seconds),
                 case when v_limited then cue.max_timeout(c.account_id) end) as timeout_seconds,
           a.secrets, a.api_key, c.schedule_type = 'recurring' and not coalesce(c.await_outcome, false) as plain
      from moved m
     cross join lateral (select q as cue, q.* from cue.cues q where q.id = m.cue_id limit 1) c
     cross join lateral cue.signing_account(c.account_id, p_now) a),
  flight as (
    insert into cue.flights (id, execution_ids, lease_expires_at, created_at)
    select v_flight, array_agg(f.id), p_now + p_lease, p_now from fired f where f.transport = 'webhook' having count(*) > 0),
  made as (
    insert into cue.new_executions
    select n.*
      from fired f
     cross join lateral cue.new_execution(
       f.cue, f.id, f.scheduled_for, p_flight_id => v_flight, p_slot_due_at => f.due_at, p_now => p_now) n),
  woken as materialized (
    select cue.wake_workers(w.account_id, p_now) from (select distinct f.account_id from fired f where f.transport = 'worker') w)
  select f.id, v_flight, 1, f.account_id, f.cue_id, f.scheduled_for, f.callback_url, f.callback_method, f.callback_headers,
         coalesce(f.payload, (select p.body from cue.payloads p where p.id = f.payload_id)), f.timeout_seconds, f.secrets, f.api_key, f.plain, null::text
    -- Always true: a CTE that only selects runs only if it is read.
    from fired f where f.transport = 'webhook' and (select count(*) from woken) >= 0;
end $$;
comment on function cue.take_due_cues is 'Fires due cues and returns the webhook attempts to send; worker executions become claimable.';
