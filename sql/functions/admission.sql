-- Authentication and rate limits. A refusal is a result, not an error: an error would roll back the count. Locks: rate windows by subject,
-- then API keys, skipping locked ones. Functions that serve several callers never wait long for one of them.

-- Waits for a window that another transaction has locked or is adding. With p_wait false, one locked for longer than lock_timeout is left out.
create or replace function cue.wait_for_window(p_subject text, p_wait boolean, p_now timestamptz) returns boolean
language plpgsql security definer as $$
begin
  perform from cue.rate_windows where subject = p_subject for update;
  if not found then
    insert into cue.rate_windows values (p_subject, p_now, '{}', 0, 1, p_now)
    on conflict (subject) do update set subject = excluded.subject; -- another transaction is adding the row: wait for it and lock it
  end if;
  return true;
exception when lock_not_available then
  if p_wait then raise; end if;
  return false;
end $$;
comment on function cue.wait_for_window is 'Locks a rate window, adding it if needed; returns whether it could.';

-- Exact under concurrency: never more than p_limits in any p_window (at most ten days). Limits above 500 store several hits per entry, and
-- an entry expires with its latest hit: up to 1/500 too strict, never too lenient.
-- reset_at is the time the next hit expires; retry_after is in seconds, and null when allowed. The windows stay locked until the caller's
-- transaction ends. With p_wait false, a window locked for longer than lock_timeout returns allowed = null and counts nothing; otherwise it
-- raises an error.
create or replace function cue.count_hits(p_subjects text[], p_limits int[], p_window interval, p_wait boolean, p_now timestamptz)
returns table (place bigint, allowed boolean, remaining int, reset_at timestamptz, retry_after int)
language plpgsql security definer as $$
declare
  v_window bigint := date_part('epoch', p_window) * 1000;
  -- Each is locked before the next one is waited for.
  v_held text[] := array(
    select s.subject from (select distinct u.subject from unnest(p_subjects) as u (subject) order by u.subject) s
     where not coalesce((select true from cue.rate_windows w where w.subject = s.subject for update skip locked),
                        cue.wait_for_window(s.subject, p_wait, p_now)));
begin
  -- A new statement, because the snapshot of the one that waited for the locks is older. Each step is computed once, not wherever it is used.
  return query
  with asked as (
    select q.*, (q.most::bigint + 499) / 500 as weight, row_number() over s as nth, count(*) over s as wanted
      from unnest(p_subjects, p_limits) with ordinality as q (subject, most, place)
     where q.subject <> all (v_held)
    window s as (partition by q.subject order by q.place rows between unbounded preceding and unbounded following)),
  stored as (
    select a.*, w.ctid as row, w.started_at, w.newest, case when w.weight = a.weight then w.hits else '{}' end as hits,
           (date_part('epoch', p_now - w.started_at) * 1000)::bigint as at
      from asked a cross join lateral (select w.ctid, w.* from cue.rate_windows w where w.subject = a.subject limit 1) w offset 0),
  based as (select s.*, s.at not between coalesce(s.hits[cardinality(s.hits)], 0) - v_window and 1000000000 as is_far from stored s offset 0),
  -- Days have passed, or the clock was set back: rebase the hits still within the window on a new start.
  scaled as (
    select b.place, b.row, b.most, b.weight, b.nth, b.wanted, b.newest,
           case when b.is_far then p_now - p_window else b.started_at end as started_at, case when b.is_far then v_window else b.at end as at,
           case when b.is_far then array(select h - b.at + v_window from unnest(b.hits) as h where h > b.at - v_window and h <= b.at order by h)
                else b.hits end as hits
      from based b offset 0),
  -- A caller that waited for the lock has an earlier p_now than the hits recorded meanwhile.
  timed as (select s.*, greatest(s.at, s.hits[cardinality(s.hits)])::int as last from scaled s offset 0),
  recent as (
    select t.place, t.row, t.most, t.weight, t.nth, t.wanted, t.newest, t.started_at, t.last,
           t.hits[width_bucket((t.last - v_window)::int, t.hits) + 1:] as hits from timed t offset 0),
  used as (select r.*, case when cardinality(r.hits) = 0 then 0 else (cardinality(r.hits) - 1) * r.weight + r.newest end as used from recent r offset 0),
  -- begun: hits of an entry that takes more.
  fitting as (
    select u.*, least(u.wanted, greatest(u.most - u.used, 0)) as added, case when u.used = 0 or u.newest = u.weight then 0 else u.newest end as begun
      from used u offset 0),
  entries as (select f.*, (f.begun + f.added + f.weight - 1) / f.weight as entries from fitting f offset 0),
  counted as materialized (
    select e.place, e.row, e.most, e.weight, e.nth, e.wanted, e.started_at, e.used, e.added,
           e.begun + e.added - (e.entries - 1) * e.weight as newest,
           case when e.added = 0 then e.hits
                else e.hits[:cardinality(e.hits) - (e.begun > 0)::int] || array_fill(e.last, array[e.entries::int]) end as hits
      from entries e),
  noted as (
    update cue.rate_windows w
       set started_at = c.started_at, hits = c.hits, newest = c.newest, weight = c.weight, expires_at = p_now + p_window
      from counted c
     where w.ctid = c.row and c.nth = c.wanted and c.added > 0),
  answers as (
    select c.place, c.nth <= c.added as allowed, greatest(c.most - c.used - least(c.nth, c.added), 0)::int as remaining,
           c.started_at + (c.hits[(greatest(c.used + least(c.nth, c.added) - c.most, 0) / c.weight)::int + 1] + v_window) * interval '1 millisecond' as reset_at
      from counted c)
  -- A caller that waited for the row has an earlier p_now: never return more than the window.
  select a.place, a.allowed, a.remaining, a.reset_at, case when not a.allowed then
           least(greatest(ceil(date_part('epoch', a.reset_at - p_now)), 1), ceil(date_part('epoch', p_window)))::int end
    from answers a
  union all
  select h.place, null, h.most, p_now, null from unnest(p_subjects, p_limits) with ordinality as h (subject, most, place)
   where h.subject = any (v_held);
end $$;
comment on function cue.count_hits is
  'Counts a hit of each subject against its sliding window unless that is full; allowed is null if another transaction holds the window.';

create or replace function cue.allow(p_subject text, p_limit int, p_window interval default '1 hour', p_now timestamptz default now())
returns table (allowed boolean, remaining int, reset_at timestamptz, retry_after int)
language sql security definer as $$
  select h.allowed, h.remaining, h.reset_at, h.retry_after from cue.count_hits(array[p_subject], array[p_limit], p_window, true, p_now) h
$$;
comment on function cue.allow is 'Counts one hit against a sliding window and returns whether it is within the limit.';

create or replace function cue.execution_caller(p_execution_id uuid, p_now timestamptz default now())
returns table (actor text, account_id uuid)
language plpgsql stable security definer as $$
begin
  return query
  select 'execution:' || e.id, e.account_id from cue.executions e join cue.cues c on c.id = e.cue_id
   where e.id = p_execution_id and c.deleted_at is null and (e.ended_at is null or e.ended_at > p_now - interval '24 hours');
end $$;
comment on function cue.execution_caller is
  'Returns the caller for an execution''s token, which is valid until a day after the execution ends.';

-- One round trip for all requests that arrive together. A request has an API key (by hash), or the session or execution of a verified
-- token. p_scopes: the scope required; 'any' accepts every credential, and null requires none. Keys and execution tokens have a window
-- each; all sessions of an account share one, since a session can create others. Everything else counts by address, unknown keys included:
-- a window per unknown key could fill the table.
-- error is null, rate_limit_exceeded, not_authenticated, invalid_api_key, insufficient_scope, or unavailable (the window is locked: try
-- that request on its own). With p_limited false nothing is counted.
create or replace function cue.admit(
  p_key_hashes bytea[], p_session_ids uuid[], p_execution_ids uuid[], p_addresses text[], p_scopes text[], p_limited boolean default true,
  p_now timestamptz default now()
) returns table (
  error text, account_id uuid, actor text, scopes text[], plan cue.plan, usage_warning boolean,
  rate_limit int, rate_remaining int, rate_reset bigint, retry_after int
)
language plpgsql security definer as $$
begin
  -- Counts may be lost in a crash; waiting for the disk would slow every request.
  perform set_config('synchronous_commit', 'off', true);
  return query
  with callers as materialized (
    select q.*, i.*, coalesce(i.subject, 'address:' || q.address) as counted, p.plan, coalesce(p.requests_per_minute, 60) as requests,
           coalesce(p.usage_warning, false) as usage_warning
      from unnest(p_key_hashes, p_session_ids, p_execution_ids, p_addresses, p_scopes)
           with ordinality as q (key_hash, session_id, execution_id, address, scope, n)
      left join lateral (
        select 'key:' || k.id as actor, k.account_id, k.scopes::text[] as scopes, 'key:' || k.id as subject, k.id as key_id,
               k.last_used_at is null or k.last_used_at < p_now - interval '1 minute' as is_stale
          from cue.api_keys k where k.key_hash = q.key_hash and k.revoked_at is null
        union all
        select 'session:' || s.id, s.account_id, coalesce(s.scopes, enum_range(null::cue.key_scope))::text[], 'sessions:' || s.account_id, null, false
          from (select * from cue.sessions x where x.id = q.session_id limit 1) s where s.expires_at > p_now and q.key_hash is null
        union all
        select e.actor, e.account_id, '{read,worker}', e.actor, null, false from cue.execution_caller(q.execution_id, p_now) e
         where q.execution_id is not null and q.session_id is null and q.key_hash is null
        limit 1) i on true
      left join lateral (
        select a.plan, p.requests_per_minute,
               (select coalesce(sum(u.executions), 0) from cue.usage_counters u
                 where u.account_id = a.id and u.month = cue.usage_month(p_now)) * 5 >= p.executions_per_month::bigint * 4 as usage_warning
          from cue.accounts a cross join lateral (select l.* from cue.plans l where l.plan = a.plan limit 1) p where a.id = i.account_id
        limit 1) p on true),
  hits as (
    select h.* from cue.count_hits((select array_agg(c.counted order by c.n) from callers c), (select array_agg(c.requests order by c.n) from callers c),
                                   '1 minute', false, p_now) h
     where p_limited
    union all
    select c.n, true, c.requests, p_now, null from callers c where not p_limited),
  asked as materialized (select c.*, h.allowed, h.remaining, h.reset_at, h.retry_after from callers c join hits h on h.place = c.n),
  -- At most once a minute per key, skipping keys that another request is updating.
  used as (
    update cue.api_keys set last_used_at = p_now
     where id = any (array(select k.id from cue.api_keys k
                            where k.id = any (array(select a.key_id from asked a where a.is_stale and a.allowed))
                            for no key update skip locked)))
  select case when a.allowed is null then 'unavailable'
              when not a.allowed then 'rate_limit_exceeded'
              when a.scope is null then null
              when a.account_id is null and a.key_hash is null and a.execution_id is null then 'not_authenticated'
              when a.account_id is null then 'invalid_api_key'
              when a.scope <> 'any' and a.scope <> all (a.scopes) then 'insufficient_scope' end,
         a.account_id, a.actor, a.scopes, a.plan, a.usage_warning, a.requests, a.remaining, ceil(date_part('epoch', a.reset_at))::bigint,
         a.retry_after
    from asked a order by a.n;
end $$;
comment on function cue.admit is
  'Checks credentials, scope, rate limit and usage for a batch of requests; returns one row per request, in order.';
