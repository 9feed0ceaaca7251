-- Alerts: repeated failures, missing outcomes and missing successes. At most one alert of a type is open per cue. The caller holds the
-- cue's lock.

create or replace function cue.raise_alert(
  c cue.cues, p_type cue.alert_type, p_severity cue.alert_severity, p_message text, p_metadata jsonb, p_execution_id uuid default null,
  p_now timestamptz default now()
) returns uuid
language plpgsql security definer as $$
declare
  v_previous timestamptz;
  v_id uuid := cue.uuid_v7(p_now);
begin
  update cue.cue_runs set alerted = true where cue_id = c.id and not alerted;
  update cue.alerts set metadata = metadata || p_metadata, message = p_message, resolved_at = null, resolution = null,
                        snoozed_failures = snoozed_failures + (snoozed_until is not null)::int
   where cue_id = c.id and alert_type = p_type and acknowledged_at is null;
  if found then return null; end if;
  select max(acknowledged_at) into v_previous from cue.alerts where cue_id = c.id and alert_type = p_type;
  insert into cue.alerts (id, account_id, cue_id, execution_id, alert_type, severity, message, metadata, created_at)
  values (v_id, c.account_id, c.id, p_execution_id, p_type, p_severity, p_message,
          case when v_previous is null then p_metadata
               else p_metadata || jsonb_build_object('previous_acknowledged_at', cue.iso(v_previous)) end, p_now);
  perform cue.add_job('alerts', jsonb_build_object('alert_id', v_id, 'account_id', c.account_id))
     from cue.accounts where id = c.account_id and alert_webhook_url is not null;
  perform cue.add_alert_event('alert.raised', v_id, p_now);
  perform cue.add_notices(
    c.account_id, array(select h.id from cue.channels_for(c, 'alert.raised') h where p_severity >= h.severity), 'raised', p_now, v_id);
  return v_id;
end $$;
comment on function cue.raise_alert is 'Raises an alert and returns its id, or updates the open one and returns null.';

-- The larger of the two counts is compared, because deliveries can succeed while outcomes fail, and the other way round.
create or replace function cue.count_failure(e cue.executions, c cue.cues, p_of_outcome boolean, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  r cue.cue_runs;
  v_count int;
begin
  update cue.cue_runs
     set failed_deliveries = failed_deliveries + (not p_of_outcome)::int, failed_outcomes = failed_outcomes + p_of_outcome::int,
         deliveries_failing_since = case when p_of_outcome or failed_deliveries > 0 then deliveries_failing_since else p_now end,
         outcomes_failing_since = case when p_of_outcome and failed_outcomes = 0 then p_now else outcomes_failing_since end
   where cue_id = c.id returning * into r;
  v_count := greatest(r.failed_deliveries, r.failed_outcomes);
  if v_count >= coalesce(c.alert_consecutive_failures, (cue.implied_settings()).alert_consecutive_failures) then
    perform cue.raise_alert(c, 'consecutive_failure', 'high',
      format('%s failed %s', c.name, case v_count when 1 then 'once' else format('%s times in a row', v_count) end),
      jsonb_build_object('failure_count', v_count, 'first_failure_at', cue.iso(
        case when r.failed_deliveries = v_count then r.deliveries_failing_since else r.outcomes_failing_since end)), e.id, p_now);
  end if;
end $$;
comment on function cue.count_failure is 'Counts a failed delivery or outcome, and raises an alert at the cue''s threshold.';

-- Failures in a row have ended when neither deliveries nor outcomes fail any more, and a pause after failures when the cue runs again. Failures
-- count from the success before the alert; only the newest 1,000 executions are read.
create or replace function cue.resolve_alerts(p_cue_id text, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_id uuid;
begin
  if not exists (select from cue.cue_runs where cue_id = p_cue_id and alerted) then return; end if;
  for v_id in
  with newest as materialized (
    select e.id, e.status, e.outcome_success, e.created_at from cue.executions e
     where e.cue_id = p_cue_id order by e.id desc limit 1000)
  update cue.alerts a
     set resolved_at = p_now,
         resolution = jsonb_build_object(
           'after_seconds', greatest(floor(date_part('epoch', p_now - a.created_at)), 0), 'failed', s.failed, 'missed', s.missed + coalesce((
             select sum(m.count) from (select o.* from cue.missed_slots o where o.cue_id = p_cue_id order by o.id desc limit 100) m
              where m.recorded_at > coalesce(s.since, '-infinity') and m.reason <> 'excluded'), 0))
    from cue.alerts u
   cross join lateral (
     select max(n.created_at) as since from newest n
      where n.created_at < u.created_at and cue.is_success(n.status, n.outcome_success)) p
   cross join lateral (
     select p.since, count(*) filter (where n.status <> 'missed') as failed, count(*) filter (where n.status = 'missed') as missed from newest n
      where n.created_at > coalesce(p.since, '-infinity')
        and (n.status in ('failed', 'missed', 'outcome_timeout') or n.outcome_success is false)) s
    join cue.cue_runs r on r.cue_id = p_cue_id
   where a.id = u.id and u.cue_id = p_cue_id and u.resolved_at is null
     and case u.alert_type when 'consecutive_failure' then r.failed_deliveries = 0 and r.failed_outcomes = 0
                           when 'cue_paused' then r.failed_runs = 0 when 'gate_open' then false else true end
  returning a.id
  loop
    perform cue.add_alert_event('alert.resolved', v_id, p_now);
    perform cue.add_resolved_notices(v_id, p_now);
  end loop;
  update cue.cue_runs r set alerted = false
   where r.cue_id = p_cue_id and not exists (select from cue.alerts a where a.cue_id = p_cue_id and a.resolved_at is null);
end $$;
comment on function cue.resolve_alerts is 'Resolves the alerts of a cue that has just succeeded, unless their cause goes on.';

create or replace function cue.count_outcome(e cue.executions, c cue.cues, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.count_results(c.account_id, 1, e.outcome_success::int, (not e.outcome_success)::int, p_now);
  if e.outcome_success then
    update cue.cue_runs
       set failed_outcomes = 0, failed_deliveries = case e.transport when 'worker' then 0 else failed_deliveries end
     where cue_id = c.id and (failed_outcomes > 0 or failed_deliveries > 0 and e.transport = 'worker');
    if e.status = 'success' then perform cue.resolve_alerts(c.id, p_now); end if;
  elsif e.outcome_success is false then
    perform cue.count_failure(e, c, true, p_now);
  end if;
end $$;
comment on function cue.count_outcome is 'Counts a reported outcome: a success resets failed outcomes, a failure adds one.';

create or replace function cue.acknowledge_alert(p_account_id uuid, p_alert_id uuid, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  l cue.alerts;
begin
  select a.* into l from cue.alerts a join cue.cues c on c.id = a.cue_id
   where a.id = p_alert_id and a.account_id = p_account_id and c.deleted_at is null for no key update of a;
  perform cue.refuse_if(not found, 'QU003', format('alert %s not found', p_alert_id));
  if l.acknowledged_at is not null then return; end if;
  update cue.alerts set acknowledged_at = p_now where id = l.id;
  perform cue.add_alert_event('alert.acknowledged', l.id, p_now);
end $$;
comment on function cue.acknowledge_alert is 'Acknowledges an alert, keeping the time of the first acknowledgement; QU003 if not found.';

-- Nothing is sent while an alert is snoozed: see begin_notice. It ends with end_snoozes, not at its instant, so that nothing comes in between.
create or replace function cue.snooze_alert(p_account_id uuid, p_alert_id uuid, p_until timestamptz, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.refuse_if(p_until <= p_now, 'QU034', 'until must be in the future.');
  update cue.alerts a
     set snoozed_until = p_until, snoozed_at = coalesce(a.snoozed_at, p_now), snoozed_failures = case when a.snoozed_at is null then 0 else a.snoozed_failures end
   where a.id = p_alert_id and a.account_id = p_account_id
     and exists (select from cue.cues c where c.id = a.cue_id and c.deleted_at is null);
  perform cue.refuse_if(not found, 'QU003', format('alert %s not found', p_alert_id));
end $$;
comment on function cue.snooze_alert is 'Sends no notices of an alert until an instant, which moves if it is snoozed already; QU003, QU034.';

create or replace function cue.is_success(p_status cue.execution_status, p_outcome_success boolean) returns boolean
language sql immutable as $$ select p_status = 'success' and p_outcome_success is distinct from false $$;
comment on function cue.is_success is 'Returns whether an execution ended well: delivered, and no failure reported.';

create or replace function cue.last_success(p_cue_id text, p_among int) returns timestamptz
language plpgsql stable security definer as $$
begin
  return (
    select max(n.ended_at) from (
      select e.ended_at, e.status, e.outcome_success from cue.executions e
       where e.cue_id = p_cue_id order by e.id desc limit p_among) n
     where cue.is_success(n.status, n.outcome_success));
end $$;
comment on function cue.last_success is 'Returns the time of the latest success among a cue''s newest executions.';

-- A window is N slots plus 15 seconds. It uses the schedule's own slots, so a 25-hour day is not a miss. The last success is first looked for
-- among 20 executions, since 1,000 are rarely needed.
-- The index has the windows that end before their cue is due again. A cue whose window has passed, and which is due but has not fired, is among the
-- due ones: of those, only the oldest are read, since there may be very many.
create or replace function cue.passed_windows(
  p_limit int default 200, p_now timestamptz default now(), p_skip text[] default '{}'
) returns table (
  cue_id text, account_id uuid, version int, success_due_at timestamptz, schedule_type cue.schedule_type, cron text, timezone text, schedule_rules jsonb, calendars bigint[], slots int,
  last_success_at timestamptz
)
language plpgsql stable security definer as $$
declare
  v_cue_ids text[] := array(
    (select w.cue_id from cue.cue_runs w
      where w.success_due_at < coalesce(w.next_run, 'infinity') and w.success_due_at <= p_now and w.cue_id not in (select unnest(p_skip))
      order by w.success_due_at limit p_limit)
    union all
    (select o.cue_id from (
       select d.cue_id, d.next_run, d.success_due_at from cue.cue_runs d where d.next_run <= p_now order by d.next_run limit 10000) o
      where o.success_due_at >= o.next_run and o.success_due_at <= p_now and o.cue_id not in (select unnest(p_skip)) limit p_limit));
begin
  -- Usually none, and planning what follows takes longer than finding that out.
  if v_cue_ids = '{}' then return; end if;
  return query
  select r.cue_id, r.account_id, r.version, r.success_due_at, c.schedule_type, c.cron, c.timezone, c.schedule_rules,
         case when c.schedule_rules ? 'exclude_calendars' then cue.revisions_of(c.account_id, c.schedule_rules) end,
         coalesce(c.alert_missed_window_multiplier, (cue.implied_settings()).alert_missed_window_multiplier),
         coalesce(cue.last_success(r.cue_id, 20), cue.last_success(r.cue_id, 1000))
    from unnest(v_cue_ids) as f (cue_id)
   cross join lateral (select l.* from cue.cue_runs l where l.cue_id = f.cue_id limit 1) r
   cross join lateral (select q.* from cue.cues q where q.id = f.cue_id limit 1) c
   where c.schedule_type = 'recurring'
   order by r.success_due_at limit p_limit;
end $$;
comment on function cue.passed_windows is 'Returns cues whose window for a success has passed, to compute the next one.';

-- A row is skipped if its version or window has changed since the caller read it, or another transaction holds it. Most cues had a success: their
-- windows are moved by one update, which finds them by their ids alone: "is not distinct from" uses no index.
create or replace function cue.move_windows(
  p_cue_ids text[], p_versions int[], p_expected timestamptz[], p_next timestamptz[], p_missed boolean[], p_now timestamptz default now()
) returns int
language plpgsql security definer as $$
declare
  v_ids text[] := array(select u.cue_id from unnest(p_cue_ids, p_missed) as u (cue_id, missed) where not u.missed);
  r record;
  c cue.cues;
  v_raised int := 0;
begin
  for r in
    select * from unnest(p_cue_ids, p_versions, p_expected, p_next, p_missed) as u (cue_id, version, expected, next_due, missed)
     where u.missed order by u.cue_id
  loop
    continue when cue.lock_free_cues(array[r.cue_id]) = '{}';
    select * into c from cue.cues where id = r.cue_id and deleted_at is null;
    continue when not found;
    update cue.cue_runs set success_due_at = r.next_due
     where cue_id = r.cue_id and version = r.version and success_due_at = r.expected;
    continue when not found or c.status <> 'active';
    if cue.raise_alert(c, 'missed_window', 'high', format('%s had no success in its expected window', c.name),
         jsonb_build_object('window_ended_at', cue.iso(r.expected)), null, p_now) is not null then
      v_raised := v_raised + 1;
    end if;
  end loop;
  if v_ids <> '{}' then
    v_ids := array(select l.cue_id from cue.cue_runs l where l.cue_id = any (v_ids) order by l.cue_id for update skip locked);
    update cue.cue_runs w
       set success_due_at = u.next_due
      from unnest(p_cue_ids, p_versions, p_expected, p_next) as u (cue_id, version, expected, next_due)
     where w.cue_id = any (v_ids) and w.cue_id = u.cue_id and w.version = u.version and w.success_due_at is not distinct from u.expected;
  end if;
  return v_raised;
end $$;
comment on function cue.move_windows is 'Moves windows for a success on, raises alerts, and returns the number of alerts.';

-- Creates the secret if the account has none.
create or replace function cue.alert_notice(p_alert_id uuid, p_now timestamptz default now()) returns table (
  url text, secrets text[], alert_id uuid, alert_type cue.alert_type, severity cue.alert_severity, message text, cue_id text,
  execution_id uuid, created_at timestamptz, metadata jsonb
)
language plpgsql security definer as $$
declare
  l cue.alerts;
  a cue.accounts;
begin
  select x.* into l from cue.alerts x join cue.cues c on c.id = x.cue_id where x.id = p_alert_id and c.deleted_at is null;
  select * into a from cue.accounts where id = l.account_id and alert_webhook_url is not null;
  if a.id is null then return; end if;
  a.alert_webhook_secret := cue.alert_webhook_secret(a.id, 'service', null, p_now);
  return query select a.alert_webhook_url, cue.alert_signing_secrets(a, p_now), l.id, l.alert_type, l.severity, l.message, l.cue_id,
                      l.execution_id, l.created_at, l.metadata;
end $$;
comment on function cue.alert_notice is 'Returns the body and signing secrets of an alert webhook, or no row.';
