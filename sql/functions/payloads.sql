-- Payloads are stored once per cue: those over 2 KB in payloads, smaller ones in the cue's row until they are replaced. Overrides of fires up
-- to 2 KB are stored in the execution. last_used_at is null while a payload is the cue's current one; after that it is the latest time an
-- execution may have been created with it. To add a reference, first lock the cue or its cue_runs; payloads come after both in the lock order.

create or replace function cue.is_large(p_payload text) returns boolean
language sql immutable as $$ select octet_length(p_payload) > 2048 $$;
comment on function cue.is_large is 'Returns whether a payload is stored separately: over 2 KB.';

-- With a null p_last_used_at it becomes the cue's current payload, unused since run p_since_run. A payload in the cue's row has an id already,
-- which executions refer to.
create or replace function cue.store_payload(
  p_account_id uuid, p_cue_id text, p_body text, p_since_run bigint, p_last_used_at timestamptz, p_now timestamptz default now()
) returns bigint
language sql security definer as $$
  insert into cue.payloads as p (id, account_id, cue_id, hash, body, since_run, last_used_at, created_at)
  values (coalesce((select c.payload_ref from cue.cues c where c.id = p_cue_id and c.payload = p_body), nextval('cue.payload_ids')), p_account_id, p_cue_id, sha256(convert_to(p_body, 'UTF8')), p_body, p_since_run, p_last_used_at, p_now)
  on conflict (cue_id, hash) do update
     set last_used_at = case when excluded.last_used_at is not null and p.last_used_at is not null
                             then greatest(p.last_used_at, excluded.last_used_at) end
  returning id
$$;
comment on function cue.store_payload is 'Stores a payload of a cue in payloads unless it is there, and returns its id.';

-- An unchanged run_count proves that no execution was created with it.
create or replace function cue.retire_payload(p_payload_id bigint, p_run_count bigint, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  delete from cue.payloads where id = p_payload_id and since_run = p_run_count;
  if not found then
    update cue.payloads set since_run = null, last_used_at = p_now where id = p_payload_id;
  end if;
end $$;
comment on function cue.retire_payload is 'Releases a cue''s former payload, and deletes it if no execution has used it.';

-- Also for changes by hand. A payload that returns keeps its id. The lock keeps executions from being created meanwhile.
create or replace function cue.keep_payload() returns trigger
language plpgsql security definer as $$
declare
  v_now timestamptz := greatest(new.updated_at, now());
begin
  perform from cue.cue_runs where cue_id = old.id for update;
  new.payload_since_run := coalesce((select run_count from cue.cue_runs where cue_id = old.id), 0);
  if old.payload_ref is distinct from new.payload_id then
    update cue.payloads set last_used_at = v_now where id = old.payload_ref;
    if not found and old.payload is not null and old.payload_ref is not null and old.payload_since_run <> new.payload_since_run then
      perform cue.store_payload(old.account_id, old.id, old.payload, null, v_now, v_now);
    end if;
  end if;
  new.payload_ref := null;
  if new.payload is not null then
    update cue.payloads set last_used_at = null
     where cue_id = new.id and hash = sha256(convert_to(new.payload, 'UTF8')) returning id into new.payload_ref;
    new.payload_ref := coalesce(new.payload_ref, nextval('cue.payload_ids'));
  end if;
  return new;
end $$;
comment on function cue.keep_payload is 'Keeps a payload that executions refer to when its cue gets another one.';

-- Not in a migration, because it needs the function. Creating it again would lock the table.
do $$
begin
  if not exists (select from pg_trigger where tgrelid = 'cue.cues'::regclass and tgname = 'keep_payload') then
    create trigger keep_payload before update on cue.cues for each row
      when (new.payload is distinct from old.payload) execute function cue.keep_payload();
  end if;
end $$;

-- Checks payloads last used in a month before p_before against the few executions that retention has left from that time. A payload still
-- in use, for example by an execution that has not ended, is checked again after the same time.
create or replace function cue.prune_payloads(p_before timestamptz, p_batch int default 500, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_ids bigint[] := array(
    select id from cue.payloads where last_used_at < date_trunc('month', p_before, 'UTC')
     order by last_used_at limit p_batch for update skip locked);
begin
  -- A new statement sees references that were committed before the payload was locked.
  with referenced as materialized (
    select p.id, (
             select true from cue.executions e
              where e.cue_id = p.cue_id and e.payload_id = p.id and e.id < cue.uuid_v7_floor(p.last_used_at + interval '10 minutes') limit 1) as is_used
      from cue.payloads p where p.id = any (v_ids)),
  kept as (
    update cue.payloads p set last_used_at = p_now from referenced r where p.id = r.id and r.is_used)
  delete from cue.payloads p using referenced r where p.id = r.id and r.is_used is null;
  return cardinality(v_ids);
end $$;
comment on function cue.prune_payloads is 'Removes a batch of payloads that no execution references; returns how many were checked.';

-- The cap on payload bytes per day -----------------------------------------------------------------------------------------------------
-- An execution's payload counts when the execution is created, even if it is stored only once. Counters are per backend, so that engines
-- never wait for each other.

create or replace function cue.payload_bytes(p_payload text, p_payload_id bigint) returns bigint
language sql stable security definer as $$
  select octet_length(coalesce(p_payload, (select body from cue.payloads where id = p_payload_id)))
$$;
comment on function cue.payload_bytes is 'Returns the size of a payload in bytes, wherever it is stored.';

create or replace function cue.payload_bytes_used(p_account_id uuid, p_now timestamptz default now()) returns bigint
language sql stable security definer as $$
  select coalesce(sum(bytes), 0)::bigint from cue.payload_counters where account_id = p_account_id and day = (p_now at time zone 'utc')::date
$$;
comment on function cue.payload_bytes_used is 'Returns the payload bytes of an account''s executions created in the current UTC day.';

create or replace function cue.caps_payloads() returns boolean
language plpgsql stable security definer as $$
begin
  return exists (select from cue.plans where payload_bytes_per_day is not null) or cue.is_overridden('payload_bytes_per_day');
end $$;
comment on function cue.caps_payloads is 'Returns whether any plan or account limits payload bytes per day.';

create or replace function cue.exceeds_payload_cap(p_cue_id text, p_now timestamptz default now()) returns boolean
language sql stable security definer as $$
  select exists (
    select from cue.cues c join cue.accounts a on a.id = c.account_id cross join lateral cue.limits_of(a) p
     where c.id = p_cue_id
       and p.payload_bytes_per_day < cue.payload_bytes_used(a.id, p_now) + cue.payload_bytes(c.payload, c.payload_id))
$$;
comment on function cue.exceeds_payload_cap is 'Returns whether another execution of a cue would exceed its plan''s daily payload bytes.';

-- Takes another slot if another session holds a row, like count_executions.
create or replace function cue.add_payload_bytes(p_account_ids uuid[], p_bytes bigint[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  loop
    begin
      insert into cue.payload_counters as u (account_id, day, slot, bytes)
      select n.id, (p_now at time zone 'utc')::date, cue.counter_slot(), n.bytes from unnest(p_account_ids, p_bytes) as n (id, bytes)
      on conflict (account_id, day, slot) do update set bytes = u.bytes + excluded.bytes;
      return;
    exception when lock_not_available then perform cue.leave_counter_slot();
    end;
  end loop;
end $$;
comment on function cue.add_payload_bytes is 'Adds p_bytes[n] to what account p_account_ids[n] has used in the current UTC day.';

create or replace function cue.count_payloads(p_cue_ids text[], p_counts int[], p_now timestamptz default now()) returns void
language sql security definer as $$
  select cue.add_payload_bytes(array_agg(b.account_id), array_agg(b.bytes), p_now) from (
    select c.account_id, sum(n.count * cue.payload_bytes(c.payload, c.payload_id))::bigint as bytes
      from unnest(p_cue_ids, p_counts) as n (cue_id, count)
      join cue.cues c on c.id = n.cue_id join cue.accounts a on a.id = c.account_id cross join lateral cue.limits_of(a) p
     where p.payload_bytes_per_day is not null
     group by c.account_id) b
  having count(*) > 0
$$;
comment on function cue.count_payloads is 'Counts the payload bytes of scheduled executions, for plans that limit them.';

-- Exact, because the account is locked.
create or replace function cue.admit_payload(p_account_id uuid, p_bytes bigint, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_cap bigint;
begin
  select p.payload_bytes_per_day into v_cap from cue.accounts a cross join lateral cue.limits_of(a) p where a.id = p_account_id;
  if v_cap is null then return; end if;
  perform cue.refuse_if(cue.payload_bytes_used(p_account_id, p_now) + p_bytes > v_cap, 'QU032',
    format('Payload limit reached: the plan allows %s bytes per UTC day, and this payload has %s bytes. Change the plan, or wait until the next day.',
      v_cap, p_bytes));
  perform cue.add_payload_bytes(array[p_account_id], array[p_bytes], p_now);
end $$;
comment on function cue.admit_payload is 'Counts the payload of a requested execution against the daily limit; QU032 above it.';
