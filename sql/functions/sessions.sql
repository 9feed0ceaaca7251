-- Sessions, and the one-time tokens that open them. Tokens are stored as SHA-256 only. Locks: the account first, then its tokens and
-- sessions. p_actor is the caller: 'session:ID' or 'key:ID'.

create or replace function cue.insert_session_token(
  p_account_id uuid, p_token_hash bytea, p_now timestamptz, p_scopes cue.key_scope[] default null
) returns void
language sql security definer as $$
  insert into cue.session_tokens (token_hash, account_id, expires_at, scopes)
  values (p_token_hash, p_account_id, p_now + interval '15 minutes', p_scopes)
$$;
comment on function cue.insert_session_token is 'Adds a one-time session token, valid for 15 minutes.';

create or replace function cue.take_session_token(p_token_hash bytea, p_now timestamptz default now()) returns cue.accounts
language plpgsql security definer as $$
declare
  a cue.accounts;
begin
  select a1.* into a from cue.session_tokens t join cue.accounts a1 on a1.id = t.account_id
   where t.token_hash = p_token_hash and t.expires_at > p_now for no key update of a1;
  delete from cue.session_tokens where token_hash = p_token_hash and expires_at > p_now;
  perform cue.refuse_if(not found, 'QU050', 'This session token is invalid, used or expired. Sign in again.');
  return a;
end $$;
comment on function cue.take_session_token is 'Uses up a one-time token and returns its account, locked; QU050 invalid.';

-- At most 1,000 per account and 20 per key, so that a key with few scopes cannot end the sessions of others: the oldest is removed.
create or replace function cue.add_session(
  p_account_id uuid, p_scopes cue.key_scope[], p_key_id uuid, p_lifetime interval, p_now timestamptz
) returns cue.sessions
language sql security definer as $$
  delete from cue.sessions where id = any (array(
    select id from cue.sessions where account_id = p_account_id and key_id = p_key_id order by created_at desc, id offset 19));
  delete from cue.sessions where id = any (array(
    select id from cue.sessions where account_id = p_account_id order by created_at desc, id offset 999));
  insert into cue.sessions (id, account_id, created_at, expires_at, scopes, key_id)
  values (gen_random_uuid(), p_account_id, p_now, p_now + p_lifetime, p_scopes, p_key_id)
  returning *
$$;
comment on function cue.add_session is 'Adds a session, with all scopes or those of its key.';

create or replace function cue.open_session(
  p_token_hash bytea, p_lifetime interval default '1 year', p_ip text default null, p_now timestamptz default now()
) returns table (session_id uuid, account_id uuid, email text, expires_at timestamptz)
language plpgsql security definer as $$
declare
  v_scopes cue.key_scope[] := (select t.scopes from cue.session_tokens t where t.token_hash = p_token_hash);
  a cue.accounts := cue.take_session_token(p_token_hash, p_now);
  s cue.sessions := cue.add_session(a.id, v_scopes, null, p_lifetime, p_now);
begin
  perform cue.record_event(a.id, 'session.created', 'session:' || s.id, p_ip, jsonb_build_object('session_id', s.id), p_now);
  return query select s.id, a.id, a.email, s.expires_at;
end $$;
comment on function cue.open_session is 'Opens a session with a one-time token; QU050 as take_session_token.';

create or replace function cue.open_key_session(
  p_key_hash bytea, p_lifetime interval default '1 year', p_ip text default null, p_now timestamptz default now()
) returns table (session_id uuid, account_id uuid, email text, expires_at timestamptz)
language plpgsql security definer as $$
declare
  a cue.accounts;
  k cue.api_keys;
  s cue.sessions;
begin
  select a1.* into a from cue.api_keys k1 join cue.accounts a1 on a1.id = k1.account_id
   where k1.key_hash = p_key_hash and k1.revoked_at is null for no key update of a1;
  select * into k from cue.api_keys where key_hash = p_key_hash and revoked_at is null;
  perform cue.refuse_if(not found, 'QU051', 'Invalid API key: mistyped, unknown or revoked.');
  s := cue.add_session(a.id, k.scopes, k.id, p_lifetime, p_now);
  perform cue.record_event(a.id, 'session.created', 'key:' || k.id, p_ip, jsonb_build_object('session_id', s.id, 'key_id', k.id), p_now);
  return query select s.id, a.id, a.email, s.expires_at;
end $$;
comment on function cue.open_key_session is 'Opens a session with an API key, which ends with the key; QU051 invalid.';

create or replace function cue.describe_session(p_account_id uuid, p_session_id uuid, p_user_agent text, p_ip text default null) returns void
language sql security definer as $$
  update cue.sessions set ip = p_ip, user_agent = left(p_user_agent, 300) where id = p_session_id and account_id = p_account_id
$$;
comment on function cue.describe_session is 'Records where a session was opened.';

-- A key must not approve by way of a session.
create or replace function cue.add_session_token(
  p_account_id uuid, p_token_hash bytea, p_now timestamptz default now(), p_may_approve boolean default false
) returns timestamptz
language sql security definer as $$
  select cue.insert_session_token((cue.lock_account(p_account_id)).id, p_token_hash, p_now, case when not p_may_approve then cue.default_scopes() end);
  select expires_at from cue.session_tokens where token_hash = p_token_hash
$$;
comment on function cue.add_session_token is 'Adds a one-time session token to an account and returns when it expires; its session has the scope approve with p_may_approve.';

-- The key comes from a file. One that is unknown is new; one that was revoked is refused, and the caller tries another.
create or replace function cue.open_local_account(
  p_account_id uuid, p_email text, p_key_hash bytea, p_prefix text, p_ciphertext text, p_token_hash bytea, p_now timestamptz default now()
) returns boolean
language plpgsql security definer as $$
declare
  a cue.accounts;
  k cue.api_keys;
begin
  loop
    select * into a from cue.accounts where lower(email) = lower(p_email) for no key update;
    exit when found;
    a := cue.insert_account(p_account_id, p_email, p_now);
    if a.id is not null then
      update cue.accounts
         set plan = 'scale', limits = '{"requests_per_minute": null, "cues": null, "executions_per_month": null, "fires_per_hour": null}'
       where id = a.id;
      k := cue.insert_key(a.id, 'default', p_key_hash, p_prefix, null, 'register', p_ciphertext, p_now);
      perform cue.record_event(a.id, 'account.registered', 'service', null, jsonb_build_object('key_id', k.id, 'prefix', k.prefix), p_now);
      exit;
    end if;
  end loop;
  if not exists (select from cue.api_keys where key_hash = p_key_hash) then
    k := cue.insert_key(a.id, 'local', p_key_hash, p_prefix, null, 'user', null, p_now);
    perform cue.record_event(a.id, 'key.created', 'service', null, jsonb_build_object('key_id', k.id, 'prefix', k.prefix), p_now);
  end if;
  if not exists (select from cue.api_keys where key_hash = p_key_hash and account_id = a.id and revoked_at is null) then return false; end if;
  perform cue.insert_session_token(a.id, p_token_hash, p_now);
  return true;
end $$;
comment on function cue.open_local_account is
  'Adds a key and a session token to an embedded database''s account, or creates it; false if the key was revoked.';

-- The old session stays valid for 24 hours: a lost response, or a second program that uses it, must not sign anyone out. One of a browser on
-- loopback is never renewed for longer than it was opened for.
create or replace function cue.refresh_session(p_account_id uuid, p_actor text, p_ip text default null, p_now timestamptz default now())
returns table (session_id uuid, account_id uuid, email text, expires_at timestamptz)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  a cue.accounts := cue.lock_account(p_account_id);
  former cue.sessions;
  s cue.sessions;
begin
  update cue.sessions set expires_at = least(expires_at, p_now + interval '24 hours')
   where account_id = a.id and 'session:' || id = p_actor and expires_at > p_now returning * into former;
  perform cue.refuse_if(not found, 'QU050', 'Only an active session can be refreshed. Sign in again.');
  s := cue.add_session(a.id, former.scopes, former.key_id,
    case when former.expires_at - former.created_at <= interval '12 hours' then interval '12 hours' else interval '1 year' end, p_now);
  perform cue.describe_session(a.id, s.id, former.user_agent, p_ip);
  perform cue.record_event(a.id, 'session.refreshed', p_actor, p_ip, jsonb_build_object('session_id', s.id), p_now);
  return query select s.id, a.id, a.email, s.expires_at;
end $$;
comment on function cue.refresh_session is 'Opens a session in place of the calling one; QU050 if that is not active.';

create or replace function cue.revoke_sessions(
  p_account_id uuid, p_all boolean, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns int
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  v_count int;
begin
  perform cue.refuse_if(not p_all and p_actor not like 'session:%', 'QU050',
    'An API key is not a session. Add ?all=true to end all sessions of the account.');
  delete from cue.sessions where account_id = a.id and (p_all or 'session:' || id = p_actor);
  get diagnostics v_count = row_count;
  if p_all then
    delete from cue.session_tokens where account_id = a.id;
  end if;
  perform cue.record_event(a.id, 'session.revoked', p_actor, p_ip, jsonb_build_object('all', p_all, 'count', v_count), p_now);
  return v_count;
end $$;
comment on function cue.revoke_sessions is 'Ends the calling session, or all; returns how many; QU050 if a key calls.';

create or replace function cue.revoke_session(
  p_account_id uuid, p_session_id uuid, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
begin
  delete from cue.sessions where account_id = a.id and id = p_session_id and expires_at > p_now;
  perform cue.refuse_if(not found, 'QU028', format('session %s not found', p_session_id));
  perform cue.record_event(a.id, 'session.revoked', p_actor, p_ip,
    jsonb_build_object('all', false, 'count', 1, 'session_id', p_session_id), p_now);
end $$;
comment on function cue.revoke_session is 'Ends one session of the account; QU028 if it is not found or has ended.';

-- The key has the scopes read, write and worker, but not account. The token is not used up on QU031.
create or replace function cue.exchange_session_token(
  p_token_hash bytea, p_client_id text, p_label text, p_key_hash bytea, p_prefix text, p_ip text default null,
  p_now timestamptz default now()
) returns table (account_id uuid, key_id uuid, scopes text[])
language plpgsql security definer as $$
declare
  a cue.accounts := cue.take_session_token(p_token_hash, p_now);
  k cue.api_keys;
begin
  perform cue.require_within('keys:' || a.id, 10, '1 hour', 'Key limit reached: 10 new keys per hour.', p_now);
  k := cue.insert_key(a.id, p_label, p_key_hash, p_prefix, '{read,write,worker}', 'mcp-exchange', null, p_now);
  perform cue.record_event(a.id, 'key.created', 'client:' || p_client_id, p_ip,
    jsonb_build_object('key_id', k.id, 'prefix', k.prefix, 'label', k.label, 'scopes', k.scopes, 'client_id', p_client_id), p_now);
  return query select a.id, k.id, k.scopes::text[];
end $$;
comment on function cue.exchange_session_token is 'Creates a key for a one-time token; QU050 invalid, QU031 limit.';
