-- What dashboards show of an account. Everything reads a bounded number of rows, however many there are: the newest executions, cues and alerts.

-- No id is of tomorrow, but partitions are: the bound excludes those created ahead of time.
create or replace function cue.time_window(
  p_from timestamptz, p_to timestamptz, p_length interval, p_now timestamptz, out since timestamptz, out until timestamptz
) language sql immutable as $$
  select greatest(coalesce(p_from, p_now - p_length), 'epoch'), least(p_to, p_now + interval '1 day')
$$;
comment on function cue.time_window is 'Returns the bounds of a time window of this length up to now, unless a request names others.';

create or replace function cue.latest_results(p_cue_ids text[]) returns table (cue_id text, latest jsonb)
language plpgsql stable security definer as $$
begin
  return query
  select u.id, coalesce(l.latest, '[]')
    from unnest(p_cue_ids) as u (id)
   cross join lateral (
     select jsonb_agg(jsonb_build_object('id', e.id, 'status', e.status, 'outcome_state', e.outcome_state,
                                         'scheduled_for', cue.iso(e.scheduled_for)) order by e.id desc) as latest
       from (select x.id, x.status, x.outcome_state, x.scheduled_for from cue.executions x
              where x.cue_id = u.id order by x.id desc limit 20) e) l;
end $$;
comment on function cue.latest_results is 'Returns the results of each cue''s latest 20 executions, newest first.';

-- position() rather than like: the text has no wildcards.
create or replace function cue.find_cues(p_account_id uuid, p_text text) returns setof text
language plpgsql stable security definer as $$
begin
  return query
  select c.id
    from (select q.id, q.name, q.key, q.task, q.tags from cue.cues q
           where q.account_id = p_account_id and q.deleted_at is null order by q.created_at desc, q.id desc limit 10000) c
   where position(lower(p_text) in lower(concat_ws(e'\n', c.name, c.key, c.task, array_to_string(c.tags, e'\n')))) > 0;
end $$;
comment on function cue.find_cues is 'Returns those of an account''s newest 10,000 cues that contain a text, by their ids.';

create or replace function cue.read_attention(p_account_id uuid, p_now timestamptz)
returns table (waiting jsonb, waiting_for_person jsonb, paused jsonb, alerts jsonb, upcoming jsonb)
language plpgsql stable security definer as $$
begin
  return query
  with
  -- By task, from the account's oldest claimable executions.
  tasks as (
    select w.task, count(*)::int as waiting, min(w.claimable_at) as oldest_at, (array_agg(w.id order by w.claimable_at, w.id))[1] as oldest_id
      from (select * from cue.claimable_executions e where e.account_id = p_account_id and e.claimable_at <= p_now limit 500) w
     group by w.task order by oldest_at, w.task limit 20),
  workers as (
    select w.handlers from cue.workers w where w.account_id = p_account_id and w.last_heartbeat > p_now - cue.worker_timeout() limit 1000)
  select (select coalesce(jsonb_agg(jsonb_build_object('task', nullif(t.task, ''), 'waiting', t.waiting, 'since', cue.iso(t.oldest_at),
                   'execution_id', t.oldest_id,
                   'has_worker', exists (select from workers w where w.handlers && array[t.task, '*'] or w.handlers = '{}'))
                   order by t.oldest_at), '[]') from tasks t),
         (select coalesce(jsonb_agg(jsonb_build_object('execution_id', v.id, 'cue_id', v.cue_id, 'cue_name', c.name,
                   'since', cue.iso(coalesce(v.ended_at, v.created_at))) order by v.id), '[]')
            from (select e.id, e.cue_id, e.ended_at, e.created_at from cue.executions e
                   where e.account_id = p_account_id and e.outcome_state = 'verification_pending' order by e.id limit 20) v
           cross join lateral (select q.name from cue.cues q where q.id = v.cue_id and q.deleted_at is null limit 1) c),
         (select coalesce(jsonb_agg(jsonb_build_object('cue_id', p.id, 'cue_name', p.name, 'paused_by', p.paused_by, 'reason', p.pause_reason,
                   'paused_at', cue.iso(p.paused_at)) order by p.paused_at desc), '[]')
            from (select c.id, c.name, c.paused_by, c.pause_reason, c.paused_at from cue.cues c
                   where c.account_id = p_account_id and c.paused_by <> 'user' and c.deleted_at is null order by c.paused_at desc limit 20) p),
         (select coalesce(jsonb_agg(jsonb_build_object('id', a.id, 'alert_type', a.alert_type, 'severity', a.severity, 'message', a.message,
                   'cue_id', a.cue_id, 'execution_id', a.execution_id, 'created_at', cue.iso(a.created_at),
                   'resolved_at', cue.iso(a.resolved_at)) order by a.id desc), '[]')
            from (select o.* from (select * from cue.alert_view w where w.account_id = p_account_id order by w.id desc limit 200) o
                   where not o.acknowledged order by o.id desc limit 20) a),
         (select coalesce(jsonb_agg(jsonb_build_object('cue_id', u.id, 'cue_name', u.name, 'next_run', cue.iso(u.next_run)) order by u.next_run, u.id), '[]')
            from (select c.id, c.name, r.next_run
                    from (select q.id, q.name, q.status from cue.cues q where q.account_id = p_account_id and q.deleted_at is null
                           order by q.created_at desc, q.id desc limit 1000) c
                    join cue.cue_runs r on r.cue_id = c.id
                   where c.status = 'active' and r.next_run < p_now + interval '1 hour' order by r.next_run, c.id limit 200) u);
end $$;
comment on function cue.read_attention is 'Returns what needs attention in an account now, and its next runs.';

-- An execution counts as failed here as in recent_failures.
create or replace function cue.read_overview(p_account_id uuid, p_from timestamptz default null, p_now timestamptz default now())
returns table (since timestamptz, running int, succeeded int, failed int, by_status jsonb, lateness_p50_ms int, lateness_p99_ms int, volume jsonb, per_minute jsonb,
               failing jsonb, waiting jsonb, waiting_for_person jsonb, paused jsonb, alerts jsonb, upcoming jsonb)
language plpgsql stable security definer as $$
declare
  v_from timestamptz := greatest(least(coalesce(p_from, p_now - interval '24 hours'), p_now), p_now - interval '31 days');
  v_width interval := greatest(date_trunc('minute', (p_now - v_from) / 48), interval '1 minute');
begin
  return query
  select f.*, a.* from cue.read_attention(p_account_id, p_now) a cross join (
  with newest as materialized (
    select e.id, e.cue_id, e.status, e.triggered_by, coalesce(e.due_at, e.scheduled_for) as due_at, e.started_at, e.ended_at, e.created_at,
           e.error_message, e.error,
           e.status in ('failed', 'missed', 'outcome_timeout') or e.outcome_success is false as has_failed,
           e.status = 'success' and e.outcome_success is not false as has_succeeded
      from cue.executions e
     where e.account_id = p_account_id and e.id >= cue.uuid_v7_floor(v_from)
     order by e.id desc limit 2000),
  -- The latest executions of a cue up to its last success.
  streaks as (
    select r.cue_id, count(*)::int as failures, max(r.id::text)::uuid as latest_id, min(r.created_at) as first_at
      from (select n.cue_id, n.id, n.created_at, n.has_failed,
                   count(*) filter (where n.has_succeeded) over (partition by n.cue_id order by n.id desc) as successes
              from newest n) r
     where r.has_failed and r.successes = 0 group by r.cue_id order by failures desc, r.cue_id limit 20)
  select case when count(*) = 2000 then min(n.created_at) else v_from end,
         (count(*) filter (where n.ended_at is null))::int, (count(*) filter (where n.has_succeeded))::int,
         (count(*) filter (where n.has_failed))::int,
         (select coalesce(jsonb_object_agg(b.status, b.executions), '{}')
            from (select e.status, count(*) as executions from newest e group by e.status) b),
         (percentile_disc(0.5) within group (order by n.late_ms))::int, (percentile_disc(0.99) within group (order by n.late_ms))::int,
         (select coalesce(jsonb_agg(jsonb_build_object('at', cue.iso(m.at), 'succeeded', m.succeeded, 'failed', m.failed,
                   'running', m.executions - m.succeeded - m.failed) order by m.at), '[]')
            from (select date_bin(v_width, e.created_at, 'epoch') as at, count(*) as executions, count(*) filter (where e.has_succeeded) as succeeded,
                         count(*) filter (where e.has_failed) as failed
                    from newest e group by 1) m),
         (select coalesce(jsonb_agg(jsonb_build_object('at', cue.iso(m.at), 'succeeded', m.succeeded, 'failed', m.failed) order by m.at), '[]')
            from (select date_trunc('minute', e.ended_at) as at, count(*) filter (where e.has_succeeded) as succeeded,
                         count(*) filter (where e.has_failed) as failed
                    from newest e where e.ended_at > p_now - interval '1 hour' group by 1) m),
         (select coalesce(jsonb_agg(jsonb_build_object('cue_id', s.cue_id, 'cue_name', c.name, 'failures', s.failures,
                   'since', cue.iso(s.first_at), 'execution_id', s.latest_id, 'error', left(coalesce(l.error_message, l.error), 300))
                   order by s.failures desc, s.cue_id), '[]')
            from streaks s join newest l on l.id = s.latest_id
           cross join lateral (select q.name from cue.cues q where q.id = s.cue_id and q.deleted_at is null limit 1) c)
    from (select e.*, case when e.triggered_by = 'schedule' and e.started_at is not null
                           then greatest(date_part('epoch', e.started_at - e.due_at) * 1000, 0)::int end as late_ms from newest e) n) f;
end $$;
comment on function cue.read_overview is 'Returns an account''s figures since p_from, at most 31 days ago, what needs attention, and its next runs.';
