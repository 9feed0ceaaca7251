-- Email addresses and sign-ins across cells. The home cell's directory decides which cell an address belongs to. A claim precedes the account
-- and outlives it, so that later registrations of the address go to the same cell. Only hashes of addresses are stored.

create or replace function cue.email_hash(p_email text) returns bytea
language sql immutable as $$ select sha256(convert_to(lower(p_email), 'UTF8')) $$;
comment on function cue.email_hash is 'Returns the directory''s key for an email address.';

create or replace function cue.lock_address(p_email text) returns void
language sql security definer as $$ select pg_advisory_xact_lock(hashtext('cue.directory'), hashtext(lower(p_email))) $$;
comment on function cue.lock_address is 'Makes claims of an email address and the creation of its account wait for each other.';

create or replace function cue.find_address(p_email text) returns int
language sql stable security definer as $$
  select coalesce((select d.cell from cue.directory d where d.email_hash = cue.email_hash(p_email)),
                  (select cue.cell_id() from cue.accounts a where lower(a.email) = lower(p_email)))
$$;
comment on function cue.find_address is 'Returns the cell of an email address, or null if this cell does not know it.';

-- An account of this cell may be older than the directory, or created by a replica that knows no other cell.
-- A null p_address means no limit.
create or replace function cue.claim_address(p_email text, p_cell int, p_address text default null, p_now timestamptz default now())
returns int
language plpgsql security definer as $$
declare
  v_cell int;
begin
  perform cue.lock_address(p_email);
  v_cell := cue.find_address(p_email);
  if v_cell is not null then return v_cell; end if;
  perform cue.require_within('claim:' || p_address, 5, '1 hour', 'Registration limit reached: 5 accounts per hour from one address.', p_now);
  insert into cue.directory (email_hash, cell, created_at) values (cue.email_hash(p_email), p_cell, p_now);
  return p_cell;
end $$;
comment on function cue.claim_address is 'Assigns an email address to a cell unless it has one, and returns its cell.';

create or replace function cue.count_accounts() returns bigint
language sql stable security definer as $$ select count(*) from cue.accounts $$;
comment on function cue.count_accounts is 'Returns the number of accounts of this cell.';

create or replace function cue.find_device_code(p_code_hash bytea, p_now timestamptz default now())
returns table (cell int, ip text, created_at timestamptz, expires_at timestamptz)
language sql stable security definer as $$
  select coalesce(d.cell, cue.cell_id()), d.ip, d.created_at, d.expires_at
    from cue.device_codes d where d.code_hash = p_code_hash and d.expires_at > p_now
$$;
comment on function cue.find_device_code is 'Returns the cell in which a sign-in continues, and its start; no row if the code is unknown or expired.';

create or replace function cue.put_device_code(p_code_hash bytea, p_ip text, p_created_at timestamptz, p_expires_at timestamptz) returns void
language sql security definer as $$
  insert into cue.device_codes (code_hash, ip, created_at, expires_at) values (p_code_hash, p_ip, p_created_at, p_expires_at)
  on conflict do nothing
$$;
comment on function cue.put_device_code is 'Stores a sign-in that started in another cell, before that one hands it over.';

create or replace function cue.hand_over_device_code(p_code_hash bytea, p_cell int, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
begin
  update cue.device_codes d set cell = p_cell
   where d.code_hash = p_code_hash and d.expires_at > p_now and d.status = 'pending' and d.cell is null;
  return (select f.cell from cue.find_device_code(p_code_hash, p_now) f);
end $$;
comment on function cue.hand_over_device_code is 'Lets a sign-in continue in another cell; returns its cell.';
