-- Accounts, their secrets and the audit log. Locks: the account first, then its keys, then a rate window.
-- p_actor is the caller ('key:ID', 'session:ID'); in psql it is the database user.

create or replace function cue.record_event(
  p_account_id uuid, p_event cue.audit_event, p_actor text, p_ip text, p_detail jsonb default '{}', p_now timestamptz default now()
) returns void
language sql security definer as $$
  insert into cue.audit_events (id, account_id, event, actor, ip, detail, created_at)
  values (cue.uuid_v7(p_now), p_account_id, p_event, p_actor, p_ip, p_detail, p_now);
  select cue.add_credential_events(p_account_id, p_event, p_detail, p_now);
$$;
comment on function cue.record_event is 'Adds an entry to an account''s audit log, and the events that go with it.';

-- Operations and sets of declared cues have one entry for all that they change: they pass no actor. Called when the cues are written, or before they
-- are deleted, since events show them.
create or replace function cue.record_cue_events(
  p_account_ids uuid[], p_event cue.audit_event, p_actors text[], p_cue_ids text[], p_detail jsonb, p_now timestamptz
) returns void
language plpgsql security definer as $$
begin
  insert into cue.audit_events (id, account_id, event, actor, detail, created_at)
  select n.id, n.account_id, p_event, n.actor, p_detail || jsonb_build_object('cue_id', n.cue_id), p_now
    from unnest(cue.uuids_v7(cardinality(p_cue_ids), p_now), p_account_ids, p_actors, p_cue_ids) as n (id, account_id, actor, cue_id)
   where n.actor is not null and n.cue_id is not null;
  perform cue.add_cue_events(p_event::text::cue.event_type, p_cue_ids, p_now);
end $$;
comment on function cue.record_cue_events is 'Adds an event about each cue and, unless its actor is null, an entry to the audit log of its account.';

-- Every change to an account, its keys or its secrets starts here, so that such changes run one after the other.
create or replace function cue.lock_account(p_account_id uuid) returns cue.accounts
language plpgsql security definer as $$
declare
  a cue.accounts;
begin
  select * into a from cue.accounts where id = p_account_id for no key update;
  perform cue.refuse_if(not found, 'QU051', 'This account no longer exists.');
  return a;
end $$;
comment on function cue.lock_account is 'Locks and returns an account; QU051 if it no longer exists.';

-- A random UUID has 122 random bits, so three of them exceed the 256 bits of the result.
create or replace function cue.new_secret() returns text
language sql volatile security definer as $$
  select encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex')
$$;
comment on function cue.new_secret is 'Returns a random secret of 64 hex digits.';

-- Known before the account is added, because its key is encrypted for it.
create or replace function cue.new_account_id(p_now timestamptz default now()) returns uuid
language sql volatile security definer as $$ select cue.uuid_v7(p_now) $$;
comment on function cue.new_account_id is 'Returns the id for a new account.';

create or replace function cue.insert_account(p_account_id uuid, p_email text, p_now timestamptz) returns cue.accounts
language plpgsql security definer as $$
declare
  a cue.accounts;
begin
  perform cue.lock_address(p_email);
  perform cue.refuse_if(exists (select from cue.directory where email_hash = cue.email_hash(p_email) and cell <> cue.cell_id()), 'QU014',
    'Another cell has this email address. Try again.');
  insert into cue.accounts (id, email, webhook_secret, created_at, updated_at)
  values (p_account_id, p_email, 'whsec_' || cue.new_secret(), p_now, p_now)
  on conflict do nothing returning * into a;
  return a;
end $$;
comment on function cue.insert_account is 'Adds an account without a key; null if its email address is taken; QU014 by another cell.';

-- Known email addresses count towards the limit, too: an error would undo that, so they have no row. A null p_address means no limit. The new
-- account's id is part of p_ciphertext.
create or replace function cue.register(
  p_account_id uuid, p_email text, p_key_hash bytea, p_prefix text, p_ciphertext text, p_address text default null, p_ip text default null,
  p_now timestamptz default now()
) returns setof cue.accounts
language plpgsql security definer as $$
declare
  a cue.accounts;
  k cue.api_keys;
begin
  perform cue.require_within('register:' || p_address, 5, '1 hour', 'Registration limit reached: 5 accounts per hour from one address.', p_now);
  a := cue.insert_account(p_account_id, p_email, p_now);
  if a.id is null then return; end if;
  k := cue.insert_key(a.id, 'default', p_key_hash, p_prefix, null, 'register', p_ciphertext, p_now);
  perform cue.record_event(a.id, 'account.registered', 'anonymous', p_ip, jsonb_build_object('key_id', k.id, 'prefix', k.prefix), p_now);
  perform cue.add_job('mails', jsonb_build_object('kind', 'registered', 'account_id', a.id, 'key_id', k.id));
  return next a;
end $$;
comment on function cue.register is 'Creates an account with a key, and queues its first mail; no row if the address is taken.';

-- The caller has verified the signed link that contains the id.
create or replace function cue.confirm_email(p_account_id uuid, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  update cue.accounts set email_confirmed_at = coalesce(email_confirmed_at, p_now) where id = p_account_id;
  perform cue.refuse_if(not found, 'QU007', 'This account no longer exists.');
end $$;
comment on function cue.confirm_email is 'Records that an account''s email address is confirmed; QU007 if the account no longer exists.';

create or replace function cue.is_email_confirmed(p_account_id uuid) returns boolean
language sql stable security definer as $$
  select exists (select from cue.accounts where id = p_account_id and email_confirmed_at is not null)
$$;
comment on function cue.is_email_confirmed is 'Returns whether an account''s email address is confirmed.';

-- Turning memory_block_enabled on creates the weekly cue, and turning it off removes it.
create or replace function cue.update_account(
  p_account_id uuid, p_changes jsonb, p_actor text default session_user, p_ip text default null, p_now timestamptz default now(),
  p_may_approve boolean default false
) returns void
language plpgsql security definer as $$
declare
  old cue.accounts := cue.lock_account(p_account_id);
  a cue.accounts := jsonb_populate_record(old, p_changes);
begin
  perform cue.refuse_if(p_changes ? 'approvals_by_link' and not p_may_approve, 'QU076',
    'Only a signed-in person, or a key with scope approve, can change approvals_by_link.');
  update cue.accounts
     set memory_block_enabled = a.memory_block_enabled, alert_webhook_url = nullif(a.alert_webhook_url, ''),
         webhook_authorization = a.webhook_authorization, approvals_by_link = a.approvals_by_link, updated_at = p_now
   where id = old.id;
  perform cue.record_event(old.id, 'account.updated', p_actor, p_ip,
    jsonb_build_object('fields', (select jsonb_agg(f.name order by f.name) from jsonb_object_keys(p_changes) as f (name))), p_now);
  if p_changes ? 'events' then perform cue.subscribe(old.id, 'account', p_changes ->> 'events' = 'all'); end if;
  if p_changes ->> 'memory_block_enabled' = 'true' then
    perform cue.start_memory(old.id, p_now);
  elsif p_changes ->> 'memory_block_enabled' = 'false' then
    -- Versions are kept, so that a version number is never reused.
    delete from cue.memory_subscriptions where account_id = old.id;
    perform cue.remove_cues(old.id, array(
      select id from cue.cues where account_id = old.id and memory_check and deleted_at is null), p_now, null, true);
  end if;
end $$;
comment on function cue.update_account is 'Changes the settings of an account that p_changes names; an empty alert_webhook_url removes it; QU076 for approvals_by_link without p_may_approve.';

create or replace function cue.webhook_secret(p_account_id uuid) returns text
language sql stable security definer as $$
  select webhook_secret from cue.accounts where id = p_account_id
$$;
comment on function cue.webhook_secret is 'Returns the secret that signs an account''s webhooks.';

-- Secrets before the old one never sign again.
create or replace function cue.regenerate_webhook_secret(
  p_account_id uuid, p_overlap_seconds int default 0, p_actor text default session_user, p_ip text default null,
  p_now timestamptz default now()
) returns text
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  v_secret text := 'whsec_' || cue.new_secret();
begin
  update cue.accounts
     set webhook_secret = v_secret, updated_at = p_now,
         previous_webhook_secret = case when p_overlap_seconds > 0 then a.webhook_secret end,
         previous_webhook_secret_until = case when p_overlap_seconds > 0 then p_now + p_overlap_seconds * interval '1 second' end
   where id = a.id;
  perform cue.record_event(a.id, 'webhook_secret.regenerated', p_actor, p_ip,
    jsonb_build_object('overlap_seconds', p_overlap_seconds), p_now);
  return v_secret;
end $$;
comment on function cue.regenerate_webhook_secret is 'Replaces an account''s webhook secret and returns the new one.';

create or replace function cue.alert_webhook_secret(
  p_account_id uuid, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns text
language plpgsql security definer as $$
declare
  a cue.accounts;
begin
  select * into a from cue.accounts where id = p_account_id;
  if a.alert_webhook_secret is null then
    a := cue.lock_account(p_account_id);
  end if;
  if a.alert_webhook_secret is null then
    update cue.accounts set alert_webhook_secret = cue.new_secret(), updated_at = p_now where id = a.id returning * into a;
    perform cue.record_event(a.id, 'alert_webhook_secret.created', p_actor, p_ip, '{}', p_now);
  end if;
  return a.alert_webhook_secret;
end $$;
comment on function cue.alert_webhook_secret is 'Returns the secret that signs an account''s alert webhooks, creating it on first use.';

create or replace function cue.regenerate_alert_webhook_secret(
  p_account_id uuid, p_overlap_seconds int default 0, p_actor text default session_user, p_ip text default null,
  p_now timestamptz default now()
) returns text
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  v_overlap boolean := p_overlap_seconds > 0 and a.alert_webhook_secret is not null;
  v_secret text := cue.new_secret();
begin
  update cue.accounts
     set alert_webhook_secret = v_secret, updated_at = p_now,
         previous_alert_webhook_secret = case when v_overlap then a.alert_webhook_secret end,
         previous_alert_webhook_secret_until = case when v_overlap then p_now + p_overlap_seconds * interval '1 second' end
   where id = a.id;
  perform cue.record_event(a.id, 'alert_webhook_secret.regenerated', p_actor, p_ip,
    jsonb_build_object('overlap_seconds', p_overlap_seconds), p_now);
  return v_secret;
end $$;
comment on function cue.regenerate_alert_webhook_secret is 'Replaces an account''s alert webhook secret.';

-- Call cue.alert_webhook_secret first: it creates the secret if there is none.
create or replace function cue.alert_signing_secrets(a cue.accounts, p_now timestamptz) returns text[]
language sql immutable as $$
  select case when a.previous_alert_webhook_secret_until > p_now then array[a.alert_webhook_secret, a.previous_alert_webhook_secret]
              else array[a.alert_webhook_secret] end
$$;
comment on function cue.alert_signing_secrets is 'Returns the secrets that sign an account''s alert webhooks now, current one first.';

-- Only accounts that added more than 20 entries in two hours are checked: reading every account's log would cost too much. Each kind is counted
-- by itself, since a key with few scopes can add entries of some kinds only.
create or replace function cue.prune_audit(p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_account uuid;
begin
  for v_account in
    select account_id from cue.audit_events where created_at > p_now - interval '2 hours' group by account_id having count(*) > 20
  loop
    delete from cue.audit_events where id = any (array(
       select id from (
         select id, row_number() over (partition by event order by seq desc) as nth from cue.audit_events
          where account_id = v_account
            and (event in ('account.updated', 'key.renamed', 'key.revealed', 'webhook_secret.regenerated',
                           'alert_webhook_secret.regenerated', 'session.refreshed', 'session.revoked', 'cue.created', 'cue.updated',
                           'cue.paused', 'cue.resumed', 'cue.deleted', 'cues.applied', 'operation.created', 'channel.set', 'channel.deleted',
                           'event_endpoint.created', 'event_endpoint.deleted', 'event_endpoint.enabled', 'event_endpoint.disabled')
                 or event = 'session.created' and detail ? 'key_id')) e
        where nth > 10000));
  end loop;
end $$;
comment on function cue.prune_audit is 'Removes repeatable events from an account''s audit log, except the newest 10,000 of each kind.';
