-- Event endpoints: addresses that the events of an account are sent to. An endpoint keeps its own place in the feed, up to which it has
-- got its events; so an event costs no row and no job per endpoint, and the order of the feed is kept by sending one event after the other. A turn
-- sends a few of them. While due_at is set, a job waits for that instant: the next turn, the next try, or another engine's turn if this one crashes. An
-- endpoint that has everything has no job until the next publication adds one. That happens after the commit of the events (see publish_events), and a
-- waiting job is not added twice: whichever job runs then, sees them.

create or replace function cue.create_event_endpoint(
  p_account_id uuid, p_url text, p_types cue.event_type[], p_tag text default null, p_cue_ids text[] default null, p_description text default null,
  p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns table (id uuid, secret text)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  a cue.accounts := cue.lock_account(p_account_id);
  e cue.event_endpoints;
begin
  perform cue.refuse_if((select count(*) from cue.event_endpoints n where n.account_id = a.id) >= 20, 'QU035',
    'Event endpoint limit reached: 20 per account. Delete one first.');
  insert into cue.event_endpoints (id, account_id, url, types, tag, cue_ids, description, secret, place, created_at)
  select cue.uuid_v7(p_now), a.id, p_url, p_types, p_tag, p_cue_ids, p_description, cue.new_secret(), o.last_place, p_now from cue.event_order o
  returning * into e;
  perform cue.subscribe_parts(a.id);
  perform cue.record_event(a.id, 'event_endpoint.created', p_actor, p_ip, jsonb_build_object('endpoint_id', e.id), p_now);
  return query select e.id, e.secret;
end $$;
comment on function cue.create_event_endpoint is 'Creates an endpoint for events from now on, and returns its id and secret; QU035 too many.';

create or replace function cue.delete_event_endpoint(
  p_account_id uuid, p_endpoint_id uuid, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
begin
  perform cue.lock_account(p_account_id);
  delete from cue.event_endpoints where id = p_endpoint_id and account_id = p_account_id;
  perform cue.refuse_if(not found, 'QU047', format('event endpoint %s not found', p_endpoint_id));
  perform cue.move_endpoint_job(p_endpoint_id, p_account_id, null);
  perform cue.subscribe_parts(p_account_id);
  perform cue.record_event(p_account_id, 'event_endpoint.deleted', p_actor, p_ip, jsonb_build_object('endpoint_id', p_endpoint_id), p_now);
end $$;
comment on function cue.delete_event_endpoint is 'Deletes an endpoint; QU047 if not found.';

-- A new number of the turn, so that the end of one that is under way does not move the place back.
create or replace function cue.enable_event_endpoint(
  p_account_id uuid, p_endpoint_id uuid, p_skips boolean, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns boolean
language plpgsql security definer as $$
declare
  e cue.event_endpoints;
  v_last bigint;
begin
  perform cue.lock_account(p_account_id);
  select * into e from cue.event_endpoints where id = p_endpoint_id and account_id = p_account_id for update;
  perform cue.refuse_if(not found, 'QU047', format('event endpoint %s not found', p_endpoint_id));
  v_last := cue.latest_place();
  update cue.event_endpoints
     set status = 'enabled', disabled_at = null, failing_since = null, tries = 0, turn = turn + 1, due_at = p_now,
         place = case when p_skips then greatest(place, v_last) else place end
   where id = e.id;
  perform cue.move_endpoint_job(e.id, e.account_id, p_now);
  perform cue.record_event(e.account_id, 'event_endpoint.enabled', p_actor, p_ip, jsonb_build_object('endpoint_id', e.id), p_now);
  return not p_skips and (select r.truncated from cue.read_events(e.account_id, e.place, e.types, e.cue_ids, cue.endpoint_tags(e), 1) r limit 1);
end $$;
comment on function cue.enable_event_endpoint is
  'Continues an endpoint at the first event that it has not got, or after all (p_skips); returns whether events are missing there. QU047 if not found.';

create or replace function cue.endpoint_tags(e cue.event_endpoints) returns text[]
language sql immutable as $$ select case when e.tag is not null then array[e.tag] end $$;
comment on function cue.endpoint_tags is 'Returns the tags that cues of an endpoint''s events must have, or null.';

create or replace function cue.begin_endpoint_test(p_account_id uuid, p_endpoint_id uuid, p_now timestamptz default now())
returns table (url text, secret text)
language plpgsql security definer as $$
declare
  e cue.event_endpoints;
begin
  perform cue.require_unheld(p_account_id);
  select * into e from cue.event_endpoints where id = p_endpoint_id and account_id = p_account_id;
  perform cue.refuse_if(not found, 'QU047', format('event endpoint %s not found', p_endpoint_id));
  perform cue.require_tests(p_account_id, 'channel_tests:', 'channels and endpoints', p_now);
  return query select e.url, e.secret;
end $$;
comment on function cue.begin_endpoint_test is 'Counts a test of an endpoint and returns where to send it; QU047 if not found.';

-- One event after a failed try, so that an endpoint that is down gets one request at a time. While its row is locked, the job is repeated.
create or replace function cue.begin_endpoint_turn(
  p_endpoint_id uuid, p_limit int default 50, p_answer_within interval default '40 seconds', p_now timestamptz default now()
) returns table (
  url text, secret text, turn int, next_place bigint, truncated boolean, place bigint, id uuid, type cue.event_type, at timestamptz, cue_id text,
  cue_key text, execution_id uuid, data text
)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  e cue.event_endpoints;
  r record;
  v_later timestamptz;
  v_has_events boolean := false;
begin
  select * into e from cue.event_endpoints n where n.id = p_endpoint_id and n.status = 'enabled' for update skip locked;
  if not found then
    select * into e from cue.event_endpoints n where n.id = p_endpoint_id and n.status = 'enabled';
    if found then perform cue.move_endpoint_job(e.id, e.account_id, p_now + interval '1 second'); end if;
    return;
  end if;
  v_later := case when e.due_at > p_now then e.due_at when cue.is_held(e.account_id) then p_now + interval '10 seconds' end;
  if v_later is not null then
    update cue.event_endpoints n set due_at = v_later where n.id = e.id and n.due_at is distinct from v_later;
    perform cue.move_endpoint_job(e.id, e.account_id, v_later);
    return;
  end if;
  for r in
    select * from cue.read_events(e.account_id, e.place, e.types, e.cue_ids, cue.endpoint_tags(e), case when e.tries > 0 then 1 else p_limit end)
  loop
    e.due_at := case when r.id is not null or r.has_more then p_now + case when r.id is not null then p_answer_within else '0' end end;
    if r.id is null then
      update cue.event_endpoints n set place = greatest(n.place, r.next_place), due_at = e.due_at where n.id = e.id;
    else
      v_has_events := true;
      return query select e.url, e.secret, e.turn + 1, r.next_place, r.truncated, r.place, r.id, r.type, r.at, r.cue_id, r.cue_key, r.execution_id, r.data;
    end if;
  end loop;
  if v_has_events then update cue.event_endpoints n set turn = n.turn + 1, due_at = e.due_at where n.id = e.id; end if;
  perform cue.move_endpoint_job(e.id, e.account_id, e.due_at);
end $$;
comment on function cue.begin_endpoint_turn is 'Begins a turn of an endpoint and returns the events to send, or no row if there is nothing to send now.';

-- p_place: that of the last event that was accepted or refused for good. With p_error, the one after it failed.
create or replace function cue.end_endpoint_turn(
  p_endpoint_id uuid, p_turn int, p_place bigint default null, p_http_status int default null, p_error text default null,
  p_retry_after_ms int default null, p_now timestamptz default now()
) returns table (tries int, status cue.endpoint_status)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  e cue.event_endpoints;
  v_delays constant interval[] := cue.notice_delays();
begin
  select * into e from cue.event_endpoints n where n.id = p_endpoint_id and n.status = 'enabled' and n.turn = p_turn for update;
  if not found then return; end if;
  if p_place is not null then
    e.place := greatest(e.place, p_place);
    e.delivered_at := p_now;
    e.failing_since := null;
    e.tries := 0;
  end if;
  if p_error is null then
    e.due_at := p_now;
  else
    e.failing_since := coalesce(e.failing_since, p_now);
    e.tries := e.tries + 1;
    e.due_at := p_now + greatest(v_delays[least(e.tries, cardinality(v_delays))], coalesce(p_retry_after_ms, 0) * interval '1 millisecond');
    if e.tries >= 20 and e.failing_since <= p_now - interval '3 days' then
      e.status := 'disabled';
      e.due_at := null;
    end if;
  end if;
  update cue.event_endpoints n
     set place = e.place, turn = n.turn + 1, delivered_at = e.delivered_at, failing_since = e.failing_since, tries = e.tries, due_at = e.due_at,
         status = e.status, disabled_at = case when e.status = 'disabled' then p_now end, http_status = p_http_status, error = p_error
   where n.id = e.id;
  perform cue.move_endpoint_job(e.id, e.account_id, e.due_at);
  if e.status = 'disabled' then perform cue.announce_disabled_endpoint(e.account_id, e.id, p_now); end if;
  return query select e.tries, e.status;
end $$;
comment on function cue.end_endpoint_turn is
  'Records a turn of an endpoint. A failed event is repeated after 10 seconds, 1, 5 and then every 30 minutes; after 3 days and 20 tries the endpoint is disabled.';

create or replace function cue.announce_disabled_endpoint(p_account_id uuid, p_endpoint_id uuid, p_now timestamptz) returns void
language plpgsql security definer as $$
begin
  perform cue.add_event(p_account_id, 'endpoint.disabled', (
    select to_jsonb(v) - '{account_id,next_try_at}'::text[] || jsonb_build_object(
             'failing_since', cue.iso(v.failing_since), 'delivered_at', cue.iso(v.delivered_at), 'created_at', cue.iso(v.created_at),
             'disabled_at', cue.iso(v.disabled_at))
      from cue.event_endpoint_view v where v.id = p_endpoint_id), p_now);
  perform cue.record_event(p_account_id, 'event_endpoint.disabled', 'service', null, jsonb_build_object('endpoint_id', p_endpoint_id), p_now);
  perform cue.add_job('mails', jsonb_build_object('kind', 'endpoint_disabled', 'account_id', p_account_id, 'endpoint_id', p_endpoint_id));
end $$;
comment on function cue.announce_disabled_endpoint is 'Adds the event, the audit entry and the mail about an endpoint that was disabled.';
