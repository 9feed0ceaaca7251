-- Deliveries: open attempts and their results. Locks: accounts, cues, cue_runs, gates that pause after failures, executions, jobs; within a table by id.

create or replace function cue.open_limits(p_account_ids uuid[]) returns table (account_id uuid, open_deliveries int)
language sql stable security definer as $$
  select a.id, p.open_deliveries from cue.accounts a cross join lateral cue.limits_of(a) p where a.id = any (p_account_ids)
  union all
  select null, o.least::int from cue.overridden_limits o where o.name = 'open_deliveries'
$$;
comment on function cue.open_limits is
  'Returns how many open deliveries each account may have; null as account: at least that many, whatever its own limit.';

-- Engines ask once a second about the requests they have open, and abort these.
create or replace function cue.gone_attempts(p_execution_ids uuid[], p_attempts int[]) returns setof uuid
language plpgsql stable security definer as $$
declare
  v_first uuid := (select min(id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_last uuid := (select max(id::text)::uuid from unnest(p_execution_ids) as u (id));
begin
  return query
  select u.id from unnest(p_execution_ids, p_attempts) as u (id, attempt)
    left join lateral (
      select true as stands from cue.executions e
       where e.id = u.id and e.id between v_first and v_last and e.status = 'delivering' and e.attempts = u.attempt
         and (select c.deleted_at is null from cue.cues c where c.id = e.cue_id)
       limit 1) x on true
   where x.stands is null;
end $$;
comment on function cue.gone_attempts is 'Returns the executions whose running attempt was cancelled, deleted or taken over.';

create or replace function cue.pausing_gates(p_cue_ids text[]) returns table (account_id uuid, key text)
language sql stable security definer as $$
  select g.account_id, g.key from cue.gates g
   where g.ordered and g.on_failure = 'pause' and (g.account_id, g.key) in (
     select c.account_id, cue.gate_key(c.gate) from cue.cues c where c.id = any (p_cue_ids) and c.gate is not null)
$$;
comment on function cue.pausing_gates is 'Returns the gates of cues that a failed execution pauses.';

create or replace function cue.lock_cues(p_cue_ids text[]) returns void
language plpgsql security definer as $$
begin
  perform from cue.cues where id = any (p_cue_ids) order by id for no key update;
  perform from cue.cue_runs where cue_id = any (p_cue_ids) order by cue_id for update;
  if cue.has_gates() then
    perform from cue.gates g where (g.account_id, g.key) in (select p.account_id, p.key from cue.pausing_gates(p_cue_ids) p)
     order by g.account_id, g.key for no key update;
  end if;
end $$;
comment on function cue.lock_cues is 'Locks cues, then their cue_runs, then the gates that a failure pauses, each by id or key.';

-- Sweeps serve many accounts and wait for none. Also locked: cue_runs, alerts that are open or unresolved, gates that a failure pauses, and the account,
-- which a new alert references.
create or replace function cue.lock_free_cues(p_cue_ids text[]) returns text[]
language plpgsql security definer as $$
declare
  v_ids text[] := array(select id from cue.cues where id = any (p_cue_ids) order by id for no key update skip locked);
  v_has_gates boolean := cue.has_gates();
begin
  -- A new statement sees the rows as they are now that the cues are locked. With `exists`, a plan made while a table is small would read all of it.
  return array(
    select u.id from unnest(v_ids) as u (id)
     where coalesce((select true from cue.cue_runs r where r.cue_id = u.id for update skip locked),
                    (select false from cue.cue_runs r where r.cue_id = u.id limit 1), true)
       and (select true from cue.accounts a where a.id = (select c.account_id from cue.cues c where c.id = u.id) for key share skip locked)
       and (select count(*) from cue.alerts l where l.cue_id = u.id and (l.acknowledged_at is null or l.resolved_at is null))
           = (select count(*) from (select from cue.alerts l
                where l.cue_id = u.id and (l.acknowledged_at is null or l.resolved_at is null) for update skip locked) o)
       and (not v_has_gates or (select count(*) from cue.pausing_gates(array[u.id]))
           = (select count(*) from (select from cue.gates g
                where (g.account_id, g.key) in (select p.account_id, p.key from cue.pausing_gates(array[u.id]) p) for no key update skip locked) o)));
end $$;
comment on function cue.lock_free_cues is 'Locks and returns the cues that are free, with the rows that the end of an execution may write.';

-- Unless a whole table is locked, all other results can be written at once.
create or replace function cue.held_attempts(p_execution_ids uuid[], p_cue_ids text[]) returns setof uuid
language plpgsql security definer as $$
declare
  v_first uuid := (select min(id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_last uuid := (select max(id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_cues text[] := cue.lock_free_cues(p_cue_ids);
  v_executions uuid[] := array(
    select id from cue.executions where id = any (p_execution_ids) and id between v_first and v_last order by id for update skip locked);
begin
  return query
  select u.id from unnest(p_execution_ids, p_cue_ids) as u (id, cue_id)
   where u.id <> all (v_executions) and (select true from cue.executions x where x.id = u.id limit 1)
      or u.cue_id <> all (v_cues) and (select true from cue.cues c where c.id = u.cue_id limit 1);
end $$;
comment on function cue.held_attempts is 'Returns attempts whose results cannot be written now: a row they need is locked.';

-- A locked flight is being extended or taken over: it is removed when its lease expires.
create or replace function cue.end_flights(p_flight_ids bigint[]) returns void
language plpgsql security definer as $$
begin
  if cardinality(p_flight_ids) = 0 then return; end if;
  delete from cue.flights
   where id = any (array(select id from cue.flights where id = any (p_flight_ids) order by id for update skip locked));
end $$;
comment on function cue.end_flights is 'Removes flights whose attempts have all ended.';

-- "= any" finds the rows, and the bounds exclude other partitions. Apart from the function that calls it, because nested loops are off here: one would
-- compare each row with each result. Whichever side of the join comes first is ordered by id, the lock order.
create or replace function cue.record_successes(
  p_execution_ids uuid[], p_attempts int[], p_started_at timestamptz[], p_duration_ms int[], p_http_status int[], p_bodies text[],
  p_first uuid, p_last uuid, p_now timestamptz
) returns int
language plpgsql security definer as $$
declare
  v_moved int;
begin
  update cue.executions e
     set status = 'success', flight_id = null, http_status = r.http_status, response_body = r.body, error_message = null,
         last_attempt_at = r.started_at, attempt_ms = case when r.attempt = 1 then r.duration_ms end,
         delivered_at = p_now, ended_at = p_now, updated_at = p_now
    from (select * from unnest(p_execution_ids, p_attempts, p_started_at, p_duration_ms, p_http_status, p_bodies)
            as u (id, attempt, started_at, duration_ms, http_status, body) order by id) r
   where e.id = r.id and e.id = any (p_execution_ids) and e.id between p_first and p_last
     and e.status = 'delivering' and e.transport = 'webhook' and e.attempts = r.attempt;
  get diagnostics v_moved = row_count;
  return v_moved;
end $$;
comment on function cue.record_successes is 'Ends executions whose attempts got a 2xx response; returns how many.';

-- Most deliveries end here, so it is one update. A first attempt that succeeds is logged in its execution, where attempt_view finds it: a row of
-- its own would cost an eighth of the WAL. An attempt that was taken over is skipped.
create or replace function cue.finish_attempts(
  p_execution_ids uuid[], p_attempts int[], p_cue_ids text[], p_started_at timestamptz[], p_duration_ms int[], p_http_status int[],
  p_bodies text[], p_now timestamptz default now()
) returns int
language plpgsql security definer as $$
declare
  v_sorted uuid[] := array(select id from unnest(p_execution_ids) as u (id) order by id);
  v_first uuid := v_sorted[1];
  v_last uuid := v_sorted[cardinality(v_sorted)];
  v_again boolean := 1 < any (p_attempts);
  v_failing text[];
  v_tracked text[];
  v_alerted text[];
  v_moved int;
begin
  -- Usually none. Comes first, because cue_runs precede executions in the lock order.
  select array_agg(l.cue_id) filter (where l.is_failing), array_agg(l.cue_id) filter (where l.tracked), array_agg(l.cue_id) filter (where l.alerted)
    into v_failing, v_tracked, v_alerted from (
    select cue_id, failed_deliveries > 0 or failed_runs > 0 as is_failing, tracked, alerted from cue.cue_runs
     where cue_id = any (p_cue_ids) and (failed_deliveries > 0 or failed_runs > 0 or tracked or alerted) order by cue_id for update) l;
  if v_failing is not null then
    update cue.cue_runs c
       set failed_deliveries = 0,
           failed_runs = case when c.failed_runs > 0 and not exists (
             select from unnest(p_execution_ids, p_attempts, p_cue_ids) as u (id, attempt, cue_id)
              cross join lateral (
                select x.status, x.attempts, x.triggered_by from cue.executions x
                 where x.id = u.id and x.id between v_first and v_last limit 1) x
              where u.cue_id = c.cue_id and x.status = 'delivering' and x.attempts = u.attempt and x.triggered_by in ('schedule', 'chain'))
             then c.failed_runs else 0 end
     where c.cue_id = any (v_failing);
  end if;
  -- Before PostgreSQL 17, record_successes may use another index and lock in that order.
  if v_again or current_setting('server_version_num')::int < 170000 then
    perform from cue.executions where id = any (p_execution_ids) and id between v_first and v_last order by id for update;
  end if;
  -- An attempt that was released and begun again may have ended twice.
  if v_again then
    insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, http_status)
    select distinct on (r.id) r.id, r.attempt, e.account_id, 'success', r.started_at, r.started_at + r.duration_ms * interval '1 millisecond', r.duration_ms, r.http_status
      from unnest(p_execution_ids, p_attempts, p_started_at, p_duration_ms, p_http_status) as r (id, attempt, started_at, duration_ms, http_status)
     cross join lateral (
       select x.account_id from cue.executions x
        where x.id = r.id and x.id between v_first and v_last and x.status = 'delivering' and x.transport = 'webhook' and x.attempts = r.attempt
        limit 1) e
     where r.attempt > 1;
  end if;
  v_moved := cue.record_successes(p_execution_ids, p_attempts, p_started_at, p_duration_ms, p_http_status, p_bodies, v_first, v_last, p_now);
  -- Like count_ended, without a call per row.
  perform count(nextval('cue.ended_success')) from generate_series(1, v_moved);
  perform cue.add_successes(p_execution_ids, p_now);
  perform cue.signal_successes(p_execution_ids, p_cue_ids, p_now);
  if v_tracked is not null then
    if cue.has_gates() then
      perform cue.add_results(p_execution_ids, p_attempts, p_http_status, array_fill(null::text, array[cardinality(p_attempts)]),
                              array_fill(null::int, array[cardinality(p_attempts)]), p_now);
    end if;
    perform cue.follow_ends(v_tracked, p_now);
  end if;
  if v_alerted is not null then
    perform cue.resolve_alerts(u.id, p_now) from unnest(v_alerted) as u (id)
     where (select true from cue.executions x
             where x.id = any (p_execution_ids) and x.id between v_first and v_last and x.cue_id = u.id and x.status = 'success' and x.ended_at = p_now
             limit 1);
  end if;
  return v_moved;
end $$;
comment on function cue.finish_attempts is 'Records 2xx responses of recurring cues that await no outcome; returns how many.';

create or replace function cue.attempts_to_repeat(
  p_execution_ids uuid[], p_attempts int[], p_cue_ids text[], p_errors text[], p_gone boolean[]
) returns uuid[]
language plpgsql stable security definer as $$
begin
  return (
    select coalesce(array_agg(u.id), '{}')
      -- Compare with the attempt that ended rather than the row's: the row is not locked yet, and may have been released and begun again.
      from unnest(p_execution_ids, p_attempts, p_cue_ids, p_errors, p_gone) as u (id, attempt, cue_id, error, gone)
     cross join lateral (select u.attempt - x.lost_attempts as sent from cue.executions x where x.id = u.id limit 1) x
     cross join lateral (select q.retry_max_attempts from cue.cues q where q.id = u.cue_id and q.deleted_at is null limit 1) q
     where u.error is not null and not u.gone and x.sent < q.retry_max_attempts);
end $$;
comment on function cue.attempts_to_repeat is 'Returns those of these ended attempts that failed and have attempts left.';

-- Delayed by the cue's backoff plus up to 10%, and at least by Retry-After. In whole milliseconds, as engines count: with a fraction more,
-- they would look a moment too early.
create or replace function cue.retry_due_at(p_backoff_minutes float8[], p_sent int, p_retry_after_ms int, p_now timestamptz) returns timestamptz
language sql volatile as $$
  select date_trunc('milliseconds', p_now + greatest(
    p_backoff_minutes[least(p_sent, cardinality(p_backoff_minutes))] * (1 + random() / 10) * interval '1 minute',
    coalesce(p_retry_after_ms, 0) * interval '1 millisecond'))
$$;
comment on function cue.retry_due_at is 'Returns when the next attempt is due after p_sent attempts.';

create or replace function cue.fit_report(p_report jsonb, p_omitted text) returns table (report jsonb, note text)
language sql immutable as $$
  select p_report - x.names, 'left out of the report: ' || nullif(concat_ws(', ', p_omitted,
           (select string_agg(n || ' (too large with all digits of its numbers)', ', ') from unnest(x.names) as n)), '')
    from (select array_remove(array[
      case when cue.json_bytes(p_report -> 'artifacts') > cue.artifacts_bytes() then 'artifacts' end,
      case when octet_length(p_report ->> 'metadata') > 4 * cue.metadata_bytes() then 'metadata' end], null) as names) x
$$;
comment on function cue.fit_report is
  'Returns the report in a response, without members that are too large as stored, and the note that names all members left out of it.';

create or replace function cue.follow_results(
  p_again uuid[], p_due timestamptz[], p_deadline timestamptz, p_delivered text[], p_ended uuid[], p_now timestamptz
) returns void
language plpgsql security definer as $$
declare
  v_first uuid := (select min(id::text)::uuid from unnest(p_ended) as u (id));
  v_last uuid := (select max(id::text)::uuid from unnest(p_ended) as u (id));
  e cue.executions;
begin
  if p_again is not null then
    perform cue.enqueue_attempts(p_again, p_due);
    perform cue.add_execution_events('execution.retrying', p_again, p_now);
  end if;
  if p_deadline is not null then perform cue.wake('cue_deadline', p_deadline); end if;
  update cue.cue_runs set failed_deliveries = 0 where cue_id = any (p_delivered) and failed_deliveries > 0;
  -- One after the other: the first to end may change the cue of the next.
  for e in select * from cue.executions where id = any (p_ended) and id between v_first and v_last order by id loop
    perform cue.after_end(e, c, p_now) from cue.cues c where c.id = e.cue_id;
  end loop;
end $$;
comment on function cue.follow_results is
  'Queues the retries of recorded results, the first deadline of an outcome, and applies what the ends of executions mean for their cues.';

create or replace function cue.record_results(
  p_execution_ids uuid[], p_attempts int[], p_cue_ids text[], p_started_at timestamptz[], p_duration_ms int[], p_http_status int[],
  p_bodies text[], p_headers jsonb[], p_errors text[], p_retry_after_ms int[], p_reports jsonb[], p_omitted text[], p_again uuid[],
  p_first uuid, p_last uuid, p_now timestamptz,
  out moved int, out again uuid[], out due timestamptz[], out deadline timestamptz, out delivered text[], out ended uuid[]
) language plpgsql security definer as $$
begin
  with r as materialized (
    select u.*, q.*, f.report, f.note,
           case when u.id = any (p_again) then 'retrying' when u.error is not null then 'failed'
                when q.awaits and f.report is null then 'pending_outcome' else 'success' end::cue.execution_status as status
      from unnest(p_execution_ids, p_attempts, p_cue_ids, p_started_at, p_duration_ms, p_http_status, p_bodies, p_headers, p_errors,
                  p_retry_after_ms, p_reports, p_omitted)
        as u (id, attempt, cue_id, started_at, duration_ms, http_status, body, headers, error, retry_after_ms, response, omitted)
     cross join lateral (
       select x.outcome_recorded_at from cue.executions x
        where x.id = u.id and x.status = 'delivering' and x.transport = 'webhook' and x.attempts = u.attempt limit 1) x
      left join lateral (
       select q.retry_backoff_minutes, q.verification_mode, q.outcome_deadline_seconds * interval '1 second' as outcome_deadline,
              u.error is null and q.await_outcome is true and x.outcome_recorded_at is null as awaits
         from cue.cues q where q.id = u.cue_id limit 1) q on true
      left join lateral cue.fit_report(u.response, u.omitted) f on q.awaits),
  moved as (
    update cue.executions x
       set status = r.status, flight_id = null, http_status = r.http_status, response_body = r.body, error_message = r.error,
           attempt_due_at = case r.status when 'retrying' then
             cue.retry_due_at(r.retry_backoff_minutes, x.attempts - x.lost_attempts, r.retry_after_ms, p_now) end,
           delivered_at = case when r.error is null then p_now end,
           ended_at = case when r.status in ('success', 'failed') then p_now end,
           outcome_deadline_at = case r.status when 'pending_outcome' then date_trunc('milliseconds', p_now + r.outcome_deadline) end,
           -- An execution that awaits its outcome has none of these yet.
           outcome_success = coalesce(x.outcome_success, (r.report ->> 'success')::boolean),
           outcome_recorded_at = coalesce(x.outcome_recorded_at, case when r.report is not null then p_now end),
           outcome_state = case when r.report is null then x.outcome_state else cue.judge_outcome(r.verification_mode,
             (r.report ->> 'success')::boolean, r.report ->> 'external_id', r.report ->> 'result_url', r.report -> 'artifacts') end,
           result = coalesce(x.result, r.report ->> 'result'), error = coalesce(x.error, r.report ->> 'error'),
           external_id = coalesce(x.external_id, r.report ->> 'external_id'), result_url = coalesce(x.result_url, r.report ->> 'result_url'),
           result_ref = coalesce(x.result_ref, r.report ->> 'result_ref'), result_type = coalesce(x.result_type, r.report ->> 'result_type'),
           summary = coalesce(x.summary, r.report ->> 'summary'), artifacts = coalesce(x.artifacts, r.report -> 'artifacts'),
           metadata = coalesce(x.metadata, r.report -> 'metadata'),
           updated_at = p_now
      from r
     where x.id = r.id and x.id = any (p_execution_ids) and x.id between p_first and p_last
    returning x.id, x.account_id, x.cue_id, x.status, x.attempt_due_at, x.outcome_deadline_at, r.attempt, r.started_at, r.duration_ms,
              r.http_status, r.error, r.note, r.headers, r.body, r.report -> 'costs' as costs),
  spent as (
    insert into cue.costs (execution_id, attempt, unit, amount, account_id, cue_id, reported_at)
    select m.id, m.attempt, g.value ->> 'unit', sum((g.value ->> 'amount')::numeric), m.account_id, m.cue_id, p_now
      from moved m cross join lateral jsonb_array_elements(m.costs) g where m.costs is not null
     group by m.id, m.attempt, g.value ->> 'unit', m.account_id, m.cue_id
    on conflict do nothing returning account_id, cue_id, unit, amount),
  gated as (
    insert into cue.gate_spending (account_id, gate, unit, amount, reported_at)
    select s.account_id, p.gate, s.unit, s.amount, p_now
      from spent s cross join lateral cue.budgeted_part(s.cue_id, s.unit) p),
  log as (
    insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, http_status, error, response_headers,
                              response_body)
    select m.id, m.attempt, m.account_id, case when m.error is null then 'success' else 'failed' end::cue.attempt_result, m.started_at,
           m.started_at + m.duration_ms * interval '1 millisecond', m.duration_ms, m.http_status, coalesce(m.error, m.note),
           case when m.error is not null then m.headers end, case when m.error is not null then m.body end
      from moved m)
  select count(*), array_agg(m.id) filter (where m.status = 'retrying'), array_agg(m.attempt_due_at) filter (where m.status = 'retrying'),
         min(m.outcome_deadline_at), array_agg(m.cue_id) filter (where m.error is null),
         array_agg(m.id) filter (where m.status in ('success', 'failed'))
    into moved, again, due, deadline, delivered, ended from moved m;
end $$;
comment on function cue.record_results is
  'Records results of attempts; returns how many, those to repeat and when, the first deadline of an outcome, the cues that were reached, and what ended.';

create or replace function cue.settle_attempts(
  p_execution_ids uuid[], p_attempts int[], p_cue_ids text[], p_started_at timestamptz[], p_duration_ms int[], p_http_status int[],
  p_bodies text[], p_headers jsonb[], p_errors text[], p_retry_after_ms int[], p_gone boolean[], p_reports jsonb[], p_omitted text[],
  p_now timestamptz default now()
) returns int
language plpgsql security definer as $$
declare
  v_first uuid := (select min(id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_last uuid := (select max(id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_again uuid[] := cue.attempts_to_repeat(p_execution_ids, p_attempts, p_cue_ids, p_errors, p_gone);
  r record;
begin
  -- A retry changes no cue.
  perform cue.lock_cues(array(select u.cue_id from unnest(p_execution_ids, p_cue_ids) as u (id, cue_id) where u.id <> all (v_again)));
  perform from cue.executions where id = any (p_execution_ids) and id between v_first and v_last order by id for update;
  r := cue.record_results(p_execution_ids, p_attempts, p_cue_ids, p_started_at, p_duration_ms, p_http_status, p_bodies, p_headers, p_errors,
                          p_retry_after_ms, p_reports, p_omitted, v_again, v_first, v_last, p_now);
  perform cue.follow_results(r.again, r.due, r.deadline, r.delivered, r.ended, p_now);
  if cue.has_gates() then
    perform cue.add_results(p_execution_ids, p_attempts, p_http_status, p_errors, p_retry_after_ms, p_now);
    perform cue.free_places(p_cue_ids, p_now);
  end if;
  return r.moved;
end $$;
comment on function cue.settle_attempts is 'Records all other results: failures, retries, outcomes, one-time cues.';
