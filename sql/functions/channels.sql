-- Channels: where alerts and events are sent, and the notices to them. A notice is added in the transaction of its cause, once per alert, channel and
-- kind, with its job; its row owns the tries, so that a crash neither loses nor repeats it. Locks: alerts before notices. Whoever ends the sending of an
-- alert locks it first, so that of a resolution and the end of the first notice the later one sees the other, and sends the resolution.

create or replace function cue.mask_target(p_type cue.channel_type, p_target text) returns text
language sql immutable as $$
  select case when p_type = 'email' then left(p_target, 1) || '***' || substring(p_target from '@[^@]*$')
              else coalesce(substring(p_target from '^[a-z]+://[^/?#]*') || '/', '') || cue.mask() end
$$;
comment on function cue.mask_target is 'Returns a channel''s target as it is shown: the host of a URL, the domain of an address.';

create or replace function cue.subscribe(p_account_id uuid, p_source text, p_subscribes boolean) returns void
language plpgsql security definer as $$
begin
  if p_subscribes then
    insert into cue.event_subscribers (account_id, source) values (p_account_id, p_source) on conflict do nothing;
  else
    delete from cue.event_subscribers where account_id = p_account_id and source = p_source;
  end if;
end $$;
comment on function cue.subscribe is 'Notes whether a part of an account wants events of successes, retries and verifications.';

-- Also a disabled endpoint, which may continue.
create or replace function cue.subscribe_parts(p_account_id uuid) returns void
language plpgsql security definer as $$
declare
  v_types constant cue.event_type[] := '{execution.succeeded,execution.retrying,execution.verified}';
begin
  perform cue.subscribe(p_account_id, 'channels', exists (
            select from cue.channels h where h.account_id = p_account_id and h.enabled and h.types && v_types)),
          cue.subscribe(p_account_id, 'endpoints', exists (select from cue.event_endpoints e where e.account_id = p_account_id and e.types && v_types));
end $$;
comment on function cue.subscribe_parts is 'Notes whether a channel or an endpoint of an account names successes, retries or verifications.';

-- A target may be given as it is shown. An address that is not confirmed gets a link, and the channel stays as it is: an error would undo that.
create or replace function cue.put_channel(
  p_account_id uuid, p_name text, p_type cue.channel_type, p_target text, p_types cue.event_type[] default null,
  p_severity cue.alert_severity default 'high', p_tags text[] default '{}', p_is_default boolean default false, p_enabled boolean default true,
  p_actor text default session_user, p_ip text default null, p_now timestamptz default now(), p_may_approve boolean default false
) returns text
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  old cue.channels;
  v_address uuid;
begin
  select * into old from cue.channels where account_id = a.id and name = p_name;
  perform cue.refuse_if(old.id is null and (select count(*) from cue.channels where account_id = a.id) >= 20, 'QU035',
    'Channel limit reached: 20 per account. Delete one first.');
  if old.type = p_type and p_target = cue.mask_target(old.type, old.target) then p_target := old.target; end if;
  if p_type = 'email' and not (a.email_confirmed_at is not null and lower(a.email) = lower(p_target))
     and not exists (select from cue.addresses where account_id = a.id and lower(email) = lower(p_target) and confirmed_at is not null) then
    perform cue.require_within('addresses:' || a.id, 3, '1 hour', 'Mail limit reached: 3 addresses per hour to confirm.', p_now);
    perform cue.require_within(cue.email_window(p_target), 3, '1 hour', 'Email limit reached: 3 per hour to one address.', p_now);
    insert into cue.addresses (id, account_id, email, asked_at) values (cue.uuid_v7(p_now), a.id, p_target, p_now)
    on conflict (account_id, lower(email)) do update set asked_at = excluded.asked_at returning id into v_address;
    perform cue.add_job('mails', jsonb_build_object('kind', 'confirm_address', 'account_id', a.id, 'address_id', v_address));
    return 'unconfirmed';
  end if;
  if (old.type, old.target, old.types, old.severity, old.tags, old.is_default, old.enabled)
     is not distinct from (p_type, p_target, p_types, p_severity, p_tags, p_is_default, p_enabled) and (old.gets_links or not p_may_approve) then
    return 'same';
  end if;
  insert into cue.channels as h (id, account_id, name, type, target, types, severity, tags, is_default, enabled, gets_links, created_at, updated_at)
  values (cue.uuid_v7(p_now), a.id, p_name, p_type, p_target, p_types, p_severity, p_tags, p_is_default, p_enabled, p_may_approve, p_now, p_now)
  on conflict (account_id, name) do update
     set type = excluded.type, target = excluded.target, types = excluded.types, severity = excluded.severity, tags = excluded.tags,
         is_default = excluded.is_default, enabled = excluded.enabled, gets_links = excluded.gets_links,
         updated_at = excluded.updated_at;
  perform cue.subscribe_parts(a.id);
  perform cue.record_event(a.id, 'channel.set', p_actor, p_ip, jsonb_build_object('name', p_name, 'type', p_type), p_now);
  return case when old.id is null then 'created' else 'changed' end;
end $$;
comment on function cue.put_channel is
  'Creates or replaces a channel; returns created, changed, same, or unconfirmed for an address that gets a link first; QU035 too many.';

create or replace function cue.delete_channel(
  p_account_id uuid, p_name text, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  v_id uuid;
begin
  perform cue.lock_account(p_account_id);
  delete from cue.channels where account_id = p_account_id and name = p_name returning id into v_id;
  perform cue.refuse_if(not found, 'QU036', format('channel %s not found', p_name));
  delete from cue.notices where account_id = p_account_id and channel_id = v_id;
  perform cue.subscribe_parts(p_account_id);
  perform cue.record_event(p_account_id, 'channel.deleted', p_actor, p_ip, jsonb_build_object('name', p_name), p_now);
end $$;
comment on function cue.delete_channel is 'Deletes a channel and its notices; QU036 if not found.';

create or replace function cue.require_tests(p_account_id uuid, p_subject text, p_tests text, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  v_limit int := (select l.fires_per_hour from cue.accounts a cross join lateral cue.limits_of(a) l where a.id = p_account_id);
begin
  perform cue.require_within(case when v_limit is not null then p_subject || p_account_id end, v_limit, interval '1 hour',
                             format('Test limit reached: %s tests of %s per hour.', v_limit, p_tests), p_now);
end $$;
comment on function cue.require_tests is 'Counts a test; QU031 above the plan''s fires per hour.';

create or replace function cue.begin_channel_test(p_account_id uuid, p_name text, p_now timestamptz default now())
returns table (type cue.channel_type, target text, secrets text[])
language plpgsql security definer as $$
declare
  h cue.channels;
begin
  perform cue.require_unheld(p_account_id);
  select * into h from cue.channels c where c.account_id = p_account_id and c.name = p_name;
  perform cue.refuse_if(not found, 'QU036', format('channel %s not found', p_name));
  perform cue.require_tests(p_account_id, 'channel_tests:', 'channels and endpoints', p_now);
  if h.type = 'email' then
    perform cue.add_job('mails', jsonb_build_object('kind', 'channel_test', 'account_id', p_account_id, 'channel_id', h.id));
  end if;
  return query select h.type, h.target, cue.channel_secrets(h, p_now);
end $$;
comment on function cue.begin_channel_test is 'Counts a test of a channel and returns where to send it; a mail is queued. QU036 if not found.';

create or replace function cue.channel_secrets(h cue.channels, p_now timestamptz) returns text[]
language plpgsql security definer as $$
declare
  a cue.accounts;
begin
  if h.type <> 'webhook' then return null; end if;
  perform cue.alert_webhook_secret(h.account_id, 'service', null, p_now);
  select * into a from cue.accounts where id = h.account_id;
  return cue.alert_signing_secrets(a, p_now);
end $$;
comment on function cue.channel_secrets is 'Returns the secrets that sign a channel''s requests: those of alert webhooks.';

-- The caller has verified the signed link that contains the id.
create or replace function cue.confirm_address(p_address_id uuid, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  update cue.addresses set confirmed_at = coalesce(confirmed_at, p_now) where id = p_address_id;
  perform cue.refuse_if(not found, 'QU007', 'This link is too old, or the account no longer exists.');
end $$;
comment on function cue.confirm_address is 'Records that an address may be used in channels; QU007 if nobody asks for it any more.';

-- Notices ------------------------------------------------------------------------------------------------------------------------------

-- Channels that a cue names and that have been deleted don't count, so that its alerts aren't lost.
create or replace function cue.channels_for(c cue.cues, p_type cue.event_type) returns setof cue.channels
language sql stable security definer as $$
  select h.* from cue.channels h
   where h.account_id = c.account_id and h.enabled and c.tags @> h.tags and (h.types is null or p_type = any (h.types))
     and case when c.alert_channels = '{}' or exists (
                select from cue.channels n where n.account_id = c.account_id and n.name = any (c.alert_channels))
              then h.name = any (c.alert_channels) else h.is_default or h.types is not null end
$$;
comment on function cue.channels_for is 'Returns the channels that get the alerts of a cue, or its requests for approval, by the type of their event.';

-- Once per alert, channel and kind; an alert may be raised and resolved again.
create or replace function cue.add_notices(
  p_account_id uuid, p_channel_ids uuid[], p_kind cue.notice_kind, p_now timestamptz, p_alert_id uuid default null, p_content jsonb default null,
  p_snoozed_until timestamptz default null
) returns void
language sql security definer as $$
  with added as (
    insert into cue.notices (id, account_id, channel_id, alert_id, kind, snoozed_until, content, due_at, created_at)
    select cue.uuid_v7(p_now), p_account_id, u.id, p_alert_id, p_kind, p_snoozed_until, p_content, p_now, p_now from unnest(p_channel_ids) as u (id)
    on conflict do nothing returning id)
  select cue.add_notice_job(a.id, p_account_id, p_now) from added a;
$$;
comment on function cue.add_notices is 'Adds a notice for each of these channels of an account, with its job.';

-- The caller has locked the alert. A channel whose first notice still waits gets the resolution once that has been sent, see end_notice. A summary
-- that was made after the resolution mentions it.
create or replace function cue.add_resolved_notices(p_alert_id uuid, p_now timestamptz) returns void
language sql security definer as $$
  select cue.add_notices(l.account_id, array(
           select r.channel_id from cue.notices r
            where r.alert_id = l.id and r.kind = 'raised' and r.state = 'sent'
              and not exists (select from cue.notices s
                               where s.alert_id = l.id and s.channel_id = r.channel_id and s.kind = 'summary' and s.created_at >= l.resolved_at)),
           'resolved', p_now, l.id)
    from cue.alerts l where l.id = p_alert_id and l.resolved_at is not null and l.snoozed_at is null
$$;
comment on function cue.add_resolved_notices is 'Adds the notices of a resolved alert for the channels that the alert was sent to.';

create or replace function cue.end_snoozes(p_limit int default 200, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  l cue.alerts;
  v_happened jsonb;
  v_count int := 0;
begin
  for l in
    select * from cue.alerts a where a.snoozed_until <= p_now order by a.snoozed_until limit p_limit for no key update skip locked
  loop
    v_happened := jsonb_build_object('failures', l.snoozed_failures, 'resolved', coalesce(l.resolved_at >= l.snoozed_at, false),
                                     'acknowledged', coalesce(l.acknowledged_at >= l.snoozed_at, false));
    update cue.alerts set snoozed_at = null, snoozed_until = null, snoozed_failures = 0 where id = l.id;
    if v_happened <> '{"failures": 0, "resolved": false, "acknowledged": false}' then
      perform cue.add_notices(
        l.account_id, array(select r.channel_id from cue.notices r where r.alert_id = l.id and r.kind = 'raised' and r.state = 'sent'),
        'summary', p_now, l.id, v_happened, l.snoozed_until);
    end if;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.end_snoozes is 'Ends snoozes whose time has passed, with a summary of what happened meanwhile; returns how many.';

-- Called once the events of a batch have their places. Alerts and requests for approval have notices of their own.
create or replace function cue.add_event_notices(p_account_ids uuid[], p_after bigint, p_now timestamptz) returns void
language plpgsql security definer as $$
begin
  perform cue.add_notices(h.account_id, array[h.id], 'event', p_now, null, jsonb_build_object(
            'id', e.id, 'type', e.type, 'at', cue.iso(e.at), 'cue_id', e.cue_id, 'cue_key', e.cue_key, 'execution_id', e.execution_id, 'data', e.data::json))
     from cue.channels h
    cross join lateral cue.read_events(h.account_id, p_after, h.types, null, nullif(h.tags, '{}'), 1000000, 1000000) e
    where h.account_id = any (p_account_ids) and h.types is not null and h.enabled and e.id is not null
      and e.type not in ('alert.raised', 'alert.resolved', 'approval.requested')
    order by e.place;
end $$;
comment on function cue.add_event_notices is 'Adds notices of newly published events for the channels that name their types.';

-- Of a cue that is deleted, there is only the event that says so. A request for approval is needless once there is a decision. With is_decider, its
-- message has the link that decides.
create or replace function cue.read_notice(p_notice_id uuid, p_now timestamptz default now()) returns table (
  kind cue.notice_kind, type cue.channel_type, target text, alert_id uuid, severity cue.alert_severity, cue_name text, alert jsonb, content jsonb,
  tries int, created_at timestamptz, secrets text[], is_decider boolean
)
language plpgsql security definer as $$
begin
  return query
  select n.kind, h.type, h.target, n.alert_id, l.severity, c.name, cue.alert_data(l.id), n.content, n.tries, n.created_at, cue.channel_secrets(h, p_now),
         n.kind = 'approval' and h.gets_links and (select a.approvals_by_link from cue.accounts a where a.id = n.account_id)
    from cue.notices n
    join cue.channels h on h.id = n.channel_id and h.enabled
    left join cue.alerts l on l.id = n.alert_id
    left join cue.cues c on c.id = coalesce(l.cue_id, n.content ->> 'cue_id')
   where n.id = p_notice_id and (n.kind <> 'resolved' or l.resolved_at is not null)
     and (c.deleted_at is null and (c.id is not null or n.content ->> 'cue_id' is null) or n.content ->> 'type' = 'cue.deleted')
     and (n.kind <> 'approval' or exists (
       select from cue.approvals a where a.execution_id = (n.content ->> 'execution_id')::uuid and a.decision is null));
end $$;
comment on function cue.read_notice is 'Returns what a notice says and where it goes, or no row if it has become needless.';

-- A mail is left to the queue of mails, which counts as sent. For others, the try is counted, and may be repeated after p_answer_within.
create or replace function cue.begin_notice(p_notice_id uuid, p_answer_within interval default '40 seconds', p_now timestamptz default now()) returns table (
  kind cue.notice_kind, type cue.channel_type, target text, alert_id uuid, severity cue.alert_severity, cue_name text, alert jsonb, content jsonb,
  tries int, created_at timestamptz, secrets text[], is_decider boolean
)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  l cue.alerts;
  n cue.notices;
  v_later timestamptz;
begin
  select * into l from cue.alerts where id = (select w.alert_id from cue.notices w where w.id = p_notice_id) for share;
  select * into n from cue.notices where id = p_notice_id and due_at <= p_now for update skip locked;
  if not found then return; end if;
  if not exists (select from cue.read_notice(n.id, p_now)) then
    delete from cue.notices where id = n.id;
    return;
  end if;
  v_later := case when cue.is_held(n.account_id) then p_now + interval '10 seconds'
                  when l.snoozed_until is not null then greatest(l.snoozed_until, p_now) + interval '1 second' end;
  if v_later is not null then
    update cue.notices set due_at = v_later where id = n.id;
    perform cue.add_notice_job(n.id, n.account_id, v_later);
  elsif (select h.type from cue.channels h where h.id = n.channel_id) <> 'email' then
    update cue.notices set due_at = p_now + p_answer_within, tries = tries + 1 where id = n.id;
    return query select * from cue.read_notice(n.id, p_now);
  elsif n.alert_id is null and not (select w.allowed from cue.allow('event_mails:' || n.account_id, 100, interval '1 hour', p_now) w) then
    update cue.notices set state = 'failed', due_at = null, error = 'Mail limit reached: 100 events per hour.' where id = n.id;
  else
    perform cue.add_job('mails', jsonb_build_object('kind', 'notice', 'account_id', n.account_id, 'notice_id', n.id));
    update cue.notices set state = 'sent', due_at = null, sent_at = p_now, tries = 1 where id = n.id;
    if n.kind = 'raised' then perform cue.add_resolved_notices(n.alert_id, p_now); end if;
  end if;
end $$;
comment on function cue.begin_notice is 'Begins a try of a notice that is due and returns what to send, or no row if there is nothing to send now.';

-- Without p_error it was accepted. Of two that send the same try, the later one changes nothing.
create or replace function cue.end_notice(
  p_notice_id uuid, p_tries int, p_http_status int default null, p_error text default null, p_is_final boolean default false,
  p_retry_after_ms int default null, p_now timestamptz default now()
) returns cue.notice_state
language plpgsql security definer as $$
declare
  n cue.notices;
  v_delay interval := (cue.notice_delays())[p_tries];
begin
  perform from cue.alerts where id = (select w.alert_id from cue.notices w where w.id = p_notice_id) for share;
  select * into n from cue.notices where id = p_notice_id and state = 'waiting' and tries = p_tries for update;
  if not found then return null; end if;
  n.state := case when p_error is null then 'sent' when p_is_final or v_delay is null then 'failed' else 'waiting' end;
  n.due_at := case when n.state = 'waiting' then p_now + greatest(v_delay, coalesce(p_retry_after_ms, 0) * interval '1 millisecond') end;
  update cue.notices
     set state = n.state, due_at = n.due_at, http_status = p_http_status, error = p_error, sent_at = case when n.state = 'sent' then p_now end
   where id = n.id;
  if n.state = 'waiting' then perform cue.add_notice_job(n.id, n.account_id, n.due_at); end if;
  if n.state = 'sent' and n.kind = 'raised' then perform cue.add_resolved_notices(n.alert_id, p_now); end if;
  return n.state;
end $$;
comment on function cue.end_notice is 'Records the result of a try; a failed one is repeated after 10 seconds, 1, 5 and 30 minutes.';
