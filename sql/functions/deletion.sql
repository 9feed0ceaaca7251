-- The end of an account: a day of grace, in which everything works, then nothing of it is left. Locks: the account first, then its cues by
-- id, as everywhere.

-- Returns when the account will go. QU043 when that is settled already.
create or replace function cue.request_deletion(
  p_account_id uuid, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns timestamptz
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
begin
  if exists (select from cue.deletions where account_id = a.id and cancelled_at is null) then
    raise exception 'the deletion of this account was requested already; the mail about it has a link that cancels it'
      using errcode = 'QU043';
  end if;
  perform cue.record_event(a.id, 'account.deletion_requested', p_actor, p_ip, '{}', p_now);
  return cue.insert_deletion(a.id, p_now);
end $$;
comment on function cue.request_deletion is 'Lets an account be deleted in 24 hours, and a mail tell how to cancel that.';

create or replace function cue.insert_deletion(p_account_id uuid, p_now timestamptz) returns timestamptz
language plpgsql security definer as $$
declare
  v_id uuid := gen_random_uuid();
  v_due_at timestamptz := p_now + interval '24 hours';
begin
  insert into cue.deletions (id, account_id, requested_at, due_at) values (v_id, p_account_id, p_now, v_due_at);
  perform cue.add_job('mails', jsonb_build_object('kind', 'deletion_requested', 'account_id', p_account_id, 'deletion_id', v_id));
  -- It names nobody, since it outlives the account.
  perform cue.add_job('deletions', '{}', p_start_after => v_due_at);
  return v_due_at;
end $$;
comment on function cue.insert_deletion is 'Settles the deletion of an account that the caller has locked.';

-- How a deletion stands: 'pending', 'cancelled' or 'completed', which is also one without a row, its account being gone.
create or replace function cue.deletion_status(p_deletion_id uuid, p_now timestamptz default now()) returns table (status text, due_at timestamptz)
language sql stable security definer as $$
  select case when d.cancelled_at is not null then 'cancelled' when d.due_at > p_now then 'pending' else 'completed' end, d.due_at
    from (select) one left join cue.deletions d on d.id = p_deletion_id
$$;
comment on function cue.deletion_status is 'How a deletion stands.';

-- The caller has checked that the id came from a link of ours. QU044 cancelled before, QU045 carried out, or too late for it.
create or replace function cue.cancel_deletion(p_deletion_id uuid, p_ip text default null, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_account uuid;
  v_status text;
begin
  select a.id into v_account from cue.deletions d join cue.accounts a on a.id = d.account_id
   where d.id = p_deletion_id for no key update of a;
  select status into v_status from cue.deletion_status(p_deletion_id, p_now);
  if v_status = 'cancelled' then
    raise exception 'this deletion was cancelled already' using errcode = 'QU044';
  elsif v_status = 'completed' then
    raise exception 'the account has been deleted' using errcode = 'QU045';
  end if;
  update cue.deletions set cancelled_at = p_now where id = p_deletion_id;
  perform cue.record_event(v_account, 'account.deletion_cancelled', 'anonymous', p_ip, '{}', p_now);
end $$;
comment on function cue.cancel_deletion is 'Lets an account live on.';

-- What the link of the registration mail does for thirty days: somebody else made this account. Its keys and sessions end at once. An account
-- that never did anything goes at once, too, and null is returned; of any other the cues are paused, what waits is cancelled, and it goes
-- after the day of grace, in case the link was followed by mistake; returned is when. QU007 when there is no such account, or the link is too
-- old.
create or replace function cue.disown_account(p_account_id uuid, p_ip text default null, p_now timestamptz default now()) returns timestamptz
language plpgsql security definer as $$
declare
  a cue.accounts;
  v_ids text[];
  v_due_at timestamptz;
begin
  select * into a from cue.accounts where id = p_account_id and created_at > p_now - interval '30 days' for no key update;
  if not found then
    raise exception 'the account is gone, or this link is older than 30 days' using errcode = 'QU007';
  end if;
  if cue.is_untouched(a) then
    perform cue.erase_account(a.id);
    return null;
  end if;
  perform cue.drop_credentials(a.id, p_now);
  perform cue.lock_cues(array(select id from cue.cues where account_id = a.id and deleted_at is null));
  v_ids := array(select id from cue.cues where account_id = a.id and status = 'active' and deleted_at is null);
  update cue.cues set status = 'paused', updated_at = p_now where id = any (v_ids);
  update cue.cue_runs set next_run = null, success_due_at = null, version = version + 1 where cue_id = any (v_ids);
  perform cue.cancel_waiting(a.id, p_now);
  perform cue.record_event(a.id, 'account.disowned', 'anonymous', p_ip, '{}', p_now);
  select due_at into v_due_at from cue.deletions where account_id = a.id and cancelled_at is null;
  return coalesce(v_due_at, cue.insert_deletion(a.id, p_now));
end $$;
comment on function cue.disown_account is 'Ends an account that somebody made with another''s address.';

-- What the page of that link shows: no row where disown_account would raise.
create or replace function cue.disownable_account(p_account_id uuid, p_now timestamptz default now())
returns table (email text, created_at timestamptz, untouched boolean)
language sql stable security definer as $$
  select a.email, a.created_at, cue.is_untouched(a) from cue.accounts a where a.id = p_account_id and a.created_at > p_now - interval '30 days'
$$;
comment on function cue.disownable_account is 'The account that the link of a registration mail can still end.';

-- A link of a registration mail can be used again only when the deletion has been cancelled.
create or replace function cue.disowned_until(p_account_id uuid) returns timestamptz
language sql stable security definer as $$
  select d.due_at from cue.deletions d
   where d.account_id = p_account_id and d.cancelled_at is null
     and exists (select from cue.audit_events v
                  where v.account_id = p_account_id and v.event = 'account.disowned'
                    and v.created_at > coalesce((select max(c.cancelled_at) from cue.deletions c where c.account_id = p_account_id), '-infinity'))
$$;
comment on function cue.disowned_until is 'When an account goes that was disowned; null for any other.';

create or replace function cue.is_untouched(a cue.accounts) returns boolean
language sql stable security definer as $$
  select a.plan = 'free' and not exists (select from cue.cues where account_id = a.id)
     and not exists (select from cue.usage_counters where account_id = a.id)
$$;
comment on function cue.is_untouched is 'Whether an account never had a cue or ran anything.';

-- Revoked, not deleted: the list of keys goes on to tell what there was.
create or replace function cue.drop_credentials(p_account_id uuid, p_now timestamptz) returns void
language sql security definer as $$
  update cue.api_keys set revoked_at = p_now, ciphertext = null where account_id = p_account_id and revoked_at is null;
  delete from cue.session_tokens where account_id = p_account_id;
  delete from cue.sessions where account_id = p_account_id;
  delete from cue.device_codes where account_id = p_account_id;
$$;
comment on function cue.drop_credentials is 'Revokes all keys and ends all sessions of an account that the caller has locked.';

-- Carries out what is due, a batch at a time: first nothing of the account can be used or runs any more, then its history goes, then the rest.
-- Returns 0 when there is nothing left to do, or what is left is held by somebody.
create or replace function cue.delete_due_accounts(p_batch int default 1000, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_account uuid;
  v_cues text[];
  v_cue text;
  v_gone int := 0;
begin
  -- A lock that lets others refer to the account: an engine may be counting its use, and holds what is wanted next.
  select a.id into v_account from cue.deletions d join cue.accounts a on a.id = d.account_id
   where d.cancelled_at is null and d.due_at <= p_now order by d.due_at limit 1 for no key update of a skip locked;
  if not found then return 0; end if;
  -- It may have been cancelled before this had the lock.
  if not exists (select from cue.deletions where account_id = v_account and cancelled_at is null) then return 1; end if;
  perform cue.drop_credentials(v_account, p_now);
  -- All at once, so that nothing of the account runs any more, unless there are very many.
  v_cues := array(select id from cue.cues where account_id = v_account and deleted_at is null limit p_batch * 10);
  perform cue.delete_cues(v_account, v_cues, p_now);
  if cardinality(v_cues) = p_batch * 10 then return cardinality(v_cues); end if;
  -- Both conditions are those of an index; in the order of their ids all cues of all accounts would be read.
  v_cues := array(select id from cue.cues where account_id = v_account and deleted_at is not null limit p_batch);
  if v_cues = '{}' then
    perform cue.erase_account(v_account);
    return 1;
  end if;
  foreach v_cue in array v_cues loop
    v_gone := v_gone + cue.purge_cue(v_cue, p_batch - v_gone);
    exit when v_gone >= p_batch;
    perform cue.purge_cue(v_cue, 1); -- without executions it goes itself
  end loop;
  return v_gone + cardinality(v_cues) - (select count(*) from cue.cues where id = any (v_cues));
end $$;
comment on function cue.delete_due_accounts is 'Deletes a batch of what accounts have whose grace is over, and with the last one the account.';

-- Deletes an account without cues, and all that tells of it: what refers to it goes by cascade, the rest by name.
create or replace function cue.erase_account(p_account_id uuid) returns void
language plpgsql security definer as $$
declare
  a cue.accounts;
  -- Those that allow counts by, as far as an account has them.
  v_subjects text[] := array(select 'key:' || id from cue.api_keys where account_id = p_account_id)
    || array(select s.name || p_account_id from unnest('{sessions:,keys:,failures:,unconfirmed:,support:}'::text[]) as s (name));
begin
  perform cue.end_customer(p_account_id);
  delete from cue.accounts where id = p_account_id returning * into a;
  delete from cue.usage_counters where account_id = p_account_id;
  delete from cue.device_codes where lower(email) = lower(a.email);
  delete from cue.rate_windows where subject = any (v_subjects || cue.email_window(a.email));
  perform cue.drop_account_jobs(p_account_id);
end $$;
comment on function cue.erase_account is 'Deletes an account that has no cues, with all that tells of it.';
