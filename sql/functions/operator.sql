-- What the operator's page shows of a database. Everything is bounded: work is counted up to 10,000, and accounts are found among 100,000.

-- By the oldest p_limit of each kind; those for workers and those in queues are in no such order. A null p_limit counts all.
create or replace function cue.waiting_work(p_now timestamptz default now(), p_limit int default cue.counted_to())
returns table (queue text, waiting bigint, oldest timestamptz)
language plpgsql stable security definer as $$
begin
  return query
  with due as materialized (select r.next_run as at from cue.cue_runs r where r.next_run <= p_now order by r.next_run limit p_limit),
  attempts as materialized (
    select e.attempt_due_at as at, e.attempts from cue.executions e where e.attempt_due_at <= p_now order by e.attempt_due_at limit p_limit),
  later as materialized (
    select e.attempt_due_at as at, e.attempts from cue.executions e
     where e.attempt_due_at > p_now and e.attempt_due_at < 'infinity' order by e.attempt_due_at limit p_limit),
  claimable as materialized (
    select e.claimable_at as at, e.attempts from cue.executions e where e.claimable_at is not null limit p_limit),
  claimed as materialized (select e.claimed_at as at from cue.executions e where e.lease_expires_at is not null limit p_limit),
  awaited as materialized (select e.delivered_at as at from cue.executions e where e.outcome_deadline_at is not null limit p_limit),
  queued as materialized (
    select h.since as at from cue.held_executions h where h.released_at is null limit p_limit)
  select k.queue, k.waiting::bigint, k.oldest
    from (
      select 1 as place, 'due' as queue, count(*) as waiting, min(at) as oldest from due
      union all select 2, 'pending', count(*), min(at) from attempts where attempts = 0
      union all select 3, 'retrying', count(*), min(at)
                  from (select * from attempts union all select * from later union all select * from claimable where at > p_now) r where attempts > 0
      union all select 4, 'delivering', coalesce(sum(cardinality(f.execution_ids)), 0), min(f.created_at) from cue.flights f
      union all select 5, 'pending_outcome', count(*), min(at) from awaited
      union all select 6, 'pending_worker', count(*), min(at) from claimable where at <= p_now
      union all select 7, 'claimed', count(*), min(at) from claimed
      union all select 8, 'deferred', count(*), min(at)
                  from (select * from later union all select * from claimable where at > p_now and at < 'infinity') d where attempts = 0
      union all select 9, 'queued', count(*), min(at) from queued) k
   order by k.place;
end $$;
comment on function cue.waiting_work is 'Returns work by kind, counted up to p_limit, and its oldest, or when it is due.';

-- Results of the current minute are in slots of their own, which fold_usage adds to slot 0.
create or replace function cue.busiest_accounts(p_now timestamptz default now()) returns table (
  account_id uuid, email text, plan cue.plan, executions_used bigint, executions_per_month int, cues_used int, cues int)
language plpgsql stable security definer as $$
begin
  return query
  with known as (
    select u.account_id, u.executions from (
      select c.account_id, c.executions from cue.usage_counters c where c.month = cue.usage_month(p_now) and c.slot = 0 limit 100000) u
    union all
    select u.account_id, u.executions from (
      select c.account_id, c.executions, c.month from cue.usage_counters c where c.slot <> 0 limit 10000) u where u.month = cue.usage_month(p_now)),
  most as (select k.account_id from known k group by k.account_id order by sum(k.executions) desc, k.account_id limit 20)
  select a.id, a.email, a.plan, cue.executions_used(a.id, p_now), p.executions_per_month,
         (select count(*)::int from (
            select from cue.cues c where c.account_id = a.id and c.deleted_at is null and c.status in ('active', 'paused') and not c.memory_check
             limit 1000) q), p.cues
    from most m join cue.accounts a on a.id = m.account_id cross join lateral cue.limits_of(a) p
   order by 4 desc, a.id;
end $$;
comment on function cue.busiest_accounts is
  'Returns the 20 accounts with the most executions in the current UTC month, among 100,000, and their use of their plan; cues are counted up to 1,000.';

create or replace function cue.read_operator(p_now timestamptz default now()) returns table (
  postgres text, size_bytes bigint, release int, engines jsonb, queues jsonb, connections jsonb, connection_limit int, partitions jsonb,
  accounts jsonb, migrations jsonb, migration_count int
)
language plpgsql stable security definer as $$
begin
  return query
  select current_setting('server_version'), pg_database_size(current_database()),
         (select split_part(g.checksum, ' ', 1)::int from cue.migrations g where g.id = 0),
         (select coalesce(jsonb_agg(jsonb_build_object('id', n.id, 'name', n.name, 'version', n.version, 'state', n.state,
                   'share', case n.state when 'live' then round(1.0 / n.live, 4) else 0 end, 'lateness_ms', n.lateness_ms,
                   'open_deliveries', n.open_deliveries, 'started_at', cue.iso(n.started_at), 'last_seen_at', cue.iso(n.last_seen_at))
                   order by n.state, n.last_seen_at desc, n.id), '[]')
            from (select l.*, count(*) filter (where l.state = 'live') over () as live
                    from (select x.*, case when x.stopped_at is not null then 'stopped' when x.last_seen_at > p_now - cue.engine_timeout() then 'live'
                                           else 'silent' end as state
                            from cue.engines x order by x.last_seen_at desc limit 1000) l) n),
         (select jsonb_agg(jsonb_build_object('queue', w.queue, 'waiting', w.waiting, 'oldest', cue.iso(w.oldest))) from cue.waiting_work(p_now) w),
         (select coalesce(jsonb_agg(jsonb_build_object('name', s.name, 'open', s.open, 'active', s.active) order by s.open desc, s.name), '[]')
            from (select coalesce(nullif(t.application_name, ''), 'unnamed') as name, count(*)::int as open,
                         (count(*) filter (where t.state <> 'idle'))::int as active
                    from pg_stat_activity t where t.datname is not null group by 1 order by 2 desc, 1 limit 20) s),
         current_setting('max_connections')::int,
         (select coalesce(jsonb_agg(jsonb_build_object('table', p.table, 'month', p.month, 'rows', p.rows, 'size_bytes', p.size_bytes)
                   order by p.month desc, p.table <> 'executions', p.table), '[]')
            from (select split_part(i.inhparent::regclass::text, '.', 2) as table,
                         replace(substring(c.relname from '\d{4}_\d\d$'), '_', '-') as month, nullif(c.reltuples, -1)::bigint as rows,
                         pg_total_relation_size(c.oid) as size_bytes
                    from pg_inherits i join pg_class c on c.oid = i.inhrelid
                   where i.inhparent in ('cue.executions'::regclass, 'cue.attempts'::regclass, 'cue.fixed_requests'::regclass)) p),
         (select coalesce(jsonb_agg(to_jsonb(b) order by b.executions_used desc, b.account_id), '[]') from cue.busiest_accounts(p_now) b),
         (select jsonb_agg(jsonb_build_object('id', m.id, 'name', m.name, 'applied_at', cue.iso(m.applied_at)) order by m.id desc)
            from (select * from cue.migrations g where g.id > 0 order by g.id desc limit 10) m),
         (select count(*)::int from cue.migrations g where g.id > 0);
end $$;
comment on function cue.read_operator is 'Returns what an operator looks at: engines, work, connections, partitions, …';
