-- Requests with an Idempotency-Key. The transaction of the effect begins with begin_idempotent and ends with end_idempotent, so the key is stored
-- exactly if the effect is. Locks: the account.

create or replace function cue.stored_response(
  p_account_id uuid, p_route text, p_key text, p_request_hash bytea, p_now timestamptz default now()
) returns table (status int, body text)
language plpgsql stable security definer as $$
declare
  k cue.idempotency_keys;
begin
  select * into k from cue.idempotency_keys i
   where i.account_id = p_account_id and i.route = p_route and i.key = p_key and i.created_at > p_now - interval '24 hours';
  if not found then return; end if;
  perform cue.refuse_if(k.request_hash <> p_request_hash, 'QU013', 'This Idempotency-Key was already used for a different request. Use a new key.');
  return query select k.status, k.body;
end $$;
comment on function cue.stored_response is 'Returns the response to a request with this key; QU013 for another request.';

-- The lock is never waited for. It ends with the transaction, and so does that of a killed caller.
create or replace function cue.begin_idempotent(
  p_account_id uuid, p_route text, p_key text, p_request_hash bytea, p_now timestamptz default now()
) returns table (status int, body text)
language plpgsql security definer as $$
begin
  perform cue.refuse_if(not pg_try_advisory_xact_lock(hashtextextended(concat_ws(' ', p_account_id, p_route, p_key), 0)), 'QU019',
    'A request with this Idempotency-Key is in progress. Retry to get its response.');
  -- A new statement, which sees what the lock's last holder has committed.
  return query select * from cue.stored_response(p_account_id, p_route, p_key, p_request_hash, p_now);
end $$;
comment on function cue.begin_idempotent is 'Begins a request with a key, like stored_response; QU019 if one is open.';

-- The rows of an account form a running total: what it keeps is the difference between its newest row and its oldest unexpired one, and no counter
-- is to be corrected when rows expire. Exact, because the account is locked.
create or replace function cue.end_idempotent(
  p_account_id uuid, p_route text, p_key text, p_request_hash bytea, p_status int, p_body text, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  newest cue.idempotency_keys;
  oldest cue.idempotency_keys;
  -- With the rest of the row and its index entries.
  v_bytes int := octet_length(p_body) + 2 * octet_length(p_route || p_key) + 250;
  v_since timestamptz := p_now - interval '24 hours';
begin
  perform from cue.accounts where id = p_account_id for no key update;
  select * into newest from cue.idempotency_keys where account_id = p_account_id order by created_at desc, place desc limit 1;
  select * into oldest from cue.idempotency_keys where account_id = p_account_id and created_at > v_since order by created_at, place limit 1;
  perform cue.refuse_if(newest.bytes_before + newest.bytes - oldest.bytes_before + v_bytes > cue.idempotency_bytes(), 'QU031',
    format('Too many responses are kept for Idempotency-Keys: at most %s MB in 24 hours. Wait, or send the request without a key.',
      cue.idempotency_bytes() / 1024 / 1024),
    ceil(extract(epoch from oldest.created_at - v_since))::text);
  perform cue.admit_payload(p_account_id, v_bytes, p_now);
  delete from cue.idempotency_keys where account_id = p_account_id and route = p_route and key = p_key; -- expired
  insert into cue.idempotency_keys (account_id, route, key, request_hash, status, body, place, bytes_before, bytes, created_at)
  values (p_account_id, p_route, p_key, p_request_hash, p_status, p_body, coalesce(newest.place, 0) + 1,
          coalesce(newest.bytes_before + newest.bytes, 0), v_bytes, greatest(p_now, newest.created_at));
end $$;
comment on function cue.end_idempotent is 'Stores the response to a request that begin_idempotent began; QU031, QU032.';

create or replace function cue.prune_idempotency_keys(p_batch int default 1000, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_count int;
begin
  delete from cue.idempotency_keys where ctid = any (array(
    select ctid from cue.idempotency_keys where created_at <= p_now - interval '24 hours' order by created_at limit p_batch for update skip locked));
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function cue.prune_idempotency_keys is 'Removes a batch of expired responses; returns how many.';
