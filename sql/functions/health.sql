-- Service health: a few index reads of at most 10,000 entries each, so that the cost stays low whatever the backlog.

create or replace function cue.require_writable() returns void
language plpgsql stable as $$
begin
  if current_setting('transaction_read_only')::boolean then
    raise read_only_sql_transaction using message = 'the database is read-only';
  end if;
end $$;
comment on function cue.require_writable is 'Raises an error if the database is read-only, as in the first seconds after a failover.';

create or replace function cue.database_time() returns float8
language sql volatile security definer as $$
  select extract(epoch from clock_timestamp())::float8 * 1000
$$;
comment on function cue.database_time is 'Returns the time now in epoch milliseconds, with fractions.';

create or replace function cue.service_health(p_now timestamptz default now())
returns table (
  last_seen_at timestamptz, lateness_ms int, replicas int, pending int, retrying int, delivering int, pending_worker int,
  oldest_pending_at timestamptz, active_workers int, last_heartbeat timestamptz
)
language sql stable security definer as $$
  with due as materialized (select next_run from cue.cue_runs where next_run <= p_now order by next_run limit cue.counted_to()),
  waiting as materialized (
    select attempt_due_at, attempts from cue.executions where attempt_due_at is not null order by attempt_due_at limit cue.counted_to()),
  claimable as materialized (select from cue.executions where claimable_at <= p_now limit cue.counted_to()),
  leased as materialized (select from cue.executions where lease_expires_at is not null limit cue.counted_to()),
  engines as (
    select max(n.last_seen_at) as last_seen_at, max(n.lateness_ms) filter (where s.lives) as lateness_ms, count(*) filter (where s.lives) as replicas
      from cue.engines n
     cross join lateral (select n.last_seen_at > p_now - cue.engine_timeout() and n.stopped_at is null as lives) s),
  active as materialized (select from cue.workers where last_heartbeat > p_now - cue.worker_timeout() limit cue.counted_to())
  select n.last_seen_at, n.lateness_ms, n.replicas::int,
         (select count(*) from due)::int + (select count(*) from waiting where attempts = 0 and attempt_due_at <= p_now)::int,
         (select count(*) from waiting where attempts > 0)::int,
         (select coalesce(sum(cardinality(execution_ids)), 0) from cue.flights)::int + (select count(*) from leased)::int,
         (select count(*) from claimable)::int,
         least((select min(next_run) from due), (select min(attempt_due_at) from waiting where attempt_due_at <= p_now)),
         (select count(*) from active)::int, (select max(w.last_heartbeat) from cue.workers w)
    from engines n cross join cue.require_writable()
$$;
comment on function cue.service_health is
  'Returns live engines and workers, and queue lengths, counted up to 10,000; delivering counts whole flights and claims.';
