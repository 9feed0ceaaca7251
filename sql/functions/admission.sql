-- Authentication and rate limits. A refusal is a result, not an error: an error would roll back the count. Locks: rate windows by subject,
-- then API keys, skipping locked ones. Functions that serve several callers never wait long for one of them.

create or replace function cue.window_age(w cue.rate_windows, p_now timestamptz) returns bigint
language sql stable as $$ select (date_part('epoch', p_now - w.started_at) * 1000)::bigint $$;
comment on function cue.window_age is 'Returns the milliseconds since a rate window started; its hits are stored in the same way.';

-- A window that last had a hit days ago, or later than now, since the clock was set back, needs a new start.
create or replace function cue.counts_on(w cue.rate_windows, p_weight bigint, p_window bigint, p_now timestamptz) returns boolean
language sql stable as $$
  select w.weight = p_weight and cue.window_age(w, p_now) between coalesce(w.hits[cardinality(w.hits)], 0) - p_window and 1000000000
$$;
comment on function cue.counts_on is 'Returns whether a hit can be added to a rate window as it is; p_window is in milliseconds.';

create or replace function cue.minute_of(p_at timestamptz) returns int
language sql immutable as $$ select floor(date_part('epoch', p_at) / 60)::int $$;
comment on function cue.minute_of is 'Returns the minute of an instant, since the epoch.';

create or replace function cue.with_recent(p_recent int[], p_later int, p_hits int) returns int[]
language sql immutable as $$
  select case when p_later = 0 then array[p_recent[1] + p_hits] || p_recent[2:]
              when p_later between 1 and 4 then (array[p_hits] || array_fill(0, array[p_later - 1]) || p_recent)[:5]
              else array[p_hits] end
$$;
comment on function cue.with_recent is 'Adds hits to those of the latest five minutes, of which the newest is p_later minutes ago.';

-- Waits for another transaction that has locked or is adding the window. With p_wait false, one locked for longer than lock_timeout is left out.
create or replace function cue.ready_window(p_subject text, p_weight bigint, p_window bigint, p_wait boolean, p_now timestamptz) returns boolean
language plpgsql security definer as $$
begin
  perform from cue.rate_windows where subject = p_subject for update;
  if not found then
    insert into cue.rate_windows (subject, started_at, hits, newest, weight, expires_at) values (p_subject, p_now, '{}', 0, p_weight, p_now)
    on conflict (subject) do update set subject = excluded.subject; -- another transaction is adding the row: wait for it and lock it
  end if;
  -- Hits of another weight are forgotten, and so are those outside of the window.
  update cue.rate_windows w
     set weight = p_weight, started_at = p_now - p_window * interval '1 millisecond',
         hits = array(select h - a.at + p_window
                        from (select cue.window_age(w, p_now) as at) a cross join unnest(w.hits) as h
                       where w.weight = p_weight and h > a.at - p_window and h <= a.at order by h)
   where w.subject = p_subject and not cue.counts_on(w, p_weight, p_window, p_now);
  return true;
exception when lock_not_available then
  if p_wait then raise; end if;
  return false;
end $$;
comment on function cue.ready_window is 'Locks a rate window, adds it or gives it a new start if needed, and returns whether it could.';

-- Exact under concurrency: never more than p_limits in any p_window (at most ten days). Limits above 500 store several hits per entry, and
-- an entry expires with its latest hit: up to 1/500 too strict, never too lenient.
-- reset_at is the time the next hit expires; retry_after is in seconds, and null when allowed. The windows stay locked until the caller's
-- transaction ends. With p_wait false, a window locked for longer than lock_timeout is left out; otherwise it raises an error.
create or replace function cue.count_hits(p_subjects text[], p_limits int[], p_window interval, p_wait boolean, p_now timestamptz)
returns table (place bigint, allowed boolean, remaining int, reset_at timestamptz, retry_after int)
language plpgsql security definer as $$
declare
  v_window bigint := date_part('epoch', p_window) * 1000;
  v_minute int := cue.minute_of(p_now);
  -- Each is locked before the next one is waited for.
  v_held text[] := array(
    select s.subject
      from (select distinct u.subject, (u.most::bigint + 499) / 500 as weight from unnest(p_subjects, p_limits) as u (subject, most) order by u.subject) s
     where not coalesce((select true from cue.rate_windows w
                          where w.subject = s.subject and cue.counts_on(w, s.weight, v_window, p_now) for update skip locked),
                        cue.ready_window(s.subject, s.weight, v_window, p_wait, p_now)));
begin
  -- A new statement, because the snapshot of the one that waited for the locks is older. `offset 0`: what a step computes is not computed again
  -- wherever it is used. Few steps of few columns: preparing them is a third of a statement's cost.
  return query
  with recent as (
    select a.place, a.most, a.nth, a.wanted, w.row, w.started_at, w.newest, w.weight, w.last,
           w.hits[width_bucket((w.last - v_window)::int, w.hits) + 1:] as hits
      from (select q.subject, q.most, q.place, row_number() over s as nth, count(*) over s as wanted
              from unnest(p_subjects, p_limits) with ordinality as q (subject, most, place)
            window s as (partition by q.subject order by q.place rows between unbounded preceding and unbounded following)) a
     cross join lateral (
        -- A caller that waited for the lock has an earlier p_now than the hits recorded meanwhile.
        select w.ctid as row, w.started_at, w.newest, w.weight, w.hits,
               greatest(cue.window_age(w, p_now), w.hits[cardinality(w.hits)])::int as last
          from cue.rate_windows w where w.subject = a.subject and w.subject <> all (v_held) limit 1) w
    offset 0),
  -- begun: hits of an entry that takes more.
  fitting as (
    select r.*, u.used, least(r.wanted, greatest(r.most - u.used, 0)) as added, case when u.used = 0 or r.newest = r.weight then 0 else r.newest end as begun
      from recent r
     cross join lateral (
       select case when cardinality(r.hits) = 0 then 0 else (cardinality(r.hits) - 1) * r.weight + r.newest end as used) u
    offset 0),
  counted as materialized (
    select f.place, f.row, f.most, f.weight, f.nth, f.wanted, f.started_at, f.used, f.added, f.begun + f.added - (e.entries - 1) * f.weight as newest,
           case when f.added = 0 then f.hits
                else f.hits[:cardinality(f.hits) - (f.begun > 0)::int] || array_fill(f.last, array[e.entries::int]) end as hits
      from fitting f cross join lateral (select (f.begun + f.added + f.weight - 1) / f.weight as entries) e),
  noted as (
    update cue.rate_windows w
       set hits = c.hits, newest = c.newest, expires_at = p_now + p_window,
           recent = cue.with_recent(w.recent, v_minute - w.recent_minute, c.added::int), recent_minute = v_minute
      from counted c
     where w.ctid = c.row and c.nth = c.wanted and c.added > 0)
  -- A caller that waited for the row has an earlier p_now: never return more than the window.
  select a.place, a.allowed, a.remaining, a.reset_at, case when not a.allowed then
           least(greatest(ceil(date_part('epoch', a.reset_at - p_now)), 1), ceil(date_part('epoch', p_window)))::int end
    from (select c.place, c.nth <= c.added as allowed, greatest(c.most - c.used - least(c.nth, c.added), 0)::int as remaining,
                 c.started_at + (c.hits[(greatest(c.used + least(c.nth, c.added) - c.most, 0) / c.weight)::int + 1] + v_window)
                   * interval '1 millisecond' as reset_at
            from counted c) a;
end $$;
comment on function cue.count_hits is 'Counts a hit of each subject unless its window is full; leaves out locked windows.';

create or replace function cue.allow(p_subject text, p_limit int, p_window interval default '1 hour', p_now timestamptz default now())
returns table (allowed boolean, remaining int, reset_at timestamptz, retry_after int)
language sql security definer as $$
  select h.allowed, h.remaining, h.reset_at, h.retry_after from cue.count_hits(array[p_subject], array[p_limit], p_window, true, p_now) h
$$;
comment on function cue.allow is 'Counts one hit against a sliding window and returns whether it is within the limit.';

create or replace function cue.require_within(p_subject text, p_limit int, p_window interval, p_refusal text, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  w record;
begin
  if p_subject is null then return; end if;
  select * into w from cue.allow(p_subject, p_limit, p_window, p_now);
  perform cue.refuse_if(not w.allowed, 'QU031', p_refusal, w.retry_after::text);
end $$;
comment on function cue.require_within is 'Counts one hit like allow, and raises QU031 with this message above the limit; a null subject has none.';

create or replace function cue.execution_caller(p_execution_id uuid, p_now timestamptz default now())
returns table (actor text, account_id uuid)
language plpgsql stable security definer as $$
begin
  return query
  select 'execution:' || e.id, e.account_id from cue.executions e join cue.cues c on c.id = e.cue_id
   where e.id = p_execution_id and c.deleted_at is null and (e.ended_at is null or e.ended_at > p_now - interval '24 hours');
end $$;
comment on function cue.execution_caller is 'Returns the caller of an execution''s token, which is valid for a day after its end.';

-- Skips a key that another transaction is noting, or that this one has noted: a second update of a row in a transaction checks its foreign key
-- again, and so waits for the account.
create or replace function cue.note_use(p_key_id uuid, p_now timestamptz) returns boolean
language plpgsql security definer as $$
begin
  update cue.api_keys set last_used_at = p_now
   where id = (select k.id from cue.api_keys k where k.id = p_key_id and (k.last_used_at < p_now) is not false for no key update skip locked);
  return true;
end $$;
comment on function cue.note_use is 'Notes that an API key is being used, and returns true.';

-- One round trip for all requests that arrive together. A request has an API key (by hash), or the session or execution of a verified
-- token. p_scopes: the scope required; 'any' accepts every credential, and null requires none. Keys and execution tokens have a window
-- each; all sessions of an account share one, since a session can create others. Everything else counts by address, unknown keys included:
-- a window per unknown key could fill the table.
-- error is null, rate_limit_exceeded, not_authenticated, invalid_api_key, insufficient_scope, or unavailable (the window is locked: try
-- that request on its own). With p_limited false nothing is counted, and neither are accounts without a limit. limits: the account's own.
create or replace function cue.admit(
  p_key_hashes bytea[], p_session_ids uuid[], p_execution_ids uuid[], p_addresses text[], p_scopes text[], p_limited boolean default true,
  p_now timestamptz default now()
) returns table (
  error text, account_id uuid, actor text, scopes text[], plan cue.plan, limits jsonb, usage_warning boolean,
  rate_limit int, rate_remaining int, rate_reset bigint, retry_after int
)
language plpgsql security definer as $$
begin
  -- Counts may be lost in a crash; waiting for the disk would slow every request.
  perform set_config('synchronous_commit', 'off', true);
  return query
  with callers as materialized (
    select q.n, i.account_id, i.actor, i.scopes, i.stale_key, p.plan, p.limits,
           case when i.account_id is null then 60 else p.requests_per_minute end as requests,
           coalesce(p.usage_warning, false) as usage_warning, coalesce(i.subject, 'address:' || q.address) as subject,
           case when q.scope is null then null
                when i.account_id is null and q.key_hash is null and q.execution_id is null then 'not_authenticated'
                when i.account_id is null then 'invalid_api_key'
                when q.scope <> 'any' and q.scope <> all (i.scopes) then 'insufficient_scope' end as error
      from unnest(p_key_hashes, p_session_ids, p_execution_ids, p_addresses, p_scopes)
           with ordinality as q (key_hash, session_id, execution_id, address, scope, n)
      left join lateral (
        select 'key:' || k.id as actor, k.account_id, k.scopes::text[] as scopes, 'key:' || k.id as subject,
               case when k.last_used_at >= p_now - interval '1 minute' then null else k.id end as stale_key
          from cue.api_keys k where k.key_hash = q.key_hash and k.revoked_at is null
        union all
        select 'session:' || s.id, s.account_id, coalesce(s.scopes, enum_range(null::cue.key_scope))::text[], 'sessions:' || s.account_id, null
          from (select * from cue.sessions x where x.id = q.session_id limit 1) s where s.expires_at > p_now and q.key_hash is null
        union all
        select e.actor, e.account_id, '{read,worker}', e.actor, null from cue.execution_caller(q.execution_id, p_now) e
         where q.execution_id is not null and q.session_id is null and q.key_hash is null
        limit 1) i on true
      left join lateral (
        select a.plan, a.limits, p.requests_per_minute,
               (select coalesce(sum(u.executions), 0) from cue.usage_counters u
                 where u.account_id = a.id and u.month = cue.usage_month(p_now)) * 5 >= p.executions_per_month::bigint * 4 as usage_warning
          from cue.accounts a cross join lateral cue.limits_of(a) p where a.id = i.account_id
        limit 1) p on true)
  select case when p_limited and c.requests is not null and h.allowed is null then 'unavailable' when not h.allowed then 'rate_limit_exceeded' else c.error end,
         c.account_id, c.actor, c.scopes, c.plan, c.limits, c.usage_warning, c.requests, coalesce(h.remaining, c.requests),
         ceil(date_part('epoch', coalesce(h.reset_at, p_now)))::bigint, h.retry_after
    from (select k.*, count(k.requests) over (order by k.n) as place from callers k) c
    left join (
      -- With p_limited false it is not even called: rate_windows may be locked, or damaged.
      select * from cue.count_hits((select array_agg(c.subject order by c.n) from callers c where c.requests is not null),
                                   (select array_agg(c.requests order by c.n) from callers c where c.requests is not null), '1 minute', false, p_now)
       where p_limited offset 0) h on h.place = c.place and c.requests is not null
   where case when c.stale_key is not null and coalesce(h.allowed, c.requests is null or not p_limited) then cue.note_use(c.stale_key, p_now) else true end
   order by c.n;
end $$;
comment on function cue.admit is 'Checks credentials, scope, rate limit and usage of requests; one row each, in order.';
