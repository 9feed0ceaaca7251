-- Events: the feed of what happened in each account.
--
-- An event is written to new_events in the transaction of its cause. publish_events gives it a place in the feed once that transaction has committed:
-- it sees committed events only, and the row of event_order, which it locks, lets one session at a time do so. The new last_place commits together
-- with the events up to it, and the next session begins after that commit. So when a reader sees a place, all lower ones are committed and visible to it,
-- and an event that is still uncommitted gets a higher one. The numbers are data: they hold after a crash, a restore, or a move to another server, and
-- neither a long transaction nor a dead engine holds up the events of others: its lock ends with its connection, and the next engine continues.
-- Events of one object are in order, because their transactions lock it: the later one gets its seq after the earlier one has committed.

create or replace function cue.fit_event(p_data jsonb) returns json
language plpgsql immutable as $$
declare
  v_name text;
  v_left_out text[] := '{}';
begin
  while octet_length(p_data::text) > cue.event_bytes() loop
    select m.key into v_name from jsonb_each(p_data - 'left_out') m order by octet_length(m.value::text) desc limit 1;
    v_left_out := v_left_out || v_name;
    p_data := p_data - v_name || jsonb_build_object('left_out', v_left_out);
  end loop;
  return p_data;
end $$;
comment on function cue.fit_event is 'Returns the data of an event without its largest members, if it is too large; left_out names them.';

-- A notification makes commits wait for one another. Requests that create, change or delete cues are many, so their replicas send theirs afterwards.
create or replace function cue.notice_events() returns void
language sql security definer as $$ select pg_notify('cue_event', '') $$;
comment on function cue.notice_events is 'Tells engines that there are events to publish.';

create or replace function cue.add_cue_events(p_type cue.event_type, p_cue_ids text[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  insert into cue.new_events (account_id, id, type, at, cue_id, cue_key, cue_tags, data)
  select v.account_id, u.event_id, p_type, p_now, v.id, v.key, v.tags,
         case when octet_length(v.data::text) > cue.event_bytes() then cue.fit_event(v.data::jsonb) else v.data end
    from unnest(p_cue_ids, cue.uuids_v7(cardinality(p_cue_ids), p_now)) with ordinality as u (id, event_id, nth)
   cross join lateral (select * from cue.cue_event_view e where e.id = u.id limit 1) v
   order by u.nth;
  if found and p_type not in ('cue.created', 'cue.updated', 'cue.deleted') then perform cue.notice_events(); end if;
end $$;
comment on function cue.add_cue_events is 'Adds an event about each of these cues, which shows it as it is now, except those that are deleted.';

create or replace function cue.execution_data(p_execution_ids uuid[]) returns table (id uuid, data json)
language plpgsql stable security definer as $$
#variable_conflict use_column
declare
  v_first uuid := (select min(u.id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_last uuid := (select max(u.id::text)::uuid from unnest(p_execution_ids) as u (id));
begin
  return query
  select v.id, case when octet_length(d.data::text) > cue.event_bytes() then cue.fit_event(d.data::jsonb) else d.data end
    from unnest(p_execution_ids) as u (id)
   cross join lateral (
     select i.id, i.cue_id, i.cue_name, i.scheduled_for, i.due_at, i.status, i.outcome_state, i.outcome_success, i.triggered_by, i.replayed_from,
            i.attempts, i.http_status, i.error_message, i.started_at, i.last_attempt_at, i.delivered_at, i.next_retry, i.claimed_by_worker,
            i.claimed_at, i.last_heartbeat_at, i.lease_expires_at, i.outcome || jsonb_strip_nulls(jsonb_build_object(
              'metadata', i.metadata::jsonb, 'artifacts', i.artifacts::jsonb)) as outcome, i.parents, i.created_at, i.updated_at
       from cue.execution_item_view i where i.id = u.id and i.id between v_first and v_last limit 1) v
   cross join lateral (select to_json(v) as data) d;
end $$;
comment on function cue.execution_data is 'Returns executions as lists show them.';

create or replace function cue.add_execution_events(p_type cue.event_type, p_execution_ids uuid[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_is_quiet boolean := p_type in ('execution.retrying', 'execution.verified');
begin
  if v_is_quiet and not exists (select from cue.event_subscribers) then return; end if;
  insert into cue.new_events (account_id, id, type, at, cue_id, cue_key, cue_tags, execution_id, data)
  select c.account_id, cue.uuid_v7(p_now), p_type, p_now, c.id, c.key, c.tags, d.id, d.data
    from cue.execution_data(p_execution_ids) d
   cross join lateral (select q.account_id, q.id, q.key, q.tags from cue.cues q where q.id = d.data ->> 'cue_id' limit 1) c
   where not v_is_quiet or exists (select from cue.event_subscribers s where s.account_id = c.account_id)
   order by array_position(p_execution_ids, d.id);
  if found then perform cue.notice_events(); end if;
end $$;
comment on function cue.add_execution_events is
  'Adds an event about each of these executions; of retries and verifications only for accounts that subscribe to them.';

-- The first statement is all that a success costs while nobody subscribes to successes.
create or replace function cue.add_successes(p_execution_ids uuid[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_first uuid;
  v_last uuid;
begin
  if not exists (select from cue.event_subscribers) then return; end if;
  select min(id::text)::uuid, max(id::text)::uuid into v_first, v_last from unnest(p_execution_ids) as u (id);
  insert into cue.new_events (account_id, id, type, at, execution_ids, cue_ids)
  select e.account_id, cue.uuid_v7(p_now), 'execution.succeeded', p_now, array_agg(e.id), array_agg(e.cue_id)
    from (select x.account_id, x.id, x.cue_id from cue.executions x
           where x.id = any (p_execution_ids) and x.id between v_first and v_last and x.status = 'success' and x.ended_at = p_now order by x.id) e
   where exists (select from cue.event_subscribers s where s.account_id = e.account_id) group by e.account_id;
  if found then perform cue.notice_events(); end if;
end $$;
comment on function cue.add_successes is 'Adds the events of executions that have just succeeded, for accounts that subscribe to them.';

create or replace function cue.add_event(
  p_account_id uuid, p_type cue.event_type, p_data jsonb, p_now timestamptz default now(), p_cue_id text default null, p_execution_id uuid default null
) returns void
language plpgsql security definer as $$
begin
  insert into cue.new_events (account_id, id, type, at, cue_id, cue_key, cue_tags, execution_id, data)
  select p_account_id, cue.uuid_v7(p_now), p_type, p_now, p_cue_id, c.key, c.tags, p_execution_id, cue.fit_event(p_data)
    from (select) x left join cue.cues c on c.id = p_cue_id;
  perform cue.notice_events();
end $$;
comment on function cue.add_event is 'Adds an event that is not about the state of a cue or an execution.';

create or replace function cue.add_end_event(e cue.executions, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_is_judged boolean := e.outcome_recorded_at = p_now and e.outcome_state in ('verified_success', 'verification_failed');
begin
  if v_is_judged then
    perform cue.add_verification_event(e, p_now);
  elsif cue.is_success(e.status, e.outcome_success) then
    perform cue.add_successes(array[e.id], p_now);
  else
    perform cue.add_execution_events(
      case e.status when 'success' then 'execution.failed' else 'execution.' || e.status end::cue.event_type, array[e.id], p_now);
  end if;
end $$;
comment on function cue.add_end_event is 'Adds the event of an execution''s end: one of its status, or of the verification that its report brought.';

-- A report may bring no end, but a verification.
create or replace function cue.add_verification_event(e cue.executions, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  if e.outcome_state in ('verified_success', 'verification_failed') then
    perform cue.add_execution_events(
      case e.outcome_state when 'verified_success' then 'execution.verified' else 'execution.rejected' end::cue.event_type, array[e.id], p_now);
  end if;
end $$;
comment on function cue.add_verification_event is 'Adds the event of an outcome that has been verified or rejected.';

create or replace function cue.alert_data(p_alert_id uuid) returns jsonb
language sql stable security definer as $$
  select to_jsonb(v) - '{account_id,notices}'::text[] || jsonb_build_object(
           'acknowledged_at', cue.iso(v.acknowledged_at), 'resolved_at', cue.iso(v.resolved_at), 'snoozed_until', cue.iso(v.snoozed_until),
           'created_at', cue.iso(v.created_at))
    from cue.alert_view v where v.id = p_alert_id
$$;
comment on function cue.alert_data is 'Returns an alert as lists show it, without its notices.';

create or replace function cue.add_alert_event(p_type cue.event_type, p_alert_id uuid, p_now timestamptz default now()) returns void
language sql security definer as $$
  select cue.add_event(l.account_id, p_type, cue.alert_data(l.id), p_now, l.cue_id, l.execution_id) from cue.alerts l where l.id = p_alert_id
$$;
comment on function cue.add_alert_event is 'Adds an event about an alert.';

create or replace function cue.add_operation_event(p_operation_id text, p_now timestamptz default now()) returns void
language sql security definer as $$
  select cue.add_event(v.account_id, 'operation.finished', to_jsonb(v) - '{account_id,errors}'::text[] || jsonb_build_object(
           'created_at', cue.iso(v.created_at), 'ended_at', cue.iso(v.ended_at)), p_now)
    from cue.operation_view v where v.id = p_operation_id
$$;
comment on function cue.add_operation_event is 'Adds the event of an operation''s end.';

create or replace function cue.key_data(p_key_id uuid) returns jsonb
language sql stable as $$
  select to_jsonb(k) - '{account_id}'::text[] || jsonb_build_object(
           'created_at', cue.iso(k.created_at), 'last_used_at', cue.iso(k.last_used_at), 'revoked_at', cue.iso(k.revoked_at))
    from cue.key_view k where k.id = p_key_id
$$;
comment on function cue.key_data is 'Returns an API key as lists show it.';

-- Whatever creates or revokes a key, or replaces a secret, is in the audit log: so the log's entries make these events.
create or replace function cue.add_credential_events(p_account_id uuid, p_entry cue.audit_event, p_detail jsonb, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  v_revoked text := case p_entry when 'key.revoked' then p_detail ->> 'key_id' when 'key.regenerated' then p_detail ->> 'replaced_key_id' end;
begin
  if v_revoked is not null then perform cue.add_event(p_account_id, 'key.revoked', cue.key_data(v_revoked::uuid), p_now); end if;
  if p_entry in ('account.registered', 'key.created', 'key.regenerated') then
    perform cue.add_event(p_account_id, 'key.created', cue.key_data((p_detail ->> 'key_id')::uuid), p_now);
  elsif p_entry in ('webhook_secret.regenerated', 'alert_webhook_secret.regenerated') then
    perform cue.add_event(p_account_id, 'secret.regenerated', jsonb_build_object('secret', split_part(p_entry::text, '.', 1)), p_now);
  end if;
end $$;
comment on function cue.add_credential_events is 'Adds the events that go with an entry of the audit log.';

create or replace function cue.add_limit_event(p_account_id uuid, p_limit text, p_value int, p_now timestamptz default now()) returns void
language sql security definer as $$
  select cue.add_event(p_account_id, 'limit.reached', jsonb_build_object('limit', p_limit, 'value', p_value), p_now)
$$;
comment on function cue.add_limit_event is 'Adds the event that an account has reached a limit: cues, executions_per_month or events_per_day.';

-- Once in 24 hours: many requests may be refused. Not in their transactions, which are rolled back: see announce.ts.
create or replace function cue.add_cue_limit_event(p_account_id uuid, p_now timestamptz default now()) returns void
language sql security definer as $$
  select cue.add_limit_event(a.id, 'cues', p.cues, p_now)
    from cue.accounts a cross join lateral cue.limits_of(a) p
   where a.id = p_account_id and (select w.allowed from cue.allow('cue_limit:' || a.id, 1, interval '24 hours', p_now) w)
$$;
comment on function cue.add_cue_limit_event is 'Adds the event that a cue was refused because an account has as many as it may, once in 24 hours.';

-- The partition's day is in its name, as months are. Attaching a table blocks no reader.
create or replace function cue.add_event_day(p_day date) returns void
language plpgsql security definer as $$
declare
  v_name text := to_char(p_day, '"events_"YYYY_MM_DD');
begin
  if to_regclass('cue.' || v_name) is not null then return; end if;
  execute format('create table cue.%I (like cue.events including defaults including constraints)', v_name);
  execute format('alter table cue.events attach partition cue.%I for values from (%L) to (%L)', v_name, p_day::timestamp at time zone 'utc',
    (p_day + 1)::timestamp at time zone 'utc');
end $$;
comment on function cue.add_event_day is 'Makes the partition of events for a day, unless it exists.';

-- Nothing follows a cue.deleted: an event that was written while the cue was being deleted is dropped. Those of an account that is gone, too.
create or replace function cue.publish_events(
  p_limit int default 1000, p_most_per_day int default cue.events_per_day(), p_now timestamptz default now()
) returns int
language plpgsql security definer as $$
declare
  o cue.event_order;
  v_last bigint;
  v_seqs bigint[];
  v_day date := (p_now at time zone 'utc')::date;
  v_accounts uuid[];
  v_left_out uuid[];
  v_reached uuid[];
begin
  select * into o from cue.event_order for no key update skip locked;
  if not found then return 0; end if;
  if o.for_endpoints is not null then
    perform cue.queue_endpoints(o.for_endpoints, p_now);
    update cue.event_order set for_endpoints = null;
  end if;
  -- A new statement: it sees what the former holder of the lock has committed.
  v_seqs := array(select n.seq from cue.new_events n order by n.seq limit p_limit for update skip locked);
  if v_seqs = '{}' then return 0; end if;
  perform cue.add_event_day(v_day);
  with kept as materialized (
    select n.seq, n.account_id, n.id, n.type, n.at, n.cue_id, n.cue_key, n.cue_tags, n.execution_id, n.data, r.execution_ids, r.cue_ids
      from cue.new_events n
     cross join lateral (
       select n.execution_ids, n.cue_ids
        where n.execution_ids is null or not exists (select from cue.cues c where c.account_id = n.account_id and c.deleted_at is not null)
       union all
       select array_agg(u.execution_id), array_agg(u.cue_id) from unnest(n.execution_ids, n.cue_ids) as u (execution_id, cue_id)
        where (select c.deleted_at is null from cue.cues c where c.id = u.cue_id)
           or exists (select from cue.new_events d where d.cue_id = u.cue_id and d.type = 'cue.deleted' and d.seq >= n.seq)
       having count(*) > 0 and exists (select from cue.cues c where c.account_id = n.account_id and c.deleted_at is not null)) r
     where n.seq = any (v_seqs) and (select true from cue.accounts a where a.id = n.account_id)
       and (n.cue_id is null or (select c.deleted_at is null from cue.cues c where c.id = n.cue_id)
            or exists (select from cue.new_events d where d.cue_id = n.cue_id and d.type = 'cue.deleted' and d.seq >= n.seq))),
  batch as materialized (
    select k.*, sum(s.size) over (order by k.seq)::bigint as nth, sum(s.size) over (partition by k.account_id order by k.seq) as nth_of_account,
           sum(s.size) over (partition by k.account_id) as of_account
      from kept k cross join lateral (select coalesce(cardinality(k.execution_ids), 1) as size) s),
  counted as (
    insert into cue.event_days as d (account_id, day, count) select b.account_id, v_day, max(b.of_account) from batch b group by b.account_id
    on conflict (account_id, day) do update set count = d.count + excluded.count returning d.account_id, d.count),
  placed as materialized (
    select b.*, c.count > p_most_per_day and c.count - b.of_account <= p_most_per_day as reaches,
           c.count - b.of_account + b.nth_of_account > p_most_per_day and b.type between 'execution.succeeded' and 'execution.cancelled' as is_left_out
      from batch b join counted c on c.account_id = b.account_id),
  published as (
    insert into cue.events (account_id, place, published_at, id, type, at, cue_id, cue_key, cue_tags, execution_id, data, execution_ids, cue_ids)
    select p.account_id, o.last_place + p.nth, p_now, p.id, p.type, p.at, p.cue_id, p.cue_key, p.cue_tags, p.execution_id, p.data, p.execution_ids, p.cue_ids
      from placed p where not p.is_left_out)
  select o.last_place + coalesce(max(p.nth), 0), array_agg(distinct p.account_id), array_agg(distinct p.account_id) filter (where p.is_left_out),
         array_agg(distinct p.account_id) filter (where p.reaches)
    into v_last, v_accounts, v_left_out, v_reached from placed p;
  delete from cue.new_events where seq = any (v_seqs);
  if v_accounts is null then return cardinality(v_seqs); end if;
  update cue.event_order
     set last_place = v_last,
         for_endpoints = (select array_agg(distinct e.account_id) from cue.event_endpoints e where e.account_id = any (v_accounts) and e.status = 'enabled');
  perform cue.add_event_notices(v_accounts, o.last_place, p_now);
  update cue.event_days set left_out_from = coalesce(left_out_from, o.last_place + 1), left_out_to = v_last
   where account_id = any (v_left_out) and day = v_day;
  perform cue.add_limit_event(u.id, 'events_per_day', p_most_per_day, p_now) from unnest(v_reached) as u (id);
  -- A notification holds 8,000 bytes.
  perform pg_notify('cue_published', v_last || ' ' || string_agg(u.id::text, ' '))
     from unnest(v_accounts) with ordinality as u (id, nth) group by u.nth / 200;
  return cardinality(v_seqs);
end $$;
comment on function cue.publish_events is 'Gives committed events their places in the feed; returns how many it took, 0 while another session does so.';

-- What is read ends at the last place that is visible together with it. With filters, at most p_scan events are looked at.
create or replace function cue.read_events(
  p_account_id uuid, p_after bigint default null, p_types cue.event_type[] default null, p_cue_ids text[] default null, p_tags text[] default null,
  p_limit int default 100, p_scan int default 2000
) returns table (
  place bigint, id uuid, type cue.event_type, at timestamptz, cue_id text, cue_key text, execution_id uuid, data text, next_place bigint, has_more boolean,
  truncated boolean
)
language plpgsql stable security definer as $$
#variable_conflict use_column
declare
  o cue.event_order := (select e from cue.event_order e);
  v_after bigint := coalesce(least(p_after, o.last_place), o.last_place);
  v_scan int := case when num_nonnulls(p_types, p_cue_ids, p_tags) = 0 then p_limit else p_scan end;
begin
  return query
  with scanned as materialized (
    -- size: events of the row; unread: those after v_after; total: unread ones up to the row.
    select e.*, r.size, r.unread, sum(r.unread) over (order by e.place) as total
      from cue.events e
     cross join lateral (
       select z.size, z.size - greatest(0, v_after - e.place + z.size) as unread
         from (select coalesce(cardinality(e.execution_ids), 1) as size) z) r
     where e.account_id = p_account_id and e.place > v_after and e.place <= o.last_place order by e.place limit v_scan + 1),
  single as materialized (
    select s.place - s.size + x.nth as place, s.total - s.size + x.nth as nth, x.id, s.type, s.at, x.cue_id, s.cue_key, s.cue_tags, x.execution_id, s.data
      from scanned s
     cross join lateral (
       select s.id, s.cue_id, s.execution_id, 1 as nth where s.execution_ids is null
       union all
       select u.execution_id, u.cue_id, u.execution_id, u.nth
         from unnest(s.execution_ids, s.cue_ids) with ordinality as u (execution_id, cue_id, nth) where s.execution_ids is not null) x
     where s.total - s.unread <= v_scan and x.nth > s.size - s.unread),
  matching as materialized (
    select n.*, row_number() over (order by n.place) as match from single n
     where n.nth <= v_scan and (p_types is null or n.type = any (p_types)) and (p_cue_ids is null or n.cue_id = any (p_cue_ids))
       and (p_tags is null or coalesce(n.cue_tags, (select c.tags from cue.cues c where c.id = n.cue_id)) @> p_tags)),
  ending as (
    select coalesce((select m.place from matching m where m.match = p_limit and exists (select from scanned s where s.place > m.place)),
                    (select n.place from single n where n.nth = v_scan and exists (select from scanned s where s.place > n.place))) as place)
  select m.place, m.id, m.type, m.at, m.cue_id,
         case when m.data is null then (select c.key from cue.cues c where c.id = m.cue_id) else m.cue_key end, m.execution_id,
         coalesce(m.data, d.data, case when m.id is not null then json_build_object('id', m.execution_id, 'cue_id', m.cue_id, 'status', 'success') end)::text,
         coalesce(n.place, o.last_place), n.place is not null,
         coalesce(p_after > o.last_place or p_after >= 0 and p_after < o.dropped_place
           or exists (
             select from cue.event_days d
              where d.account_id = p_account_id and d.left_out_to > v_after and d.left_out_from <= coalesce(n.place, o.last_place)), false)
    from ending n
    left join matching m on m.match <= p_limit
    left join cue.execution_data(array(select e.execution_id from matching e where e.match <= p_limit and e.data is null)) d
      on d.id = m.execution_id and m.data is null
   order by m.place;
end $$;
comment on function cue.read_events is
  'Returns events after a place, or one row without any; next_place is the place to continue from. Without p_after: from now on; -1: from the oldest.';

create or replace function cue.drop_old_events(p_before timestamptz, p_now timestamptz default now()) returns setof text
language plpgsql security definer as $$
declare
  v_day date;
  v_name text;
begin
  if p_before > p_now - interval '23 hours' then
    raise exception 'Events are kept for at least a day; % is more recent.', p_before using errcode = cue.refusal('QU011');
  end if;
  for v_day in
    select d.day from pg_inherits i join pg_class p on p.oid = i.inhrelid
     cross join lateral (select to_date(substring(p.relname from '\d{4}_\d\d_\d\d$'), 'YYYY_MM_DD') as day) d
     where i.inhparent = 'cue.events'::regclass and (d.day + 1)::timestamp at time zone 'utc' <= p_before order by d.day
  loop
    v_name := to_char(v_day, '"events_"YYYY_MM_DD');
    execute format('update cue.event_order set dropped_place = greatest(dropped_place, (select max(place) from cue.%I))', v_name);
    execute format('drop table cue.%I', v_name);
    return next v_name;
  end loop;
  delete from cue.event_days where day < (p_before at time zone 'utc')::date;
end $$;
comment on function cue.drop_old_events is 'Drops days of events that end before p_before; QU011 within a day.';

-- Called before the account is gone. The rest is deleted under the lock of whoever publishes, so that nothing is published after it.
create or replace function cue.delete_events(p_account_id uuid) returns void
language plpgsql security definer as $$
begin
  delete from cue.events where account_id = p_account_id;
  perform from cue.event_order for no key update;
  delete from cue.new_events where account_id = p_account_id;
  delete from cue.events where account_id = p_account_id;
  delete from cue.event_days where account_id = p_account_id;
  delete from cue.notices where account_id = p_account_id;
end $$;
comment on function cue.delete_events is 'Deletes the events and notices of an account.';

-- Work that has waited for 15 seconds. The first entry of each task in the index is its oldest, so a backlog costs nothing.
create or replace function cue.note_unattended(p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_until uuid := cue.uuid_v7_floor(p_now + interval '1 day');
  d record;
  v_count int := 0;
begin
  if not pg_try_advisory_xact_lock(hashtext('cue.note_unattended')) then return 0; end if;
  for d in
    with recursive waiting as (
      (select e.account_id, coalesce(e.task, '') as task, e.claimable_at, 1 as n from cue.executions e
        where e.claimable_at is not null and e.id < v_until order by e.account_id, coalesce(e.task, ''), e.claimable_at limit 1)
      union all
      select f.account_id, f.task, f.claimable_at, w.n + 1 from waiting w cross join lateral (
        select e.account_id, coalesce(e.task, '') as task, e.claimable_at from cue.executions e
         where e.claimable_at is not null and e.id < v_until and (e.account_id, coalesce(e.task, '')) > (w.account_id, w.task)
         order by e.account_id, coalesce(e.task, ''), e.claimable_at limit 1) f
       where w.n < cue.counted_to()),
    compared as (
      select coalesce(w.account_id, u.account_id) as account_id, coalesce(w.task, u.task) as task, w.claimable_at, u.task is not null as is_noted
        from (select * from waiting where claimable_at <= p_now - interval '15 seconds') w
        full join cue.unattended_tasks u on u.account_id = w.account_id and u.task = w.task)
    select k.*, exists (
             select from cue.workers w where w.account_id = k.account_id and w.last_heartbeat > p_now - cue.worker_timeout()
                and (w.handlers = '{}' or w.handlers && array[k.task, '*'])) as is_attended
      from compared k
  loop
    if d.is_noted and (d.is_attended or d.claimable_at is null) then
      delete from cue.unattended_tasks where account_id = d.account_id and task = d.task;
      if d.is_attended then perform cue.add_event(d.account_id, 'task.attended', jsonb_build_object('task', nullif(d.task, '')), p_now); end if;
    elsif not d.is_noted and not d.is_attended then
      -- The account may be gone, or going.
      insert into cue.unattended_tasks (account_id, task)
      select a.id, d.task from cue.accounts a where a.id = d.account_id for key share skip locked;
      continue when not found;
      perform cue.add_event(d.account_id, 'task.unattended', jsonb_build_object(
                'task', nullif(d.task, ''), 'waiting_since', cue.iso(d.claimable_at)), p_now);
    else
      continue;
    end if;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.note_unattended is 'Adds events about work that waits without a live worker, and about workers that came; returns how many changed.';

create or replace function cue.latest_place() returns bigint
language sql stable security definer as $$ select last_place from cue.event_order $$;
comment on function cue.latest_place is 'Returns the place of the latest event of all accounts.';
