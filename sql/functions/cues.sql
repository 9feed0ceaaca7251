-- Create cues. The caller computes cron slots and passes the next run.

-- Waits up to lock_timeout for accounts that another transaction holds, and then leaves them out. cue_rooms are locked too, since adding
-- cues writes them.
create or replace function cue.lock_accounts(p_account_ids uuid[]) returns uuid[]
language plpgsql security definer as $$
declare
  v_free uuid[] := array(select id from cue.accounts where id = any (p_account_ids) order by id for no key update skip locked);
begin
  if not p_account_ids <@ v_free then
    begin
      v_free := v_free || array(
        select id from cue.accounts where id = any (p_account_ids) and id <> all (v_free) order by id for no key update);
    exception when lock_not_available then
      null;
    end;
  end if;
  -- add_cues writes these rows next. With `not exists`, a plan made while the table is small would read all of it.
  return array(
    select u.id from unnest(v_free) as u (id)
     where coalesce((select true from cue.cue_rooms k where k.account_id = u.id for update skip locked),
                    (select false from cue.cue_rooms k where k.account_id = u.id limit 1), true));
end $$;
comment on function cue.lock_accounts is 'Locks accounts for adding cues and returns those it could lock.';

create or replace function cue.cue_id_by_key(p_account_id uuid, p_key text) returns text
language sql stable security definer as $$
  select id from cue.cues where account_id = p_account_id and key = p_key and deleted_at is null
$$;
comment on function cue.cue_id_by_key is 'Returns the id of the cue with a key, or null.';

create or replace function cue.key_taken_message(p_key text, p_cue_id text) returns text
language sql immutable as $$ select format('Key %s belongs to cue %s. Use another key, or PUT /v1/cues/by-key/{key} to replace that cue.', p_key, p_cue_id) $$;
comment on function cue.key_taken_message is 'Returns the message for a key that another cue has.';

-- Exact, because the caller has locked p_free, the accounts that are not held by others. Of several cues with the same key, the first gets it.
-- memory_check cues are not counted.
create or replace function cue.admit_cues(p_account_ids uuid[], p_cues jsonb, p_free uuid[]) returns text[]
language plpgsql security definer as $$
declare
  v_refusals text[];
begin
  with given as materialized (
    select g.account_id, g.place, g.account_id = any (p_free) as is_free, g.cue @> '{"memory_check": true}' as memory_check, g.cue ->> 'key' as key,
           g.cue @> '{"callback_allowed": false}' and cue.has_callback(g.cue ->> 'callback_url', g.cue ->> 'on_failure_webhook') as lesser,
           g.cue ->> 'gate' is not null and cue.gate_fault(g.account_id, g.cue ->> 'gate') is not null as lacks_gate
      from rows from (unnest(p_account_ids), jsonb_array_elements(p_cues)) with ordinality as g (account_id, cue, place)),
  named as materialized (
    select g.*, g.key is not null and coalesce(
             (select true from cue.cues c where c.account_id = g.account_id and c.key = g.key and c.deleted_at is null limit 1),
             (select true from given d where d.account_id = g.account_id and d.key = g.key and d.place < g.place limit 1), false) as is_taken
      from given g where g.is_free),
  counted as (
    select n.*, count(*) filter (where not n.memory_check and not n.is_taken) over (partition by n.account_id order by n.place) as nth from named n),
  wanted as (select n.account_id, max(n.nth)::int as cues from counted n group by n.account_id),
  room as materialized (
    select w.account_id, w.cues as wanted, p.cues as plan_cues, p.sends_key, case
             when p.cues is null then w.cues
             when known.plan_cues = p.cues and known.room >= w.cues then known.room
             else greatest(0, p.cues - (
               select count(*)::int from (
                 select from cue.cues c
                  where c.account_id = w.account_id and c.deleted_at is null and c.status in ('active', 'paused') and not c.memory_check
                  limit p.cues) q)) end as cues
      from wanted w
     cross join lateral (
       select l.cues, a.webhook_authorization = 'api_key' as sends_key
         from cue.accounts a cross join lateral cue.limits_of(a) l
        where a.id = w.account_id limit 1) p
      left join lateral (select * from cue.cue_rooms k where k.account_id = w.account_id limit 1) known on true),
  taken as (
    insert into cue.cue_rooms as k (account_id, plan_cues, room)
    select r.account_id, coalesce(r.plan_cues, -1), greatest(0, r.cues - r.wanted) from room r
    on conflict (account_id) do update set plan_cues = excluded.plan_cues, room = excluded.room),
  fitting as (
    select n.place, case when n.is_taken then 'key' when n.lesser and r.sends_key then 'scope' when n.lacks_gate then 'gate' when not n.memory_check and n.nth > r.cues then 'limit' end as refusal
      from counted n left join room r on r.account_id = n.account_id)
  select array_agg(case when g.is_free then f.refusal else 'locked' end order by g.place) into v_refusals from given g left join fitting f using (place);
  return v_refusals;
end $$;
comment on function cue.admit_cues is 'Returns why each of these cues is refused, or null, and takes the room of the others.';

-- p_cues: an array of objects of columns; omitted columns take the table's default. callback_allowed false means the key lacks scope account: a cue
-- with a callback is then refused if the account's key is sent to callbacks. calendars: the revisions that next_run was computed from. given_id:
-- the id that its next run was computed with. p_next_slots: null where the slot fires at once.
create or replace function cue.add_cues(
  p_account_ids uuid[], p_cues jsonb, p_next_runs timestamptz[], p_now timestamptz default now(), p_next_slots timestamptz[] default '{}'
) returns table (id text, refusal text)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  v_free uuid[] := cue.lock_accounts(p_account_ids);
  v_ids text[];
  v_refusals text[];
  v_payload_ids bigint[];
begin
  if p_cues @? '$[*].calendars' then
    perform cue.require_calendars(g.account_id, g.cue -> 'calendars')
       from rows from (unnest(p_account_ids), jsonb_array_elements(p_cues)) as g (account_id, cue) where g.cue ? 'calendars';
  end if;
  v_refusals := cue.admit_cues(p_account_ids, p_cues, v_free);
  select array_agg(case when g.refusal is null then coalesce(g.cue ->> 'given_id', cue.new_cue_id()) end order by g.place),
         array_agg(case when g.refusal is null and cue.is_large(g.cue ->> 'payload') then nextval('cue.payload_ids') end order by g.place)
    into v_ids, v_payload_ids
    from rows from (unnest(v_refusals), jsonb_array_elements(p_cues)) with ordinality as g (refusal, cue, place);
  perform cue.insert_cues(v_ids, p_account_ids, v_payload_ids, p_cues, p_now);
  if array_remove(v_payload_ids, null) <> '{}' then
    insert into cue.payloads (id, account_id, cue_id, hash, body, since_run, created_at)
    select n.payload_id, n.account_id, n.cue_id, sha256(convert_to(n.payload, 'UTF8')), n.payload, 0, p_now
      from rows from (unnest(v_ids, v_payload_ids, p_account_ids), jsonb_to_recordset(p_cues) as (payload text)) as n (cue_id, payload_id, account_id)
     where n.payload_id is not null;
  end if;
  insert into cue.cue_runs (cue_id, account_id, transport, next_run, next_slot, tracked, schedule_key)
  select c.id, c.account_id, c.transport, date_trunc('milliseconds', n.next_run), n.next_slot, cue.can_be_held(c), cue.schedule_key(c)
    from unnest(v_ids, p_next_runs, p_next_slots) as n (cue_id, next_run, next_slot)
   cross join lateral (select * from cue.cues q where q.id = n.cue_id limit 1) c;
  if p_cues @? '$[*].after ? (@ != null)' then
    perform cue.link_cues(v_ids);
    if not p_cues @? '$[*] ? (@.in_set == true)' then perform cue.require_chains(v_ids); end if;
  end if;
  if p_cues @? '$[*].schedule_rules ? (@ != null)' then perform cue.watch_exclusions(v_ids, p_now); end if;
  perform cue.wake('cue_due', (select min(n.at) from unnest(p_next_runs, v_ids) as n (at, id) where n.id is not null));
  -- Few accounts subscribe: skip the rest at once.
  perform cue.note_memory(s.account_id) from (
    select distinct m.account_id from cue.memory_subscriptions m where m.account_id = any (v_free)) s;
  return query select * from unnest(v_ids, v_refusals);
end $$;
comment on function cue.add_cues is
  'Adds cues and returns, in order, the id of each, or why it is refused: limit, scope (for a callback), key (taken), gate (not found), or locked (the account).';

create or replace function cue.cue_limit_message(p_account_id uuid) returns text
language sql stable security definer as $$
  select format('Cue limit reached: the plan allows %s cues. Delete one or change the plan.', p.cues)
    from cue.accounts a cross join lateral cue.limits_of(a) p where a.id = p_account_id
$$;
comment on function cue.cue_limit_message is 'Returns the message for an account that has reached its cue limit.';

create or replace function cue.has_callback(p_callback_url text, p_on_failure_webhook text) returns boolean
language sql immutable as $$ select p_callback_url is not null or p_on_failure_webhook is not null $$;
comment on function cue.has_callback is 'Returns whether a cue sends requests to a URL set by the user.';

-- With webhook_authorization api_key, the receiver of a callback gets the account's key: only a key with full rights may choose the
-- receiver.
create or replace function cue.require_account_scope(p_account_id uuid) returns void
language plpgsql stable security definer as $$
begin
  if exists (select from cue.accounts where id = p_account_id and webhook_authorization = 'api_key') then
    raise exception 'Only a key with scope account may set or change callback or on_failure.webhook while the account''s API key '
      'is sent to callbacks (webhook_authorization: api_key).' using errcode = cue.refusal('QU052');
  end if;
end $$;
comment on function cue.require_account_scope is 'Raises QU052 if the account''s own key is sent to callbacks.';

create or replace function cue.require_free_key(p_account_id uuid, p_key text) returns void
language plpgsql stable security definer as $$
declare
  v_holder text := cue.cue_id_by_key(p_account_id, p_key);
begin
  if v_holder is not null then
    raise exception '%', cue.key_taken_message(p_key, v_holder) using errcode = cue.refusal('QU015'), detail = v_holder;
  end if;
end $$;
comment on function cue.require_free_key is 'Raises QU015 if a cue of the account has the key; the detail is the cue''s id.';

create or replace function cue.raise_refused(p_account_id uuid, p_refusal text, p_key text, p_gate text) returns void
language plpgsql stable security definer as $$
begin
  case p_refusal
    when 'limit' then raise exception '%', cue.cue_limit_message(p_account_id) using errcode = cue.refusal('QU030');
    when 'scope' then perform cue.require_account_scope(p_account_id);
    when 'key' then perform cue.require_free_key(p_account_id, p_key);
    when 'gate' then perform cue.require_gate(p_account_id, p_gate);
    when 'locked' then raise lock_not_available using message = format('account %s is locked by another transaction', p_account_id);
  end case;
  raise exception 'The account was changed at the same time. Try again.' using errcode = cue.refusal('QU014');
end $$;
comment on function cue.raise_refused is 'Raises the error for a cue that add_cues refused.';

create or replace function cue.create_cue(
  p_account_id uuid, p_cue jsonb, p_next_run timestamptz, p_now timestamptz default now(), p_next_slot timestamptz default null,
  p_actor text default session_user
) returns text
language plpgsql security definer as $$
declare
  a record;
begin
  select * into a from cue.add_cues(array[p_account_id], jsonb_build_array(p_cue), array[p_next_run], p_now, array[p_next_slot]);
  if a.refusal is not null then perform cue.raise_refused(p_account_id, a.refusal, p_cue ->> 'key', p_cue ->> 'gate'); end if;
  perform cue.record_cue_events(array[p_account_id], 'cue.created', array[p_actor], array[a.id], '{}', p_now);
  return a.id;
end $$;
comment on function cue.create_cue is 'Creates a cue and returns its id; QU015, QU030, QU038, QU052, or an error of require_chains if it is refused.';
