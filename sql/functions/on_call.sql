-- What is asked at night, in the order of sql/README.md, "On call". Each answer reads a bounded number of rows. cue_operator may call these.

-- A reason that doesn't apply is null or false.
create or replace function cue.why_late(p_cue_id text, p_now timestamptz default now()) returns table (
  cue_id text, account_id uuid, due_at timestamptz, late_by interval, held text, account_full boolean, locked_by text, passed_over boolean,
  over_limit boolean, paused text, no_engine boolean, previous_run uuid, no_worker boolean, gate text
)
language plpgsql stable security definer as $$
begin
  return query
  with waiting as materialized (
    select e.* from (
      select x.id, x.xmax as locker, least(x.attempt_due_at, x.claimable_at) as at, x.claimable_at, x.ended_at
        from cue.executions x where x.cue_id = p_cue_id order by x.id desc limit 100) e where e.ended_at is null),
  oldest as (select w.* from waiting w where w.at <= p_now order by w.at limit 1),
  live as (select n.* from cue.engines n where n.last_seen_at > p_now - cue.engine_timeout() and n.stopped_at is null)
  select c.id, c.account_id, d.at, case when d.at <= p_now then p_now - d.at end, cue.held_reason(c.account_id),
         exists (select from live n where c.account_id = any (n.full_accounts)),
         (select format('process %s (%s), since %s', k.pid, coalesce(k.application, 'unknown'), coalesce(k.since::text, 'unknown'))
            from cue.lockers() k where k.transaction in (c.xmax, r.xmax, a.xmax, (select o.locker from oldest o)) limit 1),
         exists (select from live n where c.id = any (n.passed_over)),
         cue.is_over_limit(a, p_now) or cue.caps_payloads() and cue.exceeds_payload_cap(c.id, p_now),
         case when c.status = 'paused' then concat_ws(': ', c.paused_by, c.pause_reason) end,
         not exists (select from live),
         case when c.tracked then (select min(w.id::text)::uuid from waiting w where w.at is distinct from 'infinity') end,
         c.transport = 'worker' and exists (select from oldest) and not cue.has_live_worker(c.account_id, p_now),
         (select format('%s: %s, since %s', h.gate, cue.gate_reason(h.account_id, h.gate, p_now), h.since)
            from waiting w join cue.held_executions h on h.execution_id = w.id
           where h.held_by = 'gate' and w.at > p_now order by h.due_at, h.execution_id limit 1)
    from cue.cues c join cue.cue_runs r on r.cue_id = c.id join cue.accounts a on a.id = c.account_id
   cross join lateral (select least(r.next_run, (select o.at from oldest o)) as at) d
   where c.id = p_cue_id and c.deleted_at is null;
  perform cue.refuse_if(not found, 'QU001', format('cue %s not found', p_cue_id));
end $$;
comment on function cue.why_late is
  'Returns since when a cue is late, and what keeps it; QU001 if not found. Each reason has a column that is empty or false if it does not apply. A row locked by '
  'another session counts as locked_by; previous_run is an execution that has not ended, for which an overlap waits; gate is the one at which the cue''s first execution waits, and why.';

-- Requests are those that were counted towards a rate limit, so there are none with RATE_LIMIT=off.
create or replace function cue.floods(p_now timestamptz default now())
returns table (account_id uuid, email text, plan cue.plan, executions bigint, requests bigint)
language plpgsql stable security definer as $$
declare
  v_minute int := cue.minute_of(p_now);
begin
  return query
  with runs as (
    select e.account_id, count(*) as executions from (
      select x.account_id from cue.executions x
       where x.id >= cue.uuid_v7_floor(p_now - interval '5 minutes')
       order by x.id desc limit 100000) e group by e.account_id),
  hits as materialized (
    select w.subject, (select sum(h) from unnest(w.recent[: 5 - (v_minute - w.recent_minute)]) as u (h)) as hits from cue.rate_windows w
     where w.recent_minute between v_minute - 4 and v_minute and w.subject ~ '^(key|sessions|execution):' limit 100000),
  requests as (
    select s.account_id, sum(s.hits)::bigint as requests from (
      select coalesce(
               (select k.account_id from cue.api_keys k where k.id = case when h.subject like 'key:%' then substring(h.subject from 5)::uuid end),
               case when h.subject like 'sessions:%' then substring(h.subject from 10)::uuid end,
               (select x.account_id from cue.executions x
                 where x.id = case when h.subject like 'execution:%' then substring(h.subject from 11)::uuid end)) as account_id, h.hits
        from hits h) s where s.account_id is not null group by s.account_id)
  select a.id, a.email, a.plan, coalesce(r.executions, 0), coalesce(q.requests, 0)
    from runs r full join requests q on q.account_id = r.account_id join cue.accounts a on a.id = coalesce(r.account_id, q.account_id)
   order by coalesce(r.executions, 0) + coalesce(q.requests, 0) desc, a.id limit 20;
end $$;
comment on function cue.floods is
  'Returns the 20 accounts with the most executions and requests in the last five minutes, among the newest 100,000 executions.';

create or replace function cue.cron_values(p_field text, p_min int, p_max int, p_names text[] default '{}') returns int[]
language sql immutable as $$
  select array_agg(distinct v)
    from unnest(string_to_array(lower(p_field), ',')) as u (item)
   cross join lateral regexp_match(u.item, '^([*?]|\w+)(?:-(\w+))?(?:/(\d+))?$') as m
   cross join lateral (select coalesce(array_position(p_names, m[1])::text, m[1]) as first, coalesce(array_position(p_names, m[2])::text, m[2]) as last) n
   cross join lateral generate_series(
     case when m[1] in ('*', '?') then p_min else n.first::int end,
     case when m[1] in ('*', '?') or m[2] is null and m[3] is not null then p_max else coalesce(n.last, n.first)::int end,
     coalesce(m[3], '1')::int) as v
$$;
comment on function cue.cron_values is 'Returns the values of a valid field of a cron expression. Names stand for their subscripts in p_names.';

-- Engines compute slots in TypeScript, exactly. Here, a slot in a gap of local time is left out.
create or replace function cue.cron_slots(p_cron text, p_timezone text, p_from timestamptz, p_until timestamptz) returns setof timestamptz
language plpgsql stable security definer as $$
declare
  v_text text := lower(trim(p_cron));
  f text[] := regexp_split_to_array(case v_text when '@hourly' then '0 * * * *' when '@daily' then '0 0 * * *' when '@midnight' then '0 0 * * *'
    when '@weekly' then '0 0 * * 0' when '@monthly' then '0 0 1 * *' when '@yearly' then '0 0 1 1 *' when '@annually' then '0 0 1 1 *'
    else v_text end, '\s+');
  v_seconds int[];
  v_minutes int[];
  v_hours int[];
  v_days int[];
  v_months int[];
  v_weekdays int[];
  v_wild boolean;
  v_either boolean;
begin
  if cardinality(f) = 5 then f := array['0'] || f; end if;
  v_seconds := cue.cron_values(f[1], 0, 59);
  v_minutes := cue.cron_values(f[2], 0, 59);
  v_hours := cue.cron_values(f[3], 0, 23);
  v_days := cue.cron_values(f[4], 1, 31);
  v_months := cue.cron_values(f[5], 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
  v_weekdays := array(select d % 7 from unnest(cue.cron_values(f[6], 0, 7, '[0:6]={sun,mon,tue,wed,thu,fri,sat}')) as u (d));
  v_wild := f[2] ~ '^[*?]' or f[3] ~ '^[*?]';
  v_either := f[4] !~ '^[*?]' and f[6] !~ '^[*?]';
  return query
  select m.at + s.n * interval '1 second'
    from generate_series(date_trunc('minute', p_from), p_until, interval '1 minute') as m (at)
   cross join lateral (select m.at at time zone p_timezone as t, (m.at - interval '1 hour') at time zone p_timezone as before) l
   cross join unnest(v_seconds) as s (n)
   where date_part('minute', l.t)::int = any (v_minutes) and date_part('hour', l.t)::int = any (v_hours)
     and date_part('month', l.t)::int = any (v_months)
     and case when v_either then date_part('day', l.t)::int = any (v_days) or date_part('dow', l.t)::int = any (v_weekdays)
              else date_part('day', l.t)::int = any (v_days) and date_part('dow', l.t)::int = any (v_weekdays) end
     and (v_wild or l.before <> l.t)
     and m.at + s.n * interval '1 second' >= p_from and m.at + s.n * interval '1 second' < p_until;
end $$;
comment on function cue.cron_slots is 'Returns the slots of a valid cron expression from p_from to before p_until.';

-- Cues that share a schedule and the next slot are counted together. Beyond 5,000 schedules, the largest first, only the next slot of each counts.
create or replace function cue.forecast(p_now timestamptz default now()) returns table (minute timestamptz, slots bigint)
language plpgsql stable security definer as $$
declare
  v_first timestamptz := date_trunc('minute', p_now);
  v_until timestamptz := v_first + interval '1 hour';
begin
  return query
  with due as (
    select r.* from cue.cue_runs r where r.next_run < v_until order by r.next_run limit 1000000),
  groups as materialized (
    select min(d.cue_id) as cue_id, d.next_run, min(d.next_slot) as next_slot, count(*) as cues, min(d.fired_count) as fired_count,
           min(d.skipped_count) as skipped_count
      from due d group by d.next_run, coalesce(d.schedule_key::text, d.cue_id)),
  ranked as (select g.*, row_number() over (order by g.cues desc, g.next_run, g.cue_id) as place from groups g),
  runs as (
    select greatest(s.at, p_now) as at, g.cues
      from ranked g
     cross join lateral (
       select q.schedule_type, q.cron, q.timezone, q.schedule_rules as rules, g.next_run - coalesce(g.next_slot, g.next_run) as delay
         from cue.cues q where q.id = g.cue_id limit 1) c
     cross join lateral (
       select n.at + c.delay as at from (
         select g.next_run - c.delay as at where g.place > 5000 or c.schedule_type = 'once'
         union
         select w.at
           from unnest(case when c.cron is not null then array[c.cron] else array(select jsonb_array_elements_text(c.rules -> 'crons')) end)
                as e (cron)
          cross join lateral cue.cron_slots(e.cron, c.timezone, g.next_run - c.delay, v_until) as w (at)
          where g.place <= 5000 and c.schedule_type = 'recurring'
         union
         select generate_series(g.next_run - c.delay, v_until, cue.length_of(c.rules ->> 'every'))
          where g.place <= 5000 and c.rules ? 'every') n
        where n.at <= coalesce((c.rules ->> 'ends_at')::timestamptz, 'infinity')
        order by n.at limit cue.runs_left(c.rules, g.fired_count, g.skipped_count)) s
     where s.at < v_until)
  select m.at, coalesce(sum(r.cues), 0)::bigint
    from generate_series(v_first, v_until - interval '1 minute', interval '1 minute') as m (at)
    left join runs r on date_trunc('minute', r.at) = m.at
   group by m.at order by m.at;
end $$;
comment on function cue.forecast is
  'Returns the slots that are due in each minute of the next hour, all of a cue''s; those that exclusions skip count as well. Reads up to a million cues.';

create or replace function cue.length_of(p_length text) returns interval
language sql immutable as $$
  select left(p_length, -1)::float8 * case right(p_length, 1) when 'd' then 86400 when 'h' then 3600 when 'm' then 60 else 1 end * interval '1 second'
$$;
comment on function cue.length_of is 'Returns a length such as 45m as an interval of seconds.';

create or replace function cue.who_changed(p_cue_id text) returns table (at timestamptz, event cue.audit_event, actor text, detail jsonb)
language plpgsql stable security definer as $$
declare
  v_account uuid := (select c.account_id from cue.cues c where c.id = p_cue_id);
begin
  return query
  select c.created_at, c.event, c.actor, c.detail from (
    (select e.* from cue.audit_events e where e.detail ->> 'cue_id' = p_cue_id and e.detail ? 'cue_id' order by e.seq desc limit 100)
    union all
    (select e.* from (select x.* from cue.audit_events x where x.account_id = v_account order by x.seq desc limit 10000) e
      where e.event in ('cues.applied', 'operation.created', 'account.held', 'account.released') and not e.detail ? 'cue_id'
      order by e.seq desc limit 100)) c
   order by c.seq desc limit 100;
end $$;
comment on function cue.who_changed is
  'Returns who changed a cue, newest first: entries about it, and those of its account that may concern it: operations, applied sets and holds.';

create or replace function cue.replicas(p_now timestamptz default now()) returns table (
  name text, is_alive boolean, version text, started_at timestamptz, last_seen_at timestamptz, stopped_at timestamptz, lateness_ms int,
  open_deliveries int, engine_id uuid
)
language sql stable security definer as $$
  select n.name, n.stopped_at is null and n.last_seen_at > p_now - cue.engine_timeout(), n.version, n.started_at, n.last_seen_at, n.stopped_at,
         n.lateness_ms, n.open_deliveries, n.id
    from cue.engines n order by 2 desc, n.name, n.last_seen_at desc
$$;
comment on function cue.replicas is
  'Returns the replicas with an engine that were seen in the last hour, and whether they are alive. Those with ROLES=api have none: ask their /health.';

-- Over all accounts, by the attempts of the newest executions.
create or replace function cue.destinations(p_now timestamptz default now()) returns table (
  host text, accounts bigint, attempts bigint, failures bigint, response_p50_ms int, response_p95_ms int, last_error text
)
language plpgsql stable security definer as $$
begin
  return query
  with newest as materialized (
    select e.id, e.account_id, e.cue_id, e.attempts, e.attempt_ms, e.http_status from cue.executions e
     where e.id >= cue.uuid_v7_floor(p_now - interval '1 hour') and e.transport = 'webhook' and e.attempts > 0
     order by e.id desc limit 20000),
  targets as materialized (
    select x.cue_id, cue.host_of(c.callback_url) as host from (select distinct n.cue_id from newest n) x
     cross join lateral (select q.callback_url from cue.cues q where q.id = x.cue_id limit 1) c),
  tried as (
    select t.host, n.account_id, 'success'::cue.attempt_result as result, n.attempt_ms as ms, n.http_status, null as error, n.id
      from newest n join targets t using (cue_id) where n.attempt_ms is not null
    union all
    select t.host, n.account_id, a.result, a.duration_ms, a.http_status, a.error, n.id
      from (select * from newest w where w.attempt_ms is null) n join targets t using (cue_id)
     cross join lateral (
       select o.result, o.duration_ms, o.http_status, o.error from cue.attempts o where o.execution_id = n.id order by o.attempt limit 100) a)
  select t.host, count(distinct t.account_id), count(*), count(*) filter (where t.result = 'failed'),
         (percentile_disc(0.5) within group (order by t.ms) filter (where t.http_status is not null))::int,
         (percentile_disc(0.95) within group (order by t.ms) filter (where t.http_status is not null))::int,
         (array_agg(t.error order by t.id desc) filter (where t.error is not null))[1]
    from tried t group by t.host order by max(t.ms) desc nulls last, t.host limit 100;
end $$;
comment on function cue.destinations is
  'Returns up to 100 hosts that webhooks of all accounts went to in the last hour, by the newest 20,000 executions; the slowest response first.';

create or replace function cue.disk_use(p_now timestamptz default now())
returns table (name text, size_bytes bigint, since timestamptz, bytes_per_day bigint)
language plpgsql stable security definer as $$
declare
  v_month timestamp := date_trunc('month', p_now at time zone 'utc');
  v_since timestamptz := (select e.created_at from cue.executions e where e.id >= cue.partition_bound(v_month) order by e.id limit 1);
begin
  return query
  with parts as (
    select p.parent, pg_total_relation_size(i.inhrelid) as size, i.inhrelid::regclass::text like to_char(v_month, '%YYYY_MM') as is_current
      from unnest('{executions,attempts}'::text[]) as p (parent) join pg_inherits i on i.inhparent = format('cue.%I', p.parent)::regclass)
  select d.name, d.size, d.since, (d.added / greatest(extract(epoch from p_now - d.since) / 86400, 1 / 24.0))::bigint
    from (
      select 1 as place, p.parent as name, sum(p.size)::bigint as size, v_since as since, max(p.size) filter (where p.is_current) as added
        from parts p group by p.parent
      union all
      select 2, 'WAL', w.wal_bytes::bigint, coalesce(w.stats_reset, pg_postmaster_start_time()), w.wal_bytes::bigint from pg_stat_wal w
      union all
      select 3, 'whole database', pg_database_size(current_database()), null, null) d
   order by d.place, d.name desc;
end $$;
comment on function cue.disk_use is 'Returns sizes, and growth per day of executions and attempts this month, and of WAL.';
