-- Sign-in on one device with a link opened on another. The device generates a code and polls; a person opens the code's page, enters an
-- email address, and confirms with the link mailed to it. Codes are stored as SHA-256 only. An unknown code costs one index lookup and
-- writes nothing. Locks: the account first, then the code, then a rate window.

-- Only codes that are created count towards the limit. A null p_address means no limit.
create or replace function cue.create_device_code(
  p_code_hash bytea, p_address text default null, p_ip text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
begin
  perform cue.require_within('device:' || p_address, 5, '1 hour', 'Device code limit reached: 5 per hour from one address.', p_now);
  delete from cue.device_codes where code_hash = p_code_hash and expires_at <= p_now;
  insert into cue.device_codes (code_hash, ip, created_at, expires_at) values (p_code_hash, p_ip, p_now, p_now + interval '15 minutes')
  on conflict do nothing;
  perform cue.refuse_if(not found, 'QU072', 'This device code is already in use. Generate a new one.');
end $$;
comment on function cue.create_device_code is 'Starts a sign-in with a device''s code; QU031 above the limit, QU072 in use.';

create or replace function cue.device_code_status(p_code_hash bytea, p_now timestamptz default now()) returns text
language sql stable security definer as $$
  select coalesce((select status::text from cue.device_codes where code_hash = p_code_hash and expires_at > p_now), 'expired')
$$;
comment on function cue.device_code_status is 'Returns a sign-in''s status, expired also if unknown.';

-- Behaves the same whether or not the address has an account.
create or replace function cue.send_device_link(
  p_code_hash bytea, p_email text, p_code_ciphertext text, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  d cue.device_codes;
begin
  select * into d from cue.device_codes where code_hash = p_code_hash for update;
  perform cue.refuse_if(not found, 'QU070', 'Unknown device code. Start again on the device.');
  perform cue.refuse_if(d.expires_at <= p_now, 'QU071', 'This device code has expired. Start again on the device.');
  perform cue.refuse_if(d.status <> 'pending' or d.cell is not null, 'QU073', 'The sign-in email for this device code was already sent.');
  perform cue.require_within(cue.email_window(p_email), 3, '1 hour', 'Email limit reached: 3 per hour to one address.', p_now);
  update cue.device_codes
     set status = 'email_sent', email = p_email, code_ciphertext = p_code_ciphertext, link_id = gen_random_uuid()
   where code_hash = d.code_hash returning * into d;
  perform cue.add_job('magic_links', jsonb_build_object('kind', 'magic_link', 'link_id', d.link_id));
end $$;
comment on function cue.send_device_link is 'Queues the mail with a sign-in''s link; QU070, QU071, QU073 or QU031.';

-- It contains a hash rather than the address.
create or replace function cue.email_window(p_email text) returns text
language sql immutable security definer as $$
  select 'mail:' || encode(sha256(convert_to(lower(p_email), 'UTF8')), 'hex')
$$;
comment on function cue.email_window is 'Returns the rate window''s subject for mails to an address.';

create or replace function cue.device_link(p_code_hash bytea, p_link_id uuid, p_now timestamptz default now())
returns table (status text, email text, ip text, created_at timestamptz, account_created_at timestamptz, active_keys int)
language sql stable security definer as $$
  select case when d.expires_at > p_now then d.status::text else 'expired' end, d.email, d.ip, d.created_at, a.created_at,
         (select count(*) from cue.api_keys k where k.account_id = a.id and k.revoked_at is null)::int
    from cue.device_codes d left join cue.accounts a on lower(a.email) = lower(d.email)
   where d.code_hash = p_code_hash and d.link_id = p_link_id
$$;
comment on function cue.device_link is 'Returns what a sign-in link shows before confirmation, or no row.';

-- QU070 the link does not match the code, QU071 expired, QU073 already used. p_account_id is the id of a new account, and part of p_ciphertext.
create or replace function cue.approve_device(
  p_code_hash bytea, p_link_id uuid, p_account_id uuid, p_key_hash bytea, p_prefix text, p_ciphertext text, p_ip text default null,
  p_now timestamptz default now()
) returns boolean
language plpgsql security definer as $$
declare
  d cue.device_codes;
  a cue.accounts;
  k cue.api_keys;
begin
  select * into d from cue.device_codes where code_hash = p_code_hash and link_id = p_link_id;
  perform cue.refuse_if(not found, 'QU070', 'Invalid link. Start again on the device.');
  -- Waits for an account that is being deleted; the loop then creates a new one.
  loop
    select * into a from cue.accounts where lower(email) = lower(d.email) for no key update;
    exit when found;
    a := cue.insert_account(p_account_id, d.email, p_now);
    if a.id is not null then
      k := cue.insert_key(a.id, 'default', p_key_hash, p_prefix, null, 'register', p_ciphertext, p_now);
      perform cue.record_event(a.id, 'account.registered', 'anonymous', p_ip, jsonb_build_object('key_id', k.id, 'prefix', k.prefix), p_now);
      exit;
    end if;
  end loop;
  select * into d from cue.device_codes where code_hash = p_code_hash and link_id = p_link_id for update;
  perform cue.refuse_if(not found or d.expires_at <= p_now, 'QU071', 'This link has expired. Start again on the device.');
  perform cue.refuse_if(d.status <> 'email_sent', 'QU073', 'This link was already used.');
  perform cue.confirm_email(a.id, p_now);
  update cue.device_codes set status = 'approved', account_id = a.id, key_id = k.id where code_hash = d.code_hash;
  return k.id is not null;
end $$;
comment on function cue.approve_device is 'Confirms a sign-in, and creates an account if the address has none; returns whether it did.';

-- p_token_hash is the token's hash. If the sign-in created the account, its encrypted key is returned too. p_limited: at most 30 polls per
-- code and minute, else QU031.
create or replace function cue.poll_device(
  p_code_hash bytea, p_token_hash bytea, p_limited boolean default true, p_now timestamptz default now()
) returns table (status text, email text, account_id uuid, key_ciphertext text)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  d cue.device_codes;
  a cue.accounts;
begin
  select * into d from cue.device_codes where code_hash = p_code_hash and expires_at > p_now;
  if not found then
    return query select 'expired', null::text, null::uuid, null::text;
    return;
  end if;
  if d.status = 'approved' then
    select * into a from cue.accounts where id = d.account_id for no key update;
    select * into d from cue.device_codes where code_hash = p_code_hash and expires_at > p_now for update;
  end if;
  perform cue.require_within(case when p_limited then 'poll:' || encode(p_code_hash, 'hex') end, 30, '1 minute',
    'Poll limit reached: 30 per device code per minute.', p_now);
  if d.status is distinct from 'approved' then
    return query select coalesce(d.status::text, 'expired'), null::text, null::uuid, null::text;
    return;
  end if;
  update cue.device_codes set status = 'claimed' where code_hash = d.code_hash;
  perform cue.insert_session_token(a.id, p_token_hash, p_now);
  return query select 'approved', a.email, a.id, (select ciphertext from cue.api_keys where id = d.key_id and revoked_at is null);
end $$;
comment on function cue.poll_device is 'Returns a sign-in''s status; the first poll after approval stores a session token.';
