-- Claims by workers. Rows are locked with skip locked, so a claim waits for nobody. claimable.sql finds them.

create or replace function cue.lock_in_turn(
  p_account_id uuid, p_tasks text[], p_limit int, p_except uuid[] default '{}', p_now timestamptz default now()
) returns uuid[]
language plpgsql security definer as $$
declare
  v_share int := ceil(p_limit::numeric / greatest(cardinality(p_tasks), 1));
  v_ids uuid[] := '{}';
  v_task text;
begin
  -- First round: an equal share per task. Second round: the rest goes to the first tasks that have more.
  for v_round in 1 .. case when v_share < p_limit then 2 else 1 end loop
    foreach v_task in array p_tasks loop
      exit when cardinality(v_ids) >= p_limit;
      v_ids := v_ids || cue.find_claimable(p_account_id, v_task, least(p_limit - cardinality(v_ids), v_share), true,
        p_except || v_ids, p_now);
    end loop;
    v_share := p_limit;
  end loop;
  return v_ids;
end $$;
comment on function cue.lock_in_turn is 'Locks claimable executions of several tasks, in the order given, an equal share of each.';

create or replace function cue.in_turn(p_limit int) returns int
language sql volatile as $$ select case when p_limit > 1 then p_limit / 2 else (random() < 0.0625)::int end $$;
comment on function cue.in_turn is 'Returns how many of p_limit claims are taken from all tasks in turn instead of by age.';

-- Oldest first. If more than 50 are claimable, some are taken from the tasks in random order, so that a backlog of one task does not block
-- the others.
create or replace function cue.lock_next(
  p_account_id uuid, p_tasks text[], p_limit int, p_in_turn int, p_except uuid[] default '{}', p_now timestamptz default now()
) returns uuid[]
language plpgsql security definer as $$
declare
  v_crowded boolean;
  v_ids uuid[] := '{}';
begin
  if cardinality(p_tasks) = 1 then
    return cue.find_claimable(p_account_id, p_tasks[1], p_limit, true, p_except, p_now);
  end if;
  v_crowded := (p_tasks is not null or p_in_turn > 0) and exists (
    select from cue.claimable_executions e where e.account_id = p_account_id and e.claimable_at <= p_now offset 50 limit 1);
  if p_tasks is not null then
    p_tasks := array(
      select t.task from unnest(p_tasks) as t (task)
       order by case when v_crowded then random() end, (
         select e.turn from cue.claimable_executions e
          where e.account_id = p_account_id and e.task = t.task and e.claimable_at <= p_now limit 1));
    return cue.lock_in_turn(p_account_id, p_tasks, p_limit, p_except, p_now);
  end if;
  if v_crowded then
    p_tasks := array(select t.task from unnest(cue.claimable_tasks(p_account_id, p_now)) as t (task) order by random());
    v_ids := cue.lock_in_turn(p_account_id, p_tasks, p_in_turn, p_except, p_now);
  end if;
  return v_ids || cue.find_claimable(p_account_id, null, p_limit - cardinality(v_ids), true, p_except || v_ids, p_now);
end $$;
comment on function cue.lock_next is 'Locks and returns the next executions for a worker.';

-- A new claim_token fences each claim: an earlier token is refused. cue_runs precede executions in the lock order, so a locked row is skipped;
-- its last_run is set when the execution ends.
create or replace function cue.begin_claims(
  p_execution_ids uuid[], p_worker_ids text[], p_lease interval default cue.claim_lease(), p_now timestamptz default now()
) returns table (
  execution_id uuid, cue_id text, cue_name text, task text, scheduled_for timestamptz, lease_expires_at timestamptz, claim_token uuid,
  attempt int, payload text, template_values text
)
language plpgsql security definer as $$
declare
  v_first uuid := p_execution_ids[1];
  v_last uuid := v_first;
begin
  if cardinality(p_execution_ids) > 1 then
    select min(u.id::text)::uuid, max(u.id::text)::uuid into v_first, v_last from unnest(p_execution_ids) as u (id);
  end if;
  return query
  with begun as (
    update cue.executions e
       set status = 'delivering', attempts = e.attempts + 1, started_at = coalesce(e.started_at, p_now), last_attempt_at = p_now,
           claimed_by_worker = p_worker_ids[array_position(p_execution_ids, e.id)], claimed_at = p_now, claim_token = gen_random_uuid(),
           last_heartbeat_at = p_now, lease_expires_at = p_now + p_lease, claimable_at = null, claim_deadline_at = null, updated_at = p_now
     where e.id = any (p_execution_ids) and e.id between v_first and v_last
    returning e.id, e.cue_id, (select q.name from cue.cues q where q.id = e.cue_id), e.task, e.scheduled_for, e.lease_expires_at,
              e.claim_token, e.attempts, coalesce(e.payload, (select p.body from cue.stored_payloads p where p.id = e.payload_id and p.cue_id = e.cue_id limit 1)) as payload,
              e.started_at, e.is_fixed),
  runs as (
    update cue.cue_runs r set last_run = greatest(r.last_run, p_now)
     where r.ctid = any (array(
       select l.ctid from begun b
        cross join lateral (select x.ctid from cue.cue_runs x where x.cue_id = b.cue_id limit 1 for update skip locked) l
        where b.started_at = p_now)))
  select b.id, b.cue_id, b.name, b.task, b.scheduled_for, b.lease_expires_at, b.claim_token, b.attempts, b.payload,
         case when b.is_fixed then (
           select f.template_values::text from cue.fixed_requests f where f.execution_id = b.id and f.execution_id between v_first and v_last) end
    from begun b;
end $$;
comment on function cue.begin_claims is 'Assigns locked executions to workers and returns the claims.';

-- The other executions stay claimable; their locks end with the transaction.
create or replace function cue.within_bytes(p_execution_ids uuid[], p_claims int[]) returns table (execution_ids uuid[], claims int[])
language plpgsql stable security definer as $$
begin
  return query
  select array_agg(f.id order by f.place), array_agg(f.claim order by f.place) from (
    select u.id, u.claim, u.place, row_number() over w as nth, sum(octet_length(e.payload) + 2048 + e.more) over w as bytes
      from unnest(p_execution_ids, p_claims) with ordinality as u (id, claim, place)
     cross join lateral (
       select coalesce(x.payload, (select p.body from cue.stored_payloads p where p.id = x.payload_id and p.cue_id = x.cue_id limit 1)) as payload,
              case when x.is_fixed then cue.rendered_bytes(x.id) else 0 end as more
         from cue.executions x where x.id = u.id limit 1) e
    window w as (partition by u.claim order by u.place)) f
   where f.nth = 1 or f.bytes <= cue.page_bytes();
end $$;
comment on function cue.within_bytes is 'Returns, for each claim, as many executions as fit into 4 MiB, but at least one.';

-- The others stay claimable, unless a gate holds them; their locks end with the transaction.
create or replace function cue.fit_claims(
  p_execution_ids uuid[], p_claims int[], p_now timestamptz, out execution_ids uuid[], out claims int[], out begun_at timestamptz
)
language plpgsql security definer as $$
begin
  select p_execution_ids, p_claims, p_now into execution_ids, claims, begun_at;
  if cardinality(execution_ids) > (select count(distinct u.n) from unnest(claims) as u (n)) then
    select w.execution_ids, w.claims into execution_ids, claims from cue.within_bytes(execution_ids, claims) w;
  end if;
  if cue.has_gates() then
    select x.passed, x.begun_at, array(select claims[array_position(execution_ids, u.id)] from unnest(x.passed) with ordinality as u (id, n) order by u.n)
      into execution_ids, begun_at, claims from cue.pass_gates(execution_ids, p_now) x;
  end if;
end $$;
comment on function cue.fit_claims is 'Returns the locked executions that fit into a response and pass their gates, with their claims, and when they begin.';

create or replace function cue.claim_executions(
  p_account_id uuid, p_worker_id text, p_execution_id uuid default null, p_tasks text[] default null, p_limit int default 1,
  p_lease interval default cue.claim_lease(), p_now timestamptz default now()
) returns table (
  execution_id uuid, cue_id text, cue_name text, task text, scheduled_for timestamptz, lease_expires_at timestamptz, claim_token uuid,
  attempt int, payload text, template_values text
)
language plpgsql security definer as $$
declare
  v_ids uuid[];
  v_tried uuid[];
begin
  if cue.has_holds() then perform cue.require_unheld(p_account_id); end if;
  if p_execution_id is not null then
    -- Waits instead of skipping: the holder of the lock may fail, and then the execution can be claimed.
    v_ids := array(
      select e.id from cue.executions e
       where e.id = p_execution_id and e.account_id = p_account_id and e.claimable_at <= p_now
         and (select q.deleted_at is null from cue.cues q where q.id = e.cue_id)
         for update);
  else
    v_ids := cue.lock_next(p_account_id, p_tasks, p_limit, cue.in_turn(p_limit), '{}', p_now);
  end if;
  if cardinality(v_ids) = 0 then return; end if;
  v_tried := v_ids;
  select f.execution_ids, f.begun_at into v_ids, p_now from cue.fit_claims(v_ids, array_fill(1, array[cardinality(v_ids)]), p_now) f;
  return query
  select * from cue.begin_claims(v_ids, array_fill(p_worker_id, array[cardinality(v_ids)]), p_lease, p_now) c
   order by array_position(v_ids, c.execution_id);
  if cue.has_gates() then perform cue.release_behind(v_tried, p_now); end if;
end $$;
comment on function cue.claim_executions is 'Claims an execution by id, or the next ones; each goes to exactly one caller.';

create or replace function cue.has_gates() returns boolean
language sql stable security definer as $$ select exists (select from cue.gates) $$;
comment on function cue.has_gates is 'Returns whether any account has a gate.';

-- p_claims as for claim_next; p_except: those to leave out. Single claims for any task are served by one statement; the others are grouped by account
-- and tasks.
create or replace function cue.lock_claims(p_claims jsonb, p_except int[], p_now timestamptz, out execution_ids uuid[], out claims int[])
language plpgsql security definer as $$
declare
  r record;
  v_lone int[];
  v_accounts uuid[];
  v_more uuid[];
begin
  select array_agg(g.n), array_agg(g.account_id) into v_lone, v_accounts from (
    select min(c.n)::int as n, c.account_id
      from rows from (jsonb_to_recordset(p_claims) as (account_id uuid, tasks text[], "limit" int)) with ordinality as c (account_id, tasks, "limit", n)
     where c.tasks is null and c.n <> all (p_except) group by c.account_id having sum(c."limit") = 1) g
   where cue.in_turn(1) = 0;
  -- Like find_claimable, for all of them in one statement.
  select coalesce(array_agg(l.id), '{}'), coalesce(array_agg(u.n), '{}') into execution_ids, claims
    from unnest(v_lone, v_accounts) as u (n, account_id)
   cross join lateral (
     select e.id from cue.claimable_executions e
      where e.account_id = u.account_id and e.claimable_at <= p_now limit 1 for update skip locked) l;
  for r in
    select c.account_id, c.tasks, sum(c."limit")::int as wanted, array_agg(c.n order by c.n) as claims, array_agg(c."limit" order by c.n) as limits
      from rows from (jsonb_to_recordset(p_claims) as (account_id uuid, tasks text[], "limit" int)) with ordinality as c (account_id, tasks, "limit", n)
     where c.n <> all (v_lone || p_except) group by c.account_id, c.tasks
  loop
    v_more := cue.lock_next(r.account_id, r.tasks, r.wanted, case when r.wanted > 1 then cue.in_turn(r.wanted) else 1 end, execution_ids, p_now);
    execution_ids := execution_ids || v_more;
    claims := claims || (array(
      select r.claims[i] from generate_subscripts(r.claims, 1) as i cross join generate_series(1, r.limits[i]) order by i))[:cardinality(v_more)];
  end loop;
end $$;
comment on function cue.lock_claims is 'Locks the next executions for many workers, and returns them, each with the position of its claim.';

-- p_claims: an array of {account_id, worker_id, tasks, "limit"}.
create or replace function cue.claim_next(
  p_claims jsonb, p_lease interval default cue.claim_lease(), p_now timestamptz default now(), p_tries int default 3
) returns table (
  claim int, execution_id uuid, cue_id text, cue_name text, task text, scheduled_for timestamptz, lease_expires_at timestamptz,
  claim_token uuid, attempt int, payload text, template_values text
)
language plpgsql security definer as $$
declare
  v_tried uuid[];
  v_wanted int[];
  v_ids uuid[];
  v_claims int[];
  v_held int[] := '{}';
  v_now timestamptz;
begin
  if cue.has_holds() then
    v_held := array(
      select c.n from rows from (jsonb_to_recordset(p_claims) as (account_id uuid)) with ordinality as c (account_id, n) where cue.is_held(c.account_id));
    return query select n, null::uuid, null, null, null, null::timestamptz, null::timestamptz, null::uuid, null::int, null, null from unnest(v_held) as u (n);
  end if;
  select l.execution_ids, l.claims into v_tried, v_wanted from cue.lock_claims(p_claims, v_held, p_now) l;
  if cardinality(v_tried) = 0 then return; end if;
  select f.execution_ids, f.claims, f.begun_at into v_ids, v_claims, v_now from cue.fit_claims(v_tried, v_wanted, p_now) f;
  return query
  select v_claims[array_position(v_ids, c.execution_id)], c.*
    from cue.begin_claims(v_ids, array(select p_claims -> n - 1 ->> 'worker_id' from unnest(v_claims) as u (n)), p_lease, v_now) c
   order by array_position(v_ids, c.execution_id);
  if not cue.has_gates() then return; end if;
  perform cue.release_behind(v_tried, v_now);
  -- All that these found is held by gates now: there may be other work.
  v_wanted := array(select distinct u.n from unnest(v_wanted) as u (n) where u.n <> all (v_claims) and p_tries > 1 order by 1);
  if v_wanted <> '{}' then
    return query
    select v_wanted[c.claim], c.execution_id, c.cue_id, c.cue_name, c.task, c.scheduled_for, c.lease_expires_at, c.claim_token, c.attempt, c.payload, c.template_values
      from cue.claim_next((select jsonb_agg(p_claims -> u.n - 1 order by u.n) from unnest(v_wanted) as u (n)), p_lease, p_now, p_tries - 1) c;
  end if;
end $$;
comment on function cue.claim_next is
  'Claims executions for many workers in one call; claim is the position of the request in p_claims, from 1. One whose account is held has a row '
  'without an execution.';
