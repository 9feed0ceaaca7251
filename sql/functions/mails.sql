-- The content of mails. A job has ids only; these functions look up the rest when the mail is sent, and return no row if it is no longer
-- needed. A job's kind names its function: mail_KIND.

create or replace function cue.mail_registered(p_account_id uuid, p_key_id uuid)
returns table (email text, key_prefix text, ip text, created_at timestamptz)
language sql stable security definer as $$
  select a.email, k.prefix,
         (select v.ip from cue.audit_events v where v.account_id = a.id and v.event = 'account.registered' order by v.seq limit 1), a.created_at
    from cue.accounts a join cue.api_keys k on k.account_id = a.id
   where a.id = p_account_id and k.id = p_key_id
$$;
comment on function cue.mail_registered is 'Returns the content of the registration mail.';

-- Three per day until the address is confirmed. Only a mail's first try counts (p_counted), so that retries during a mail server outage don't use
-- up the limit.
create or replace function cue.count_mail(
  p_account_id uuid, p_subject text, p_per_hour int, p_counted boolean, p_now timestamptz, out is_allowed boolean, out is_last boolean
)
language plpgsql security definer as $$
begin
  is_allowed := true;
  is_last := false;
  if not p_counted then return; end if;
  if cue.is_email_confirmed(p_account_id) then
    select w.allowed, w.remaining = 0 into is_allowed, is_last from cue.allow(p_subject || p_account_id, p_per_hour, '1 hour', p_now) w;
  else
    select w.allowed, w.remaining = 0 into is_allowed, is_last from cue.allow('unconfirmed:' || p_account_id, 3, '24 hours', p_now) w;
  end if;
end $$;
comment on function cue.count_mail is 'Counts a mail to an account, and returns whether it is within the limit, and whether it is the last one.';

-- quiet marks the last mail within the limit.
create or replace function cue.mail_cue_failed(
  p_account_id uuid, p_execution_id uuid, p_counted boolean default true, p_now timestamptz default now()
) returns table (
  email text, cue_id text, cue_name text, cue_status cue.cue_status, execution_id uuid, status cue.execution_status,
  scheduled_for timestamptz, ended_at timestamptz, attempts int, http_status int, error_message text, quiet boolean
)
language plpgsql security definer as $$
declare
  w record;
begin
  select * into w from cue.count_mail(p_account_id, 'failures:', 10, p_counted, p_now);
  if not w.is_allowed then return; end if;
  return query
  select a.email, c.id, c.name, c.status, e.id, e.status, e.scheduled_for, e.ended_at, e.attempts, e.http_status, e.error_message,
         w.is_last
    from cue.executions e join cue.cues c on c.id = e.cue_id join cue.accounts a on a.id = e.account_id
   where e.id = p_execution_id and e.account_id = p_account_id and c.deleted_at is null;
end $$;
comment on function cue.mail_cue_failed is 'Returns the content of the mail about a failed cue, or no row above the account''s mail limit.';

create or replace function cue.mail_limit_reached(p_account_id uuid, p_now timestamptz default now())
returns table (email text, plan cue.plan, executions_per_month int, grace_ends_at timestamptz)
language sql stable security definer as $$
  select a.email, a.plan, p.executions_per_month, a.limit_reached_at + interval '24 hours'
    from cue.accounts a cross join lateral cue.limits_of(a) p
   where a.id = p_account_id and cue.usage_month(a.limit_reached_at) = cue.usage_month(p_now) and p.executions_per_month is not null
$$;
comment on function cue.mail_limit_reached is 'Returns the content of the mail about the monthly limit.';

create or replace function cue.mail_magic_link(p_link_id uuid, p_now timestamptz default now())
returns table (email text, code_hash bytea, code_ciphertext text, ip text, expires_at timestamptz)
language sql stable security definer as $$
  select email, code_hash, code_ciphertext, ip, expires_at from cue.device_codes
   where link_id = p_link_id and status = 'email_sent' and expires_at > p_now
$$;
comment on function cue.mail_magic_link is 'Returns the content of the mail with a sign-in link.';

create or replace function cue.mail_deletion_requested(p_deletion_id uuid)
returns table (email text, due_at timestamptz)
language sql stable security definer as $$
  select a.email, d.due_at from cue.deletions d join cue.accounts a on a.id = d.account_id where d.id = p_deletion_id and d.cancelled_at is null
$$;
comment on function cue.mail_deletion_requested is 'Returns the content of the mail about a pending account deletion.';

create or replace function cue.mail_downgrade(p_account_id uuid, p_cue_ids text[])
returns table (email text, plan cue.plan, cues int, paused text[])
language sql stable security definer as $$
  select a.email, a.plan, p.cues,
         array(select c.name from cue.cues c where c.id = any (p_cue_ids) and c.account_id = a.id and c.deleted_at is null
                order by c.created_at desc, c.id desc limit 100)
    from cue.accounts a cross join lateral cue.limits_of(a) p
   where a.id = p_account_id
$$;
comment on function cue.mail_downgrade is 'Returns the content of the mail about a downgrade, with the names of the newest 100 cues that it paused.';

create or replace function cue.mail_payment_failed(p_account_id uuid) returns table (email text, plan cue.plan)
language sql stable security definer as $$
  select email, plan from cue.accounts where id = p_account_id and plan <> 'free'
$$;
comment on function cue.mail_payment_failed is 'Returns the content of the mail about a failed payment, or no row once the plan has ended.';

create or replace function cue.mail_confirm_address(p_address_id uuid) returns table (email text, account_email text)
language sql stable security definer as $$
  select d.email, a.email from cue.addresses d join cue.accounts a on a.id = d.account_id where d.id = p_address_id and d.confirmed_at is null
$$;
comment on function cue.mail_confirm_address is 'Returns the content of the mail with which an address for channels is confirmed.';

create or replace function cue.mail_channel_test(p_channel_id uuid) returns table (email text, name text)
language sql stable security definer as $$ select h.target, h.name from cue.channels h where h.id = p_channel_id and h.type = 'email' $$;
comment on function cue.mail_channel_test is 'Returns the content of the mail that tests a channel.';

create or replace function cue.mail_endpoint_disabled(p_endpoint_id uuid)
returns table (email text, url text, failing_since timestamptz, tries int, http_status int, error text)
language sql stable security definer as $$
  select a.email, e.url, e.failing_since, e.tries, e.http_status, e.error
    from cue.event_endpoints e join cue.accounts a on a.id = e.account_id where e.id = p_endpoint_id and e.status = 'disabled'
$$;
comment on function cue.mail_endpoint_disabled is 'Returns the content of the mail about an event endpoint that was disabled.';

create or replace function cue.mail_approval_requested(
  p_account_id uuid, p_execution_id uuid, p_counted boolean default true, p_now timestamptz default now()
) returns table (
  email text, cue_id text, cue_name text, execution_id uuid, scheduled_for timestamptz, message text, expires_at timestamptz, on_expiry cue.approval_expiry,
  reminders int, by_link boolean
)
language plpgsql security definer as $$
begin
  if not (select w.is_allowed from cue.count_mail(p_account_id, 'approval_mails:', 100, p_counted, p_now) w) then return; end if;
  return query
  select m.email, c.id, c.name, e.id, e.scheduled_for, a.message, a.expires_at, a.on_expiry, a.reminders, m.approvals_by_link
    from cue.approvals a join cue.executions e on e.id = a.execution_id join cue.cues c on c.id = a.cue_id join cue.accounts m on m.id = a.account_id
   where a.execution_id = p_execution_id and a.account_id = p_account_id and a.decision is null and c.deleted_at is null;
end $$;
comment on function cue.mail_approval_requested is 'Returns the content of the mail that requests an approval, or no row once there is a decision, or above the mail limit.';
