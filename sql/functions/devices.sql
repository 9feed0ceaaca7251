-- Signing in on one device by a link that is read on another. The device makes a code and polls; a person opens the page that belongs to it,
-- names an e-mail address, and confirms by the link that is sent there. Codes come as SHA-256, never as text. A code that is unknown costs one
-- look at an index and writes nothing. Locks: the account first, then the code, then a rate window.

-- Good for 15 minutes. p_address is what the limit of five an hour counts by; null: no limit. QU031 over it (detail: seconds to wait),
-- QU072 when the code is in use; only codes made count.
create or replace function cue.create_device_code(
  p_code_hash bytea, p_address text default null, p_ip text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  w record;
begin
  if p_address is not null then
    select * into w from cue.allow('device:' || p_address, 5, '1 hour', p_now);
    if not w.allowed then
      raise exception 'five device codes an hour can be created from one address' using errcode = 'QU031', detail = w.retry_after;
    end if;
  end if;
  delete from cue.device_codes where code_hash = p_code_hash and expires_at <= p_now;
  insert into cue.device_codes (code_hash, ip, created_at, expires_at) values (p_code_hash, p_ip, p_now, p_now + interval '15 minutes')
  on conflict do nothing;
  if not found then
    raise exception 'this device code is in use; make a new one' using errcode = 'QU072';
  end if;
end $$;
comment on function cue.create_device_code is 'Begins a sign-in under a code that the device made.';

create or replace function cue.device_code_status(p_code_hash bytea, p_now timestamptz default now()) returns text
language sql stable security definer as $$
  select coalesce((select status::text from cue.device_codes where code_hash = p_code_hash and expires_at > p_now), 'expired')
$$;
comment on function cue.device_code_status is 'How far a sign-in is: pending, email_sent, approved, claimed, or expired, also where there is none.';

-- Sends the link to an address. QU070 unknown code, QU071 expired, QU073 when a link was sent already, QU031 over three mails to an address
-- and hour (detail: seconds to wait). The answer is the same whether the address has an account or not.
create or replace function cue.send_device_link(
  p_code_hash bytea, p_email text, p_code_ciphertext text, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  d cue.device_codes;
  w record;
begin
  select * into d from cue.device_codes where code_hash = p_code_hash for update;
  if not found then
    raise exception 'there is no such device code; begin again on the device' using errcode = 'QU070';
  elsif d.expires_at <= p_now then
    raise exception 'this device code has expired; begin again on the device' using errcode = 'QU071';
  elsif d.status <> 'pending' then
    raise exception 'a mail was sent for this device code already' using errcode = 'QU073';
  end if;
  select * into w from cue.allow(cue.email_window(p_email), 3, '1 hour', p_now);
  if not w.allowed then
    raise exception 'three mails an hour are sent to one address' using errcode = 'QU031', detail = w.retry_after;
  end if;
  update cue.device_codes
     set status = 'email_sent', email = p_email, code_ciphertext = p_code_ciphertext, link_id = gen_random_uuid()
   where code_hash = d.code_hash returning * into d;
  perform cue.add_job('magic_links', jsonb_build_object('kind', 'magic_link', 'link_id', d.link_id));
end $$;
comment on function cue.send_device_link is 'Sends the link that confirms a sign-in.';

-- The subject that mails to an address count by. Of the address only a hash is kept there.
create or replace function cue.email_window(p_email text) returns text
language sql immutable security definer as $$
  select 'mail:' || encode(sha256(convert_to(lower(p_email), 'UTF8')), 'hex')
$$;
comment on function cue.email_window is 'The rate window of mails to an address.';

-- What the page shows to whoever holds the link: no row for a link that is not this code's.
create or replace function cue.device_link(p_code_hash bytea, p_link_id uuid, p_now timestamptz default now())
returns table (status text, email text, ip text, created_at timestamptz, account_created_at timestamptz, active_keys int)
language sql stable security definer as $$
  select case when d.expires_at > p_now then d.status::text else 'expired' end, d.email, d.ip, d.created_at, a.created_at,
         (select count(*) from cue.api_keys k where k.account_id = a.id and k.revoked_at is null)::int
    from cue.device_codes d left join cue.accounts a on lower(a.email) = lower(d.email)
   where d.code_hash = p_code_hash and d.link_id = p_link_id
$$;
comment on function cue.device_link is 'What a sign-in''s link shows before it is confirmed.';

-- The person who holds the link lets the device in. An address without an account gets one, with the key that is given. Returns whether it
-- did. QU070 for a link that is not this code's, QU071 expired, QU073 when it was used already: nothing changes then.
create or replace function cue.approve_device(
  p_code_hash bytea, p_link_id uuid, p_key_hash bytea, p_prefix text, p_ciphertext text, p_ip text default null,
  p_now timestamptz default now()
) returns boolean
language plpgsql security definer as $$
declare
  d cue.device_codes;
  a cue.accounts;
  k cue.api_keys;
begin
  select * into d from cue.device_codes where code_hash = p_code_hash and link_id = p_link_id;
  if not found then
    raise exception 'there is no such link; begin again on the device' using errcode = 'QU070';
  end if;
  -- An account that is being deleted is waited for, and then is none.
  loop
    select * into a from cue.accounts where lower(email) = lower(d.email) for no key update;
    exit when found;
    a := cue.insert_account(d.email, p_now);
    if a.id is not null then
      k := cue.insert_key(a.id, 'default', p_key_hash, p_prefix, null, 'register', p_ciphertext, p_now);
      perform cue.record_event(a.id, 'account.registered', 'anonymous', p_ip, jsonb_build_object('key_id', k.id, 'prefix', k.prefix), p_now);
      exit;
    end if;
  end loop;
  select * into d from cue.device_codes where code_hash = p_code_hash and link_id = p_link_id for update;
  if not found or d.expires_at <= p_now then
    raise exception 'this link has expired; begin again on the device' using errcode = 'QU071';
  elsif d.status <> 'email_sent' then
    raise exception 'this link was used already' using errcode = 'QU073';
  end if;
  perform cue.confirm_email(a.id, p_now);
  update cue.device_codes set status = 'approved', account_id = a.id, key_id = k.id where code_hash = d.code_hash;
  return k.id is not null;
end $$;
comment on function cue.approve_device is 'Confirms a sign-in, and makes the account if the address has none.';

-- What the device is told. The first poll after approval takes the sign-in: p_token_hash becomes a one-time session token, and where the
-- sign-in made an account, its key comes too, encrypted. p_limited: thirty polls a minute for each code that exists, else QU031.
create or replace function cue.poll_device(
  p_code_hash bytea, p_token_hash bytea, p_limited boolean default true, p_now timestamptz default now()
) returns table (status text, email text, key_ciphertext text)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  d cue.device_codes;
  a cue.accounts;
  w record;
begin
  select * into d from cue.device_codes where code_hash = p_code_hash and expires_at > p_now;
  if not found then
    return query select 'expired', null::text, null::text;
    return;
  end if;
  if d.status = 'approved' then
    select * into a from cue.accounts where id = d.account_id for no key update;
    select * into d from cue.device_codes where code_hash = p_code_hash and expires_at > p_now for update;
  end if;
  if p_limited then
    select * into w from cue.allow('poll:' || encode(p_code_hash, 'hex'), 30, '1 minute', p_now);
    if not w.allowed then
      raise exception 'a device code can be polled thirty times a minute' using errcode = 'QU031', detail = w.retry_after;
    end if;
  end if;
  if d.status is distinct from 'approved' then
    return query select coalesce(d.status::text, 'expired'), null::text, null::text;
    return;
  end if;
  update cue.device_codes set status = 'claimed' where code_hash = d.code_hash;
  perform cue.insert_session_token(a.id, p_token_hash, p_now);
  return query select 'approved', a.email, (select ciphertext from cue.api_keys where id = d.key_id and revoked_at is null);
end $$;
comment on function cue.poll_device is 'Tells a device how far its sign-in is, and once it is approved, gives it a session token.';
