-- Account deletion: everything works during 24 hours of grace; then everything is removed. Locks: the account first, then its cues by id.

create or replace function cue.request_deletion(
  p_account_id uuid, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns timestamptz
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
begin
  perform cue.refuse_if(exists (select from cue.deletions where account_id = a.id and cancelled_at is null), 'QU043',
    'Deletion of this account is already pending. To cancel it, follow the link in the email.');
  perform cue.record_event(a.id, 'account.deletion_requested', p_actor, p_ip, '{}', p_now);
  return cue.insert_deletion(a.id, p_now);
end $$;
comment on function cue.request_deletion is 'Schedules an account''s deletion in 24 hours; QU043 if already pending.';

create or replace function cue.insert_deletion(p_account_id uuid, p_now timestamptz) returns timestamptz
language plpgsql security definer as $$
declare
  v_id uuid := cue.uuid_v7(p_now);
  v_due_at timestamptz := p_now + interval '24 hours';
begin
  insert into cue.deletions (id, account_id, requested_at, due_at) values (v_id, p_account_id, p_now, v_due_at);
  perform cue.add_job('mails', jsonb_build_object('kind', 'deletion_requested', 'account_id', p_account_id, 'deletion_id', v_id));
  -- No account_id: the job must outlive the account.
  perform cue.add_job('deletions', '{}', p_start_after => v_due_at);
  return v_due_at;
end $$;
comment on function cue.insert_deletion is 'Schedules the deletion of an account that the caller has locked.';

-- completed includes a missing row: it was deleted with its account.
create or replace function cue.deletion_status(p_deletion_id uuid, p_now timestamptz default now()) returns table (status text, due_at timestamptz)
language sql stable security definer as $$
  select case when d.cancelled_at is not null then 'cancelled' when d.due_at > p_now then 'pending' else 'completed' end, d.due_at
    from (select) one left join cue.deletions d on d.id = p_deletion_id
$$;
comment on function cue.deletion_status is 'Returns a deletion''s status: pending, cancelled or completed.';

-- The caller has verified the signed link that contains the id.
create or replace function cue.cancel_deletion(p_deletion_id uuid, p_ip text default null, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_account uuid;
  v_status text;
begin
  select a.id into v_account from cue.deletions d join cue.accounts a on a.id = d.account_id
   where d.id = p_deletion_id for no key update of a;
  select status into v_status from cue.deletion_status(p_deletion_id, p_now);
  perform cue.refuse_if(v_status = 'cancelled', 'QU044', 'This deletion was already cancelled.');
  perform cue.refuse_if(v_status = 'completed', 'QU045', 'The account has been deleted.');
  update cue.deletions set cancelled_at = p_now where id = p_deletion_id;
  perform cue.record_event(v_account, 'account.deletion_cancelled', 'anonymous', p_ip, '{}', p_now);
end $$;
comment on function cue.cancel_deletion is 'Cancels a pending deletion; QU044 already cancelled, QU045 too late.';

-- For the link in the registration mail, valid for 30 days. Keys and sessions end at once. An unused account is deleted at once; otherwise
-- its cues are paused, waiting executions are cancelled, and the account is deleted after 24 hours, in case the link was followed by
-- mistake. QU007 if not found or the link is too old.
create or replace function cue.disown_account(p_account_id uuid, p_ip text default null, p_now timestamptz default now()) returns timestamptz
language plpgsql security definer as $$
declare
  a cue.accounts;
  v_ids text[];
  v_due_at timestamptz;
begin
  select * into a from cue.accounts where id = p_account_id and created_at > p_now - interval '30 days' for no key update;
  perform cue.refuse_if(not found, 'QU007', 'The account no longer exists, or this link is older than 30 days.');
  if cue.is_untouched(a) then
    perform cue.erase_account(a.id);
    return null;
  end if;
  perform cue.drop_credentials(a.id, p_now);
  perform cue.lock_cues(array(select id from cue.cues where account_id = a.id and deleted_at is null));
  v_ids := array(
    select id from cue.cues where account_id = a.id and (status = 'active' or paused_until is not null) and deleted_at is null);
  perform cue.pause_cues(v_ids, 'deletion', p_now => p_now);
  perform cue.cancel_waiting(a.id, p_now);
  perform cue.abort_operation(a.id, id, p_now) from cue.operations where account_id = a.id and status = 'running';
  perform cue.record_event(a.id, 'account.disowned', 'anonymous', p_ip, '{}', p_now);
  select due_at into v_due_at from cue.deletions where account_id = a.id and cancelled_at is null;
  return coalesce(v_due_at, cue.insert_deletion(a.id, p_now));
end $$;
comment on function cue.disown_account is 'Ends an account that someone else registered; returns when it is deleted, or null.';

create or replace function cue.disownable_account(p_account_id uuid, p_now timestamptz default now())
returns table (email text, created_at timestamptz, untouched boolean)
language sql stable security definer as $$
  select a.email, a.created_at, cue.is_untouched(a) from cue.accounts a where a.id = p_account_id and a.created_at > p_now - interval '30 days'
$$;
comment on function cue.disownable_account is 'Returns the account that a registration mail''s link can still end, or no row.';

-- A registration mail's link works again only after the deletion was cancelled.
create or replace function cue.disowned_until(p_account_id uuid) returns timestamptz
language sql stable security definer as $$
  select d.due_at from cue.deletions d
   where d.account_id = p_account_id and d.cancelled_at is null
     and exists (select from cue.audit_events v
                  where v.account_id = p_account_id and v.event = 'account.disowned'
                    and v.created_at > coalesce((select max(c.cancelled_at) from cue.deletions c where c.account_id = p_account_id), '-infinity'))
$$;
comment on function cue.disowned_until is 'Returns when a disowned account will be deleted; null for any other account.';

create or replace function cue.is_untouched(a cue.accounts) returns boolean
language sql stable security definer as $$
  select a.plan = 'free' and not exists (select from cue.cues where account_id = a.id)
     and not exists (select from cue.usage_counters where account_id = a.id)
$$;
comment on function cue.is_untouched is 'Returns whether an account never had a cue or an execution.';

-- Keys are revoked rather than deleted, so that they still appear in the list of keys.
create or replace function cue.drop_credentials(p_account_id uuid, p_now timestamptz) returns void
language sql security definer as $$
  update cue.api_keys set revoked_at = p_now, ciphertext = null where account_id = p_account_id and revoked_at is null;
  select cue.add_event(p_account_id, 'key.revoked', cue.key_data(id), p_now) from cue.api_keys where account_id = p_account_id and revoked_at = p_now;
  delete from cue.session_tokens where account_id = p_account_id;
  delete from cue.sessions where account_id = p_account_id;
  delete from cue.device_codes where account_id = p_account_id;
$$;
comment on function cue.drop_credentials is 'Revokes all keys and ends all sessions of an account that the caller has locked.';

-- First all access and all cues end, then the history is deleted, then the account.
create or replace function cue.delete_due_accounts(p_batch int default 1000, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_account uuid;
  v_cues text[];
  v_cue text;
  v_gone int := 0;
begin
  -- No stronger lock: an engine that references the account to count usage may hold rows that are locked next.
  select a.id into v_account from cue.deletions d join cue.accounts a on a.id = d.account_id
   where d.cancelled_at is null and d.due_at <= p_now order by d.due_at limit 1 for no key update of a skip locked;
  if not found then return 0; end if;
  -- It may have been cancelled while this waited for the lock.
  if not exists (select from cue.deletions where account_id = v_account and cancelled_at is null) then return 1; end if;
  perform cue.drop_credentials(v_account, p_now);
  -- All cues at once, so that nothing runs any more; in batches only if there are very many.
  v_cues := array(select id from cue.cues where account_id = v_account and deleted_at is null limit p_batch * 10);
  perform cue.remove_cues(v_account, v_cues, p_now, null, true);
  if cardinality(v_cues) = p_batch * 10 then return cardinality(v_cues); end if;
  -- No order by id: both conditions match an index, and ordering would read the cues of all accounts by primary key.
  v_cues := array(select id from cue.cues where account_id = v_account and deleted_at is not null limit p_batch);
  if v_cues = '{}' then
    perform cue.erase_account(v_account);
    return 1;
  end if;
  foreach v_cue in array v_cues loop
    v_gone := v_gone + cue.purge_cue(v_cue, p_batch - v_gone);
    exit when v_gone >= p_batch;
    perform cue.purge_cue(v_cue, 1); -- deletes the cue itself once it has no executions
  end loop;
  return v_gone + cardinality(v_cues) - (select count(*) from cue.cues where id = any (v_cues));
end $$;
comment on function cue.delete_due_accounts is 'Deletes a batch of an account whose grace is over; 0 if none is left.';

-- Foreign keys delete most of it; the rest is deleted here.
create or replace function cue.erase_account(p_account_id uuid) returns void
language plpgsql security definer as $$
declare
  a cue.accounts;
  -- All subjects that cue.allow counts for an account.
  v_subjects text[] := array(select 'key:' || id from cue.api_keys where account_id = p_account_id)
    || array(select s.name || p_account_id from unnest('{sessions:,keys:,failures:,unconfirmed:,support:,cue_limit:,url_tests:,addresses:,channel_tests:,event_mails:,approval_mails:}'::text[]) as s (name));
begin
  delete from cue.accounts where id = p_account_id returning * into a;
  -- Deletes the Stripe customer, which cancels its subscriptions. The job outlives the account.
  if a.stripe_customer_id is not null then perform cue.add_job('customers', jsonb_build_object('customer_id', a.stripe_customer_id)); end if;
  delete from cue.usage_counters where account_id = p_account_id;
  delete from cue.payload_counters where account_id = p_account_id;
  delete from cue.costs where account_id = p_account_id;
  delete from cue.dead_letters where account_id = p_account_id;
  delete from cue.device_codes where lower(email) = lower(a.email);
  delete from cue.directory where email_hash = cue.email_hash(a.email) and cell = cue.cell_id();
  delete from cue.rate_windows where subject = any (v_subjects || cue.email_window(a.email));
  perform cue.drop_account_jobs(p_account_id);
  perform cue.delete_events(p_account_id);
end $$;
comment on function cue.erase_account is 'Deletes an account that has no cues left, with everything that names it.';
