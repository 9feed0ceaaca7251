-- Authentication and rate limits. A refusal is a result, not an error: an error would roll back the count. Locks: rate windows by subject,
-- then API keys, skipping locked ones. Functions that serve several callers never wait long for one of them.

-- Exact under concurrency: never more than p_limit in any p_window (at most ten days). Limits above 500 store several hits per entry, and
-- an entry expires with its latest hit: up to 1/500 too strict, never too lenient.
-- reset_at is the time the next hit expires; retry_after is in seconds, and null when allowed. The window stays locked until the caller's
-- transaction ends. With p_wait false, a window locked for longer than lock_timeout returns allowed = null and counts nothing; otherwise it
-- raises an error.
create or replace function cue.count_hit(p_subject text, p_limit int, p_window interval, p_wait boolean, p_now timestamptz)
returns table (allowed boolean, remaining int, reset_at timestamptz, retry_after int)
language plpgsql security definer as $$
declare
  w cue.rate_windows;
  v_window bigint := date_part('epoch', p_window) * 1000;
  v_weight int := (p_limit::bigint + 499) / 500;
  v_at bigint;
  v_used int;
begin
  select * into w from cue.rate_windows where subject = p_subject for update skip locked;
  if not found then
    begin
      select * into w from cue.rate_windows where subject = p_subject for update;
      if not found then
        insert into cue.rate_windows values (p_subject, p_now, '{}', 0, v_weight, p_now)
        on conflict (subject) do update set subject = excluded.subject -- another transaction is adding the row: wait for it and lock it
        returning * into w;
      end if;
    exception when lock_not_available then
      if p_wait then raise; end if;
      remaining := p_limit;
      reset_at := p_now;
      return next;
      return;
    end;
  end if;
  if w.weight <> v_weight then
    w.hits := '{}';
  end if;
  v_at := date_part('epoch', p_now - w.started_at) * 1000;
  if v_at not between coalesce(w.hits[cardinality(w.hits)], 0) - v_window and 1000000000 then
    -- Days have passed, or the clock was set back: rebase the hits still within the window on a new start.
    w.hits := array(select h - v_at + v_window from unnest(w.hits) as h where h > v_at - v_window and h <= v_at order by h);
    w.started_at := p_now - p_window;
    v_at := v_window;
  end if;
  -- A caller that waited for the lock has an earlier p_now than the hits recorded meanwhile.
  v_at := greatest(v_at, w.hits[cardinality(w.hits)]);
  w.hits := w.hits[width_bucket((v_at - v_window)::int, w.hits) + 1:];
  v_used := case when cardinality(w.hits) = 0 then 0 else (cardinality(w.hits) - 1) * v_weight + w.newest end;
  allowed := v_used < p_limit;
  if allowed then
    if v_used = 0 or w.newest = v_weight then
      w.hits := w.hits || v_at::int;
      w.newest := 1;
    else
      w.hits[cardinality(w.hits)] := v_at;
      w.newest := w.newest + 1;
    end if;
    v_used := v_used + 1;
    update cue.rate_windows
       set started_at = w.started_at, hits = w.hits, newest = w.newest, weight = v_weight, expires_at = p_now + p_window
     where subject = p_subject;
  end if;
  remaining := greatest(p_limit - v_used, 0);
  reset_at := w.started_at + (w.hits[greatest(v_used - p_limit, 0) / v_weight + 1] + v_window) * interval '1 millisecond';
  -- A caller that waited for the row has an earlier p_now: never return more than the window.
  retry_after := case when not allowed then
    least(greatest(ceil(date_part('epoch', reset_at - p_now)), 1), ceil(date_part('epoch', p_window))) end;
  return next;
end $$;
comment on function cue.count_hit is
  'Counts one hit of a subject against a sliding window unless the window is full; allowed is null if another transaction holds the '
  'window.';

create or replace function cue.allow(p_subject text, p_limit int, p_window interval default '1 hour', p_now timestamptz default now())
returns table (allowed boolean, remaining int, reset_at timestamptz, retry_after int)
language sql security definer as $$
  select * from cue.count_hit(p_subject, p_limit, p_window, true, p_now)
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
-- that request on its own). With p_limited false nothing is counted. Windows are locked in their own order.
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
  with callers as (
    select q.*, i.*, p.plan, coalesce(p.requests_per_minute, 60) as requests, coalesce(p.usage_warning, false) as usage_warning
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
  asked as materialized (
    select c.*, w.* from (select *, coalesce(subject, 'address:' || address) as counted from callers order by counted offset 0) c
     cross join lateral (
       select w.allowed, w.remaining, w.reset_at, w.retry_after from cue.count_hit(c.counted, c.requests, '1 minute', false, p_now) w
        where p_limited
       union all
       select true, c.requests, p_now, null where not p_limited) w),
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

-- Saves a round trip for the most frequent read.
create or replace function cue.admit_and_read_cues(
  p_key_hashes bytea[], p_session_ids uuid[], p_execution_ids uuid[], p_addresses text[], p_scopes text[], p_cue_ids text[],
  p_limited boolean default true, p_now timestamptz default now()
) returns table (
  error text, account_id uuid, actor text, scopes text[], plan cue.plan, usage_warning boolean,
  rate_limit int, rate_remaining int, rate_reset bigint, retry_after int, cue json
)
language plpgsql security definer as $$
declare
  v_tomorrow uuid := cue.uuid_v7_floor(p_now + interval '1 day');
begin
  return query
  select a.error, a.account_id, a.actor, a.scopes, a.plan, a.usage_warning, a.rate_limit, a.rate_remaining, a.rate_reset, a.retry_after,
         (select row_to_json(d) from cue.cue_detail(a.account_id, a.cue_id, v_tomorrow) d where a.error is null)
    from rows from (cue.admit(p_key_hashes, p_session_ids, p_execution_ids, p_addresses, p_scopes, p_limited, p_now), unnest(p_cue_ids))
           as a (error, account_id, actor, scopes, plan, usage_warning, rate_limit, rate_remaining, rate_reset, retry_after, cue_id);
end $$;
comment on function cue.admit_and_read_cues is
  'Admits requests like cue.admit and returns the cue that each asks for as JSON, or null if refused or not found.';
