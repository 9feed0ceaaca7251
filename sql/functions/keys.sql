-- API keys. The caller generates, hashes and encrypts a key's text, which never gets here. Locks: the account first, so that an account's
-- keys change one after the other, then the key, then a rate window.

-- With p_ciphertext it is the account's default key, which can be revealed.
create or replace function cue.insert_key(
  p_account_id uuid, p_label text, p_key_hash bytea, p_prefix text, p_scopes cue.key_scope[], p_created_by cue.key_origin,
  p_ciphertext text, p_now timestamptz
) returns cue.api_keys
language sql security definer as $$
  insert into cue.api_keys (id, account_id, key_hash, prefix, label, scopes, created_by, is_default, ciphertext, created_at)
  values (cue.uuid_v7(p_now), p_account_id, p_key_hash, p_prefix, p_label,
          array(select distinct s from unnest(coalesce(p_scopes, cue.default_scopes())) as s order by s),
          p_created_by, p_ciphertext is not null, p_ciphertext, p_now)
  returning *
$$;
comment on function cue.insert_key is 'Adds an API key to an account that the caller has locked; without p_scopes, it cannot approve.';

create or replace function cue.create_key(
  p_account_id uuid, p_label text, p_key_hash bytea, p_prefix text, p_scopes cue.key_scope[] default null,
  p_actor text default session_user, p_ip text default null, p_now timestamptz default now(), p_may_approve boolean default false
) returns uuid
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  k cue.api_keys;
begin
  perform cue.refuse_if('approve' = any (p_scopes) and not p_may_approve, 'QU052',
    'Only a signed-in person, or a key with scope approve, can create a key with scope approve.');
  perform cue.require_within('keys:' || a.id, 10, '1 hour', 'Key limit reached: 10 new keys per hour.', p_now);
  k := cue.insert_key(a.id, p_label, p_key_hash, p_prefix, p_scopes, 'user', null, p_now);
  perform cue.record_event(a.id, 'key.created', p_actor, p_ip,
    jsonb_build_object('key_id', k.id, 'prefix', k.prefix, 'label', k.label, 'scopes', k.scopes), p_now);
  return k.id;
end $$;
comment on function cue.create_key is 'Creates an API key and returns its id; QU031 above ten per hour, QU052 for scope approve without p_may_approve.';

-- Revoked keys too: people recognise them by their label.
create or replace function cue.rename_key(
  p_account_id uuid, p_key_id uuid, p_label text, p_actor text default session_user, p_ip text default null,
  p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  k cue.api_keys;
begin
  update cue.api_keys set label = p_label where id = p_key_id and account_id = a.id returning * into k;
  perform cue.refuse_if(not found, 'QU004', format('key %s not found', p_key_id));
  perform cue.record_event(a.id, 'key.renamed', p_actor, p_ip, jsonb_build_object('key_id', k.id, 'label', k.label), p_now);
end $$;
comment on function cue.rename_key is 'Changes the label of an API key; QU004 if not found.';

-- Revoking a key again changes nothing.
create or replace function cue.revoke_key(
  p_account_id uuid, p_key_id uuid, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns timestamptz
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  k cue.api_keys;
begin
  select * into k from cue.api_keys where id = p_key_id and account_id = a.id for no key update;
  perform cue.refuse_if(not found, 'QU004', format('key %s not found', p_key_id));
  if k.revoked_at is null then
    perform cue.refuse_if(not exists (select from cue.api_keys where account_id = a.id and id <> k.id and revoked_at is null), 'QU041',
      'The last active key cannot be revoked. Create another key first.');
    update cue.api_keys set revoked_at = p_now, ciphertext = null where id = k.id returning * into k;
    delete from cue.sessions where account_id = a.id and key_id = k.id;
    perform cue.record_event(a.id, 'key.revoked', p_actor, p_ip, jsonb_build_object('key_id', k.id, 'prefix', k.prefix), p_now);
  end if;
  return k.revoked_at;
end $$;
comment on function cue.revoke_key is 'Revokes an API key with its sessions; QU004 not found, QU041 the last one.';

-- If all keys were revoked, as a session can see, the account gets a new one; the result is then null. It is the default key, which cannot approve.
create or replace function cue.regenerate_key(
  p_account_id uuid, p_key_hash bytea, p_prefix text, p_ciphertext text, p_actor text default session_user, p_ip text default null,
  p_now timestamptz default now()
) returns uuid
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  old cue.api_keys;
  k cue.api_keys;
begin
  perform cue.refuse_if((select count(*) from cue.api_keys where account_id = a.id and revoked_at is null) > 1, 'QU042',
    'The account has more than one active key. Create keys with POST /v1/auth/keys and revoke them with DELETE /v1/auth/keys/{key_id}.');
  perform cue.require_within('keys:' || a.id, 10, '1 hour', 'Key limit reached: 10 new keys per hour.', p_now);
  update cue.api_keys set revoked_at = p_now, ciphertext = null where account_id = a.id and revoked_at is null returning * into old;
  delete from cue.sessions where account_id = a.id and key_id = old.id;
  k := cue.insert_key(a.id, coalesce(old.label, 'default'), p_key_hash, p_prefix,
                      case when old.scopes = '{approve}' then '{read}' else array_remove(old.scopes, 'approve') end,
                      coalesce(old.created_by, 'user'), p_ciphertext, p_now);
  perform cue.record_event(a.id, 'key.regenerated', p_actor, p_ip,
    jsonb_build_object('key_id', k.id, 'prefix', k.prefix, 'replaced_key_id', old.id), p_now);
  return old.id;
end $$;
comment on function cue.regenerate_key is 'Replaces an account''s only key; returns the old one''s id; QU042 if several.';

create or replace function cue.reveal_key(
  p_account_id uuid, p_encryption_key_ids text[], p_actor text default session_user, p_ip text default null,
  p_now timestamptz default now()
) returns table (key_prefix text, ciphertext text)
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  k cue.api_keys;
begin
  select * into k from cue.api_keys where account_id = a.id and is_default and revoked_at is null;
  perform cue.refuse_if('key:' || k.id = p_actor, 'QU050', 'The default key cannot reveal itself. Use a session or another key.');
  perform cue.refuse_if(k.ciphertext is null or split_part(k.ciphertext, '.', 1) <> all (p_encryption_key_ids), 'QU053',
    'The default key can no longer be shown. Create or regenerate a key.');
  perform cue.record_event(a.id, 'key.revealed', p_actor, p_ip, jsonb_build_object('key_id', k.id, 'prefix', k.prefix), p_now);
  return query select k.prefix, k.ciphertext;
end $$;
comment on function cue.reveal_key is 'Returns the default key, encrypted; QU050 for itself, QU053 if not decryptable.';
