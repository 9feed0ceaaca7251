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

-- A transaction that has written holds the lock on its own number, which the rows that it has locked carry as xmax.
create or replace function cue.lockers() returns table (transaction xid, pid int, application text, since timestamptz)
language sql stable security definer as $$
  select l.transactionid, l.pid, a.application_name, a.xact_start
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
   where l.locktype = 'transactionid' and l.mode = 'ExclusiveLock' and l.granted
$$;
comment on function cue.lockers is 'Returns the open transactions that may hold locks on rows, and whose they are, as far as the owner may know.';

create or replace function cue.service_health(p_now timestamptz default now())
returns table (
  last_seen_at timestamptz, lateness_ms int, replicas int, pending int, retrying int, delivering int, pending_worker int,
  oldest_pending_at timestamptz, active_workers int, last_heartbeat timestamptz
)
language sql stable security definer as $$
  with due as materialized (
    select r.next_run, r.account_id, r.cue_id, r.transport = 'webhook' and not r.tracked as takes_room, r.xmax as locker
      from cue.cue_runs r where r.next_run <= p_now order by r.next_run limit cue.counted_to()),
  waiting as materialized (
    select e.attempt_due_at, e.attempts, e.account_id, e.xmax as locker
      from cue.executions e where e.attempt_due_at is not null order by e.attempt_due_at limit cue.counted_to()),
  claimable as materialized (select from cue.executions where claimable_at <= p_now limit cue.counted_to()),
  leased as materialized (select from cue.executions where lease_expires_at is not null limit cue.counted_to()),
  live as materialized (select * from cue.engines n where n.last_seen_at > p_now - cue.engine_timeout() and n.stopped_at is null),
  engines as (
    select (select max(n.last_seen_at) from cue.engines n) as last_seen_at, max(l.lateness_ms) as lateness_ms, count(*) as replicas from live l),
  -- What engines can't take: because it is held, for want of room, because it fails by itself, or because somebody's transaction holds its row.
  withheld as materialized (
    select array(select unnest(n.full_accounts) from live n) as accounts, array(select unnest(n.passed_over) from live n) as cues,
           array(select k.transaction from cue.lockers() k where k.application is distinct from 'pgcue engine') as lockers,
           cue.is_held(null) as all_held, array(select h.account_id from cue.holds h where h.until_at = 'infinity') as held),
  oldest as materialized (
    select least(
             (select min(d.next_run) from due d
               where not (d.takes_room and d.account_id = any (h.accounts)) and (d.account_id = any (h.held)) is not true and d.cue_id <> all (h.cues) and d.locker <> all (h.lockers)),
             (select min(w.attempt_due_at) from waiting w
               where w.attempt_due_at <= p_now and (w.account_id = any (h.accounts || h.held)) is not true and w.locker <> all (h.lockers))) as at
      from withheld h where not h.all_held),
  active as materialized (select from cue.workers where last_heartbeat > p_now - cue.worker_timeout() limit cue.counted_to())
  select n.last_seen_at, n.lateness_ms, n.replicas::int,
         (select count(*) from due)::int + (select count(*) from waiting where attempts = 0 and attempt_due_at <= p_now)::int,
         (select count(*) from waiting where attempts > 0)::int,
         (select coalesce(sum(cardinality(execution_ids)), 0) from cue.flights)::int + (select count(*) from leased)::int,
         (select count(*) from claimable)::int,
         o.at, (select count(*) from active)::int, (select max(w.last_heartbeat) from cue.workers w)
    from engines n left join oldest o on true cross join cue.require_writable()
$$;
comment on function cue.service_health is
  'Returns live engines and workers, and queue lengths, counted up to 10,000; delivering counts whole flights and claims. oldest_pending_at is that of '
  'work that could be taken.';

-- A backlog that is being worked off is not stalled, and neither is what an outage has left.
create or replace function cue.last_taken_at(p_now timestamptz default now()) returns timestamptz
language plpgsql stable security definer as $$
begin
  return greatest(
    (select max(o.until_at) from cue.unserved_periods o where o.until_at <= p_now), (select max(f.created_at) from cue.flights f),
    (select max(e.created_at) from (
       select x.created_at, x.triggered_by from cue.executions x order by x.id desc limit 100) e where e.triggered_by = 'schedule'));
end $$;
comment on function cue.last_taken_at is 'Returns when engines last took due work, or could do so again after an outage.';
