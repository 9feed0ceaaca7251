-- Who may come in, and how often. Nothing here raises to refuse: that would take back what was counted. Locks: one rate window, then an
-- API key, but only one that nobody holds.

-- Counts one hit of a subject against a sliding window, unless that is full. Exact, however many ask at once: never more than p_limit in
-- any p_window (at most ten days). Limits above 500 are kept in entries of several hits that leave together with their latest: too strict
-- by up to a five-hundredth, never too lenient. reset_at is when the next hit leaves; retry_after is in seconds, null when allowed. The
-- window stays locked until the caller's transaction ends.
create or replace function cue.allow(p_subject text, p_limit int, p_window interval default '1 hour', p_now timestamptz default now())
returns table (allowed boolean, remaining int, reset_at timestamptz, retry_after int)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  w cue.rate_windows;
  v_window bigint := extract(epoch from p_window) * 1000;
  v_weight int := (p_limit::bigint + 499) / 500;
  v_at bigint;
  v_used int;
begin
  select * into w from cue.rate_windows where subject = p_subject for update;
  if not found then
    insert into cue.rate_windows values (p_subject, p_now, '{}', 0, v_weight, p_now)
    on conflict (subject) do update set subject = excluded.subject -- somebody else just made it: wait, and lock that
    returning * into w;
  end if;
  if w.weight <> v_weight then
    w.hits := '{}';
  end if;
  v_at := extract(epoch from p_now - w.started_at) * 1000;
  if v_at not between coalesce(w.hits[cardinality(w.hits)], 0) - v_window and 1000000000 then
    -- Days have passed, or the clock was set back: count from another start what still lies within the window.
    w.hits := array(select h - v_at + v_window from unnest(w.hits) as h where h > v_at - v_window and h <= v_at order by h);
    w.started_at := p_now - p_window;
    v_at := v_window;
  end if;
  -- Who waited for the lock asked earlier than those before him.
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
  -- Whoever waited for the row asks as of before, and is told no more than the window.
  retry_after := case when not allowed then
    least(greatest(ceil(extract(epoch from reset_at - p_now)), 1), ceil(extract(epoch from p_window))) end;
  return next;
end $$;
comment on function cue.allow is 'Counts one hit against a sliding window, and says whether it is within the limit.';

-- The one round trip before every request: who asks (an API key by its hash, or the session or execution whose token was verified), whether
-- that may do what p_scope names ('any': whatever it may do; null: nobody need ask), whether the window has room, and whether the month's
-- executions run out. Keys and tokens have a window each, by the account's plan, and the sessions of an account one together, since each can
-- make others; all else counts by address, unknown keys too, or they would fill the table. error is null, rate_limit_exceeded (retry_after: seconds), not_authenticated, invalid_api_key or insufficient_scope. Without p_limited
-- nothing is counted.
create or replace function cue.admit(
  p_key_hash bytea, p_session_id uuid, p_execution_id uuid, p_address text, p_scope text, p_limited boolean default true,
  p_now timestamptz default now()
) returns table (
  error text, account_id uuid, actor text, scopes text[], plan cue.plan, usage_warning boolean,
  rate_limit int, rate_remaining int, rate_reset bigint, retry_after int
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_key_id uuid;
  v_stale boolean;
  v_reset_at timestamptz := p_now;
  v_allowed boolean := true;
begin
  if p_key_hash is not null then
    select k.id, 'key:' || k.id, k.account_id, k.scopes, k.last_used_at is null or k.last_used_at < p_now - interval '1 minute'
      into v_key_id, actor, account_id, scopes, v_stale
      from cue.api_keys k where k.key_hash = p_key_hash and k.revoked_at is null;
  elsif p_session_id is not null then
    select 'session:' || s.id, s.account_id, enum_range(null::cue.key_scope) into actor, account_id, scopes
      from cue.sessions s where s.id = p_session_id and s.expires_at > p_now;
  elsif p_execution_id is not null then
    select 'execution:' || e.id, e.account_id, '{read,worker}' into actor, account_id, scopes
      from cue.executions e join cue.cues c on c.id = e.cue_id
     where e.id = p_execution_id and c.deleted_at is null and (e.ended_at is null or e.ended_at > p_now - interval '24 hours');
  end if;
  if account_id is not null then
    select a.plan, p.requests_per_minute, 5 * u.used >= 4 * p.executions_per_month::bigint into plan, rate_limit, usage_warning
      from cue.accounts a join cue.plans p on p.plan = a.plan, lateral (
             select coalesce(sum(c.executions), 0) as used from cue.usage_counters c
              where c.account_id = a.id and c.month = cue.usage_month(p_now)) u
     where a.id = admit.account_id;
  else
    rate_limit := 60;
    usage_warning := false;
  end if;
  rate_remaining := rate_limit;
  if p_limited then
    select w.allowed, w.remaining, w.reset_at, w.retry_after into v_allowed, rate_remaining, v_reset_at, admit.retry_after
      from cue.allow(coalesce(case when actor like 'session:%' then 'sessions:' || account_id else actor end, 'address:' || p_address),
                     rate_limit, '1 minute', p_now) w;
  end if;
  rate_reset := ceil(extract(epoch from v_reset_at));
  error := case
    when not v_allowed then 'rate_limit_exceeded'
    when p_scope is null then null
    when account_id is null then case when p_key_hash is null and p_execution_id is null then 'not_authenticated' else 'invalid_api_key' end
    when p_scope <> 'any' and p_scope <> all (scopes) then 'insufficient_scope' end;
  if v_stale and v_allowed then
    -- Once a minute for each key, without waiting for another request or for the disk: the latest minute may get lost in a crash.
    perform set_config('synchronous_commit', 'off', true);
    update cue.api_keys set last_used_at = p_now
     where id = (select k.id from cue.api_keys k where k.id = v_key_id for no key update skip locked);
  end if;
  return next;
end $$;
comment on function cue.admit is 'Checks key, scope, request limit and usage for one request.';

-- The same for many requests at once, in the order of the windows that they lock. question tells which of them an answer is for, from 1.
create or replace function cue.admit_all(
  p_key_hashes bytea[], p_session_ids uuid[], p_execution_ids uuid[], p_addresses text[], p_scopes text[], p_limited boolean default true,
  p_now timestamptz default now()
) returns table (
  question bigint, error text, account_id uuid, actor text, scopes text[], plan cue.plan, usage_warning boolean,
  rate_limit int, rate_remaining int, rate_reset bigint, retry_after int
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
  set plan_cache_mode = force_generic_plan as $$
begin
  return query
  select q.n, a.*
    from (select u.*,
                 coalesce((select 'key:' || k.id from cue.api_keys k where k.key_hash = u.key_hash and k.revoked_at is null),
                          (select 'sessions:' || s.account_id from cue.sessions s where s.id = u.session_id),
                          (select 'execution:' || e.id from cue.executions e where e.id = u.execution_id),
                          'address:' || u.address) as subject
            from unnest(p_key_hashes, p_session_ids, p_execution_ids, p_addresses, p_scopes)
                 with ordinality as u (key_hash, session_id, execution_id, address, scope, n)
           order by subject offset 0) q
   cross join lateral cue.admit(q.key_hash, q.session_id, q.execution_id, q.address, q.scope, p_limited, p_now) a;
end $$;
comment on function cue.admit_all is 'Checks key, scope, request limit and usage for many requests at once.';
