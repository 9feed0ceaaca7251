-- Destinations: the hosts that an account's webhooks go to. URLs with credentials are refused, so the host begins after the slashes.

create or replace function cue.host_of(p_url text) returns text
language sql immutable parallel safe as $$ select lower(substring(p_url from '^[A-Za-z]+://([^/?#\\]*)')) $$;
comment on function cue.host_of is 'Returns the host of a URL in lower case, with its port if it names one.';

-- Attempts are found by the account's newest executions. A lost attempt is not the destination's failure.
create or replace function cue.read_destinations(
  p_account_id uuid, p_from timestamptz default null, p_to timestamptz default null, p_now timestamptz default now()
) returns table (since timestamptz, until timestamptz, hosts int, destinations jsonb)
language plpgsql stable security definer as $$
declare
  v_from timestamptz;
  v_to timestamptz;
  v_width interval;
begin
  select w.since, w.until into v_from, v_to from cue.time_window(p_from, p_to, '24 hours', p_now) w;
  v_width := greatest(date_trunc('minute', (least(v_to, p_now) - v_from) / 24), interval '1 minute');
  return query
  with newest as materialized (
    select e.id, e.cue_id, e.attempts, e.attempt_ms, e.http_status, e.last_attempt_at from cue.executions e
     where e.account_id = p_account_id and e.id >= cue.uuid_v7_floor(v_from) and e.id < cue.uuid_v7_floor(v_to)
     order by e.id desc limit 2000),
  span as materialized (
    select s.since, least(v_to, p_now) as until, greatest(extract(epoch from least(v_to, p_now) - s.since) / 60, 1 / 60.0) as minutes
      from (select case when (select count(*) from newest) = 2000
                        then (select e.created_at from cue.executions e where e.id = (select min(n.id::text)::uuid from newest n))
                        else v_from end as since) s),
  targets as materialized (
    select x.cue_id, cue.host_of(c.callback_url) as host from (select distinct n.cue_id from newest n) x
     cross join lateral (select q.callback_url from cue.cues q where q.id = x.cue_id and q.transport = 'webhook' and q.deleted_at is null limit 1) c),
  -- As in attempt_view, without looking for an execution a second time, or for attempts that it does not have.
  attempts as materialized (
    select t.host, n.cue_id, n.id, 'success'::cue.attempt_result as result, n.attempt_ms as duration_ms, n.http_status, null as error,
           n.last_attempt_at + n.attempt_ms * interval '1 millisecond' as finished_at
      from newest n join targets t using (cue_id) where n.attempt_ms is not null
    union all
    select t.host, n.cue_id, n.id, a.result, a.duration_ms, a.http_status, a.error, a.finished_at
      from (select * from newest w where w.attempts > 0 and w.attempt_ms is null) n join targets t using (cue_id)
     cross join lateral (
       select o.result, o.duration_ms, o.http_status, o.error, o.finished_at from cue.attempts o where o.execution_id = n.id
        order by o.attempt limit 100) a),
  grouped as materialized (
    select a.host, count(distinct a.cue_id) as cues, count(*) as attempts, count(*) filter (where a.result = 'failed') as failures,
           percentile_disc(0.5) within group (order by a.duration_ms) filter (where a.http_status is not null) as p50,
           percentile_disc(0.95) within group (order by a.duration_ms) filter (where a.http_status is not null) as p95,
           (array_agg(jsonb_build_object('at', cue.iso(a.finished_at), 'http_status', a.http_status, 'error', a.error, 'execution_id', a.id)
              order by a.finished_at desc, a.id desc))[1] as last,
           (array_agg(jsonb_build_object('at', cue.iso(a.finished_at), 'http_status', a.http_status, 'error', a.error, 'execution_id', a.id)
              order by a.finished_at desc, a.id desc) filter (where a.result = 'failed'))[1] as last_error
      from attempts a group by a.host),
  most as (select * from grouped g order by g.attempts desc, g.host limit 100),
  volume as (
    select v.host, jsonb_agg(jsonb_build_object('at', cue.iso(v.at), 'succeeded', v.succeeded, 'failed', v.failed) order by v.at) as volume
      from (select a.host, date_bin(v_width, a.finished_at, 'epoch') as at, count(*) filter (where a.result = 'success') as succeeded,
                   count(*) filter (where a.result = 'failed') as failed
              from attempts a join most using (host) group by 1, 2) v group by v.host)
  select s.since, s.until, (select count(*)::int from grouped),
         coalesce((select jsonb_agg(jsonb_build_object('host', m.host, 'cues', m.cues, 'attempts', m.attempts,
                     'per_minute', round(m.attempts / s.minutes, 2), 'failures', m.failures, 'response_p50_ms', m.p50, 'response_p95_ms', m.p95,
                     'last_attempt', m.last, 'last_error', m.last_error, 'volume', v.volume) order by m.attempts desc, m.host)
                     from most m join volume v using (host)), '[]')
    from span s;
end $$;
comment on function cue.read_destinations is
  'Returns up to 100 hosts that an account''s webhooks went to in a time window, the busiest first, by the attempts of at most its newest 2,000 '
  'executions.';
