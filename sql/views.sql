-- Views for the API and for people. Columns have the API's field names, plus account_id for filtering. No view contains a secret. Objects are
-- jsonb, so that people can group by them and search in them; json would take a quarter less of a cue's read.

create or replace view cue.cue_run_view as
select cue_id, account_id, next_run, case when next_run is not null then coalesce(next_slot, next_run) end as next_slot, last_run, run_count, fired_count,
       version - coalesce(recomputed, 0) as version, version as revision, last_slot, greatest(failed_deliveries, failed_outcomes) as failures
  from cue.cue_runs;
comment on view cue.cue_run_view is 'What changes when a cue runs, as the API shows it.';

-- The limit makes the planner look up each cue's row of runs: among many cues, it would otherwise read all of them to order a few thousand.
create or replace view cue.cue_view as
select c.id, c.account_id, c.name, c.description, c.key, c.tags, c.managed_by, c.status, c.paused_at, c.paused_by, c.pause_reason, c.paused_until,
       case c.status when 'completed' then c.completed_reason end as completed_reason, c.transport,
       case when c.schedule_type is not null then
         jsonb_strip_nulls(jsonb_build_object('type', c.schedule_type, 'cron', c.cron, 'at', cue.iso(c.at), 'timezone', c.timezone))
           || coalesce(c.schedule_rules, '{}') end as schedule,
       jsonb_build_object('url', c.callback_url, 'method', c.callback_method, 'headers', case when c.callback_headers = '{}' then '{}' else
         (select jsonb_object_agg(h.name, cue.mask()) from jsonb_object_keys(c.callback_headers) as h (name)) end) as callback,
       coalesce(c.payload, (select p.body from cue.payloads p where p.id = c.payload_id)) as payload,
       jsonb_build_object('max_attempts', c.retry_max_attempts, 'backoff_minutes', c.retry_backoff_minutes) ||
         case when c.retry_on_worker_failure is null then '{}' else jsonb_build_object('on_worker_failure', c.retry_on_worker_failure) end as retry,
       jsonb_build_object('email', c.on_failure_email, 'webhook', c.on_failure_webhook, 'pause', c.on_failure_pause) ||
         case when c.on_failure_pause_after is null then '{}' else jsonb_build_object('pause_after', c.on_failure_pause_after) end as on_failure,
       case when c.timeout_seconds is not null then
         jsonb_build_object('timeout_seconds', c.timeout_seconds, 'outcome_deadline_seconds', c.outcome_deadline_seconds,
           'claim_timeout_seconds', c.claim_timeout_seconds, 'await_outcome', coalesce(c.await_outcome, false)) end as delivery,
       case when c.alert_consecutive_failures is not null then
         jsonb_build_object('consecutive_failures', c.alert_consecutive_failures,
           'missed_window_multiplier', c.alert_missed_window_multiplier) ||
         case when c.alert_channels is null then '{}' else jsonb_build_object('channels', c.alert_channels) end end as alerts,
       c.catch_up, c.overlap, c.gate, case when c.after is not null then cue.show_parents(c.after) end as after, c.approval, c.template,
       case when c.verification_mode is not null then jsonb_build_object('mode', c.verification_mode) end as verification,
       r.next_run, r.next_slot, r.last_run, r.run_count, r.fired_count, c.created_at, c.updated_at, r.version, r.revision, r.last_slot,
       c.await_outcome as await_outcome_set, r.failures
  from cue.cues c cross join lateral (select q.* from cue.cue_run_view q where q.cue_id = c.id limit 1) r
 where c.deleted_at is null;
comment on view cue.cue_view is 'Cues as the API shows them.';

create or replace view cue.created_cue_view as
select false as is_locked, null::text as taken_by, null::text as message, v.* from cue.cue_view v;
comment on view cue.created_cue_view is 'New cues, or why they were not created: the rows of create_each_cue.';

-- json rather than jsonb: data is written once, and nothing searches in it.
create or replace view cue.cue_event_view as
select v.account_id, v.id, v.key, v.tags, to_json(d) as data
  from cue.cue_view v
 cross join lateral (
   select v.id, v.name, v.description, v.key, v.tags, v.managed_by, v.status, cue.iso(v.paused_at) as paused_at, v.paused_by, v.pause_reason,
          cue.iso(v.paused_until) as paused_until, v.completed_reason, v.transport, v.schedule, v.callback - 'headers' as callback, v.retry, v.on_failure,
          v.delivery, v.alerts, v.catch_up, v.overlap, v.gate, v.after, v.approval, v.template, v.verification, cue.iso(v.next_run) as next_run,
          cue.iso(v.next_slot) as next_slot, cue.iso(v.last_run) as last_run, v.run_count, v.fired_count, cue.iso(v.created_at) as created_at,
          cue.iso(v.updated_at) as updated_at, v.version, v.failures) d;
comment on view cue.cue_event_view is 'Cues as events show them, without payload and headers.';

-- With a cue's id, both are lookups. A former payload that a cue has again is in both.
create or replace view cue.stored_payloads as
select payload_ref as id, id as cue_id, payload as body from cue.cues where payload is not null and payload_ref is not null
union all
select id, cue_id, body from cue.payloads;
comment on view cue.stored_payloads is 'Payloads that executions refer to, in cues and in payloads.';

-- The limit makes the planner look up each execution's cue by id; a join would read all cues for the few executions of a list. metadata and
-- artifacts are text beside the outcome: parsing them is slow and loses digits of long numbers.
create or replace view cue.execution_view as
select e.id, e.account_id, e.cue_id, c.name as cue_name, e.transport, e.task, e.scheduled_for, coalesce(e.due_at, e.scheduled_for) as due_at, e.status,
       e.outcome_state, e.outcome_success, e.triggered_by, e.replayed_from, e.attempts, e.http_status, e.error_message, e.started_at, e.last_attempt_at,
       e.delivered_at,
       case when e.status = 'retrying' then coalesce(e.attempt_due_at, e.claimable_at) end as next_retry,
       e.claimed_by_worker, e.claimed_at, e.last_heartbeat_at, e.lease_expires_at, e.ended_at, e.created_at, e.updated_at,
       -- Only members that were given; nulls inside them stay.
       case when e.outcome_recorded_at is not null then
         jsonb_strip_nulls(jsonb_build_object(
             'success', e.outcome_success, 'result', e.result, 'error', e.error, 'external_id', e.external_id, 'result_url', e.result_url,
             'result_ref', e.result_ref, 'result_type', e.result_type, 'summary', e.summary, 'recorded_at', cue.iso(e.outcome_recorded_at),
             'verification_reason', e.verification_reason, 'rejected_at', cue.iso(e.rejected_at))) end as outcome,
       case when e.outcome_recorded_at is null then '[]' else (
         select coalesce(jsonb_agg(jsonb_build_object('amount', s.amount, 'unit', s.unit) order by s.unit), '[]') from (
           select k.unit, trim_scale(sum(k.amount))::text as amount from cue.costs k where k.execution_id = e.id group by k.unit) s) end as costs,
       nullif(e.metadata, 'null')::text as metadata, nullif(e.artifacts, 'null')::text as artifacts,
       e.result_type,
       e.external_id is not null or e.result_url is not null or e.result_ref is not null
         or coalesce(jsonb_array_length(e.artifacts), 0) > 0 as has_evidence,
       coalesce(e.payload, (select p.body from cue.stored_payloads p where p.id = e.payload_id and p.cue_id = e.cue_id limit 1)) as payload, e.response_body,
       c.tags as cue_tags, e.error as reported_error,
       (select d.error_group from cue.dead_letters d where d.execution_id = e.id) as error_group,
       case when e.attempt_due_at is not null or e.claimable_at is not null then
         (select cue.describe_held(h, coalesce(e.attempt_due_at, e.claimable_at)) from cue.held_executions h where h.execution_id = e.id) end as held,
       e.held_ms, e.missed_reason, coalesce(e.parents, '[]') as parents,
       (select cue.describe_approval(a) from cue.approvals a
         where a.execution_id = e.id and (e.held_ms is not null or 'infinity' in (e.attempt_due_at, e.claimable_at))) as approval,
       coalesce(e.template_truncated, false) as template_truncated,
       case when e.is_fixed then (select f.template_values::text from cue.fixed_requests f where f.execution_id = e.id) end as template_values
  from cue.executions e
 cross join lateral (select q.name, q.tags from cue.cues q where q.id = e.cue_id and q.deleted_at is null limit 1) c;
comment on view cue.execution_view is 'Executions as the API shows them.';

-- The same columns, found by dead_letters: the limit keeps the planner from searching all executions for them.
create or replace view cue.dead_execution_view as
select d.execution_id as id, d.account_id, d.cue_id, e.cue_name, e.transport, e.task, e.scheduled_for, e.due_at, e.status, e.outcome_state,
       e.outcome_success, e.triggered_by, e.replayed_from, e.attempts, e.http_status, e.error_message, e.started_at, e.last_attempt_at,
       e.delivered_at, e.next_retry, e.claimed_by_worker, e.claimed_at, e.last_heartbeat_at, e.lease_expires_at, e.ended_at, e.created_at,
       e.updated_at, e.outcome, e.costs, e.metadata, e.artifacts, e.result_type, e.has_evidence, e.payload, e.response_body, e.cue_tags, e.reported_error,
       d.error_group, e.held, e.held_ms, e.missed_reason, e.approval, e.parents, e.template_truncated, e.template_values
  from cue.dead_letters d
 cross join lateral (select * from cue.execution_view v where v.id = d.execution_id limit 1) e;
comment on view cue.dead_execution_view is 'Executions that failed, were missed or timed out, and were neither replayed nor dismissed.';

-- turn is what they are ordered by, to compare executions of several queries. Few columns: a query that locks copies them for each row.
create or replace view cue.claimable_executions as
select e.id, e.account_id, e.cue_id, coalesce(e.task, '') as task, e.claimable_at, e.claimable_at as turn
  from cue.executions e
 where e.claimable_at is not null and (select c.deleted_at is null from cue.cues c where c.id = e.cue_id)
 order by e.claimable_at, e.id;
comment on view cue.claimable_executions is 'Executions that workers can claim, now or later, in the order in which they get them; task is empty where there is none.';

create or replace view cue.new_executions as
select id, account_id, cue_id, transport, status, triggered_by, replayed_from, scheduled_for, due_at, payload, payload_id, task, attempts, started_at,
       last_attempt_at, flight_id, attempt_due_at, claimable_at, claim_deadline_at, error_message, ended_at, created_at, updated_at, lineage_id, parents, is_fixed
  from cue.executions;
comment on view cue.new_executions is 'The columns that a new execution sets. Executions are inserted into it, as rows of cue.new_execution.';

create or replace view cue.operation_view as
select id, account_id, type, name, status, total, succeeded + failed + skipped as done, succeeded, failed, skipped, created_by, created_at, ended_at,
       errors
  from cue.operations;
comment on view cue.operation_view is 'Bulk operations as the API shows them.';

create or replace view cue.attempt_view as
select execution_id, account_id, attempt, started_at, finished_at, result, http_status, error, duration_ms, worker_id, response_headers, response_body
  from cue.attempts
union all
select id, account_id, 1, last_attempt_at, last_attempt_at + attempt_ms * interval '1 millisecond', 'success'::cue.attempt_result, http_status, null,
       attempt_ms, null, null, null
  from cue.executions where attempt_ms is not null;
comment on view cue.attempt_view is 'The attempt log: attempts, and the first attempts that succeeded, which are kept in their executions.';

create or replace function cue.runs_after(p_execution_id uuid) returns jsonb
language sql stable security definer as $$
  select coalesce(jsonb_agg(jsonb_build_object('cue_id', s.follower_id, 'cue_key', c.key, 'execution_id', e.id, 'status', e.status)
           order by coalesce(c.key, s.follower_id)), '[]')
    from cue.signals s
   cross join lateral (select q.key from cue.cues q where q.id = s.follower_id limit 1) c
    left join lateral (select q.id, q.status from cue.executions q where q.id = s.spent_by limit 1) e on true
   where s.execution_id = p_execution_id
$$;
comment on function cue.runs_after is 'Returns the cues that an execution has signalled, each with the run that its signal was spent on, as JSON.';

create or replace view cue.execution_detail_view as
select e.*,
       (select coalesce(jsonb_agg(to_jsonb(a) order by a.attempt), '[]') from (
          select a.attempt, cue.iso(a.started_at) as started_at, cue.iso(a.finished_at) as finished_at, a.result, a.http_status, a.error,
                 a.duration_ms, a.worker_id, a.response_headers, a.response_body
            from cue.attempt_view a where a.execution_id = e.id) a) as attempt_log,
       cue.runs_after(e.id) as followers
  from cue.execution_view e;
comment on view cue.execution_detail_view is 'Executions with their attempts and the runs of followers, in one read.';

create or replace view cue.missed_view as
select cue_id, account_id, id, first, last, count, policy, reason, recorded_at from cue.missed_slots;
comment on view cue.missed_view is 'Slots that did not run.';

create or replace view cue.execution_brief_view as
select e.id, e.account_id, e.cue_id, e.status, cue.iso(e.scheduled_for) as scheduled_for, e.attempts, e.http_status,
       cue.iso(e.started_at) as started_at, cue.iso(e.delivered_at) as delivered_at,
       case when e.outcome_recorded_at is not null then jsonb_build_object('success', e.outcome_success, 'result', e.result,
         'recorded_at', cue.iso(e.outcome_recorded_at)) end as outcome
  from cue.executions e;
comment on view cue.execution_brief_view is 'Executions in brief, without their cue''s name.';

create or replace view cue.execution_item_view as
select v.id, v.cue_id, v.cue_name, cue.iso(v.scheduled_for) as scheduled_for, cue.iso(v.due_at) as due_at, v.status, v.outcome_state, v.outcome_success,
       v.triggered_by, v.replayed_from, v.attempts, v.http_status, v.error_message, cue.iso(v.started_at) as started_at,
       cue.iso(v.last_attempt_at) as last_attempt_at, cue.iso(v.delivered_at) as delivered_at, cue.iso(v.next_retry) as next_retry,
       v.claimed_by_worker, cue.iso(v.claimed_at) as claimed_at, cue.iso(v.last_heartbeat_at) as last_heartbeat_at,
       cue.iso(v.lease_expires_at) as lease_expires_at, v.outcome, v.costs, v.metadata, v.artifacts, cue.iso(v.created_at) as created_at,
       cue.iso(v.updated_at) as updated_at, v.held, v.held_ms, v.missed_reason, v.approval, v.parents, v.template_truncated
  from cue.execution_view v;
comment on view cue.execution_item_view is 'Executions as lists show them, with instants as text; metadata and artifacts are beside the outcome.';

create or replace function cue.latest_executions(p_cue_id text) returns table (executions json, execution_total bigint)
language sql stable as $$
  select x.latest, case when x.found < 10 then x.found
                        else (select count(*) from (
                          select from cue.execution_brief_view e where e.cue_id = p_cue_id limit 10000) e) end
    from (
      select coalesce(json_agg(e order by e.id desc), '[]') as latest, count(*) as found from (
        select v.id, v.cue_id, v.cue_name, v.scheduled_for, v.due_at, v.status, v.outcome_state, v.outcome_success, v.triggered_by, v.replayed_from,
               v.attempts, v.http_status, v.error_message, v.started_at, v.last_attempt_at, v.delivered_at, v.next_retry, v.claimed_by_worker, v.claimed_at,
               v.last_heartbeat_at, v.lease_expires_at, '{"result": null}'::jsonb || v.outcome as outcome, v.costs, v.metadata, v.artifacts, v.created_at,
               v.updated_at, v.held, v.held_ms, v.missed_reason, v.approval, v.parents, v.template_truncated
          from cue.execution_item_view v where v.cue_id = p_cue_id order by v.id desc limit 10) e) x
$$;
comment on function cue.latest_executions is 'Returns a cue''s latest ten executions as JSON, and their number, counted up to 10,000.';

create or replace function cue.latest_missed(p_cue_id text) returns table (missed jsonb)
language sql stable as $$
  select coalesce(jsonb_agg(to_jsonb(m) - 'id' order by m.id desc), '[]') from (
    select m.id, cue.iso(m.first) as first, cue.iso(m.last) as last, m.count, m.policy, m.reason, cue.iso(m.recorded_at) as recorded_at
      from cue.missed_view m where m.cue_id = p_cue_id order by m.id desc limit 10) m
$$;
comment on function cue.latest_missed is 'Returns a cue''s latest ten missed slots as JSON.';

create or replace function cue.latest_signals(p_cue_id text) returns table (followers jsonb, pending_signals jsonb)
language sql stable security definer as $$
  select coalesce((select jsonb_agg(coalesce(c.key, c.id) order by coalesce(c.key, c.id))
                     from cue.cue_parents p cross join lateral (select q.id, q.key from cue.cues q where q.id = p.cue_id limit 1) c
                    where p.parent_id = p_cue_id), '[]'),
         coalesce((select jsonb_agg(jsonb_build_object(
                     'cue_id', s.parent_id, 'cue_key', (select q.key from cue.cues q where q.id = s.parent_id), 'execution_id', s.execution_id,
                     'signalled_at', cue.iso(s.signalled_at), 'expires_at', cue.iso(s.expires_at)) order by s.id desc)
                     from cue.cue_parents p
                    cross join lateral (
                      select * from cue.signals q where q.follower_id = p_cue_id and q.parent_id = p.parent_id and q.spent_at is null
                       order by q.id desc limit 1) s
                    where p.cue_id = p_cue_id), '[]')
$$;
comment on function cue.latest_signals is 'Returns the cues that follow a cue, and the latest signal of each cue that it follows, unless it is spent, as JSON.';

create or replace view cue.cue_detail_view as
select c.*, e.executions, e.execution_total, m.missed, s.followers, s.pending_signals
  from cue.cue_view c
 cross join lateral cue.latest_executions(c.id) e
 cross join lateral cue.latest_missed(c.id) m
 cross join lateral cue.latest_signals(c.id) s;
comment on view cue.cue_detail_view is 'Cues with their latest executions and missed slots, in one read.';

create or replace view cue.chain_view as
select p.account_id, p.parent_id, a.key as parent_key, p.cue_id, c.key as cue_key, c.status, c.after ->> 'when' as "when", c.after ->> 'mode' as mode,
       c.after ->> 'within' as within, c.after ->> 'wait' as wait, s.pending, s.latest_at
  from cue.cue_parents p
 cross join lateral (select q.key from cue.cues q where q.id = p.parent_id limit 1) a
 cross join lateral (select q.key, q.status, q.after from cue.cues q where q.id = p.cue_id limit 1) c
 cross join lateral (
   select count(*) as pending, max(q.signalled_at) as latest_at from cue.signals q
    where q.follower_id = p.cue_id and q.parent_id = p.parent_id and q.spent_at is null) s;
comment on view cue.chain_view is 'Which cue follows which, and the signals of one that the other has not spent.';

-- For people in psql -----------------------------------------------------------------------------------------------------------------

create or replace view cue.unserved_periods as
select null::uuid as account_id, from_at, until_at, 'service_away'::cue.missed_reason as reason from cue.outages
union all
select account_id, from_at, until_at, 'held' from cue.holds where catches_up;
comment on view cue.unserved_periods is 'Periods in which due slots were not taken: outages and long holds.';

create or replace view cue.current_holds as
select h.account_id, a.email, h.reason, h.held_by as by, h.from_at as since
  from cue.holds h left join cue.accounts a on a.id = h.account_id where h.until_at = 'infinity';
comment on view cue.current_holds is 'What the operator holds: the service (without an account), and accounts.';

create or replace view cue.due_cues as
select c.id, c.account_id, c.name, c.transport, r.next_run, now() - r.next_run as late_by
  from cue.cue_runs r join cue.cues c on c.id = r.cue_id
 where r.next_run <= now();
comment on view cue.due_cues is 'Due cues: their slot should have fired by now.';

create or replace view cue.stuck_executions as
select s.id, s.account_id, s.cue_id, s.status, s.attempts, s.since, now() - s.since as stuck_for, s.why
  from (
    select id, account_id, cue_id, status, attempts, attempt_due_at as since, 'attempt overdue' as why
      from cue.executions where attempt_due_at < now() - interval '1 minute'
    union all
    select id, account_id, cue_id, status, attempts, claim_deadline_at, 'claim overdue'
      from cue.executions where claim_deadline_at < now() - interval '1 minute'
    union all
    select id, account_id, cue_id, status, attempts, lease_expires_at, 'lease expired'
      from cue.executions where lease_expires_at < now() - interval '1 minute'
    union all
    select id, account_id, cue_id, status, attempts, outcome_deadline_at, 'outcome overdue'
      from cue.executions where outcome_deadline_at < now() - interval '1 minute'
    union all
    select e.id, e.account_id, e.cue_id, e.status, e.attempts, f.lease_expires_at, 'flight lease expired'
      from cue.flights f join cue.executions e on e.id = any (f.execution_ids) and e.flight_id = f.id
     where f.lease_expires_at < now() - interval '15 seconds') s
  join cue.cues c on c.id = s.cue_id
 where c.deleted_at is null;
comment on view cue.stuck_executions is 'Executions that an engine should have processed by now. Empty while an engine is alive and keeps up.';

create or replace view cue.queue_depth as select queue, waiting, oldest from cue.waiting_work(now(), null);
comment on view cue.queue_depth is
  'Waiting and running work, and since when the oldest; for retrying and deferred, when the first is due. delivering counts whole flights, '
  'including attempts that have ended.';

create or replace view cue.waiting_retries as
select count(*) as waiting, min(at) as first_at, max(at) as last_at from (
  select attempt_due_at as at from cue.executions where attempt_due_at < 'infinity' and attempts > 0
  union all
  select claimable_at from cue.executions where claimable_at < 'infinity' and status = 'retrying') r;
comment on view cue.waiting_retries is 'Retries that wait, and when the first and the last of them are due.';

create or replace view cue.calendar_view as
select account_id, name, description, dates, ranges, created_at, updated_at, revision from cue.calendars;
comment on view cue.calendar_view is 'Calendars as the API shows them.';

create or replace view cue.cue_health as
select c.id, c.account_id, c.name, c.status, r.next_run, r.last_run, r.run_count, r.failed_deliveries, h.runs_24h, h.failures_24h,
       r.failed_outcomes, (select count(*) from cue.alerts l where l.cue_id = c.id and l.acknowledged_at is null) as open_alerts
  from cue.cues c join cue.cue_runs r on r.cue_id = c.id
 cross join lateral (
   select count(*) as runs_24h,
          count(*) filter (where e.status in ('failed', 'missed', 'outcome_timeout') or not e.outcome_success) as failures_24h
     from cue.executions e where e.cue_id = c.id and e.id > cue.uuid_v7_floor(now() - interval '24 hours')) h
 where c.deleted_at is null;
comment on view cue.cue_health is
  'Health of each cue: executions and failures of the last 24 hours, consecutive failures, open alerts. Filter by account_id; otherwise '
  'every cue is read.';

create or replace view cue.account_usage as
select a.id as account_id, a.email, a.plan, cue.executions_used(a.id) as executions_used, p.executions_per_month,
       (select count(*) from cue.cues c where c.account_id = a.id and c.deleted_at is null and c.status in ('active', 'paused')
           and not c.memory_check) as cues_used,
       p.cues, a.limit_reached_at
  from cue.accounts a join cue.plans q using (plan) cross join lateral jsonb_populate_record(q, a.limits) p;
comment on view cue.account_usage is 'Each account''s use of its plan in the current UTC month.';

create or replace view cue.recent_failures as
select e.id, e.account_id, e.cue_id, c.name as cue_name, e.status, e.scheduled_for, e.ended_at, e.attempts, e.http_status,
       coalesce(e.error_message, e.error) as error_message, e.outcome_state
  from cue.executions e join cue.cues c on c.id = e.cue_id
 where e.id > cue.uuid_v7_floor(now() - interval '24 hours')
   and (e.status in ('failed', 'missed', 'outcome_timeout') or not e.outcome_success) and c.deleted_at is null
 order by e.id desc;
comment on view cue.recent_failures is
  'Executions of the last 24 hours that failed, were missed, timed out or were reported as failed, newest first.';

-- Accounts ---------------------------------------------------------------------------------------------------------------------------

create or replace view cue.account_view as
select a.id, a.email, a.plan, a.webhook_secret is not null as has_webhook_secret, a.memory_block_enabled, a.alert_webhook_url,
       a.webhook_authorization, case when exists (select from cue.event_subscribers s where s.account_id = a.id and s.source = 'account') then 'all' else 'default' end as events,
       a.approvals_by_link, a.created_at,
       (select count(*) from cue.cues c where c.account_id = a.id and c.deleted_at is null and c.status in ('active', 'paused')
           and not c.memory_check)
         as active_cues,
       p.cues as active_cue_limit, p.executions_per_month as monthly_execution_limit, p.requests_per_minute as rate_limit_per_minute,
       (select k.prefix from cue.api_keys k where k.account_id = a.id and k.revoked_at is null
         order by k.is_default desc, k.created_at desc, k.id desc limit 1) as api_key_prefix
  from cue.accounts a join cue.plans q using (plan) cross join lateral jsonb_populate_record(q, a.limits) p;
comment on view cue.account_view is 'Accounts as the API shows them. api_key_prefix is the default key''s, or the newest one''s.';

create or replace view cue.account_limits as select id, email, plan, limits from cue.accounts;
comment on view cue.account_limits is 'Accounts with their plans and the limits of their own, which set_plan and set_limits change.';

create or replace view cue.key_view as
select id, account_id, prefix, label, scopes::text[] as scopes, created_by, is_default, created_at, last_used_at, revoked_at from cue.api_keys;
comment on view cue.key_view is 'API keys as the API shows them.';

create or replace view cue.session_view as
select s.id, s.account_id, coalesce(s.scopes, enum_range(null::cue.key_scope))::text[] as scopes, s.key_id, k.label as key_label, s.ip, s.user_agent,
       s.created_at, s.expires_at
  from cue.sessions s left join cue.api_keys k on k.id = s.key_id;
comment on view cue.session_view is 'Sessions as the API shows them, including those that have expired since the last pruning.';

create or replace view cue.audit_view as
select id, account_id, event, actor, ip, detail, created_at, seq from cue.audit_events;
comment on view cue.audit_view is 'Changes to accounts, keys, secrets and cues, as the API shows them.';

create or replace view cue.worker_view as
select worker_id, account_id, handlers, last_heartbeat, registered_since from cue.workers;
comment on view cue.worker_view is 'Workers as their heartbeats describe them.';

create or replace view cue.alert_view as
select l.id, l.account_id, l.cue_id, l.execution_id, l.alert_type, l.severity, l.message, l.metadata, l.acknowledged_at is not null as acknowledged,
       l.acknowledged_at, l.resolved_at, l.resolution, l.snoozed_until,
       (select coalesce(jsonb_agg(jsonb_build_object('channel', h.name, 'kind', n.kind, 'state', n.state, 'tries', n.tries, 'http_status', n.http_status,
                 'error', n.error, 'sent_at', cue.iso(n.sent_at)) order by n.id), '[]')
          from cue.notices n join cue.channels h on h.id = n.channel_id where n.alert_id = l.id) as notices, l.created_at
  from cue.alerts l join cue.cues c on c.id = l.cue_id
 where c.deleted_at is null;
comment on view cue.alert_view is 'Alerts as the API shows them.';

create or replace view cue.channel_view as
select account_id, name, type, cue.mask_target(type, target) as target, types::text[] as types, severity, tags, is_default as "default", enabled, created_at, updated_at
  from cue.channels;
comment on view cue.channel_view is 'Channels as the API shows them.';

create or replace view cue.event_endpoint_view as
select id, account_id, url, types::text[] as types, tag, cue_ids, description, status, failing_since, tries, http_status, error,
       case when tries > 0 then due_at end as next_try_at, delivered_at, created_at, disabled_at
  from cue.event_endpoints;
comment on view cue.event_endpoint_view is 'Event endpoints as the API shows them, without their secrets.';

create or replace view cue.ticket_view as
select id as ticket_id, account_id, subject, severity, type, status, created_at, updated_at, message, issue_url from cue.tickets;
comment on view cue.ticket_view is 'Support tickets as the API shows them, with the text and tracker issue for those who answer them.';

create or replace view cue.gate_view as
select g.account_id, g.key, g.parallel, g.rate, g.per, g.ordered as "order", g.on_failure,
       case when g.breaker_failures is not null then jsonb_build_object(
         'failures', g.breaker_failures, 'open_seconds', g.breaker_open_seconds, 'max_open_seconds', g.breaker_max_open_seconds) end as breaker,
       case when g.budget_limit is not null then jsonb_build_object(
         'limit', g.budget_limit::text, 'unit', g.budget_unit, 'per', g.budget_period, 'timezone', g.budget_timezone,
         'reserve', g.budget_reserve::text) end as budget,
       g.max_wait, g.description, g.paused_at, g.paused_by, g.pause_reason, g.paused_until, g.created_at, g.updated_at
  from cue.gates g;
comment on view cue.gate_view is 'Gates as the API shows them, without their state.';
