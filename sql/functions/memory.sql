-- The memory block: a versioned summary of an account for its agents. A new version is created when someone reads it and its content has
-- changed: the plan, the names of active and paused cues, or the release of the instructions. Locks: the account.

-- Its settings suit an account without a worker: no mail, and no alert for ten weeks.
create or replace function cue.start_memory(p_account_id uuid, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_monday timestamptz := date_trunc('week', p_now, 'UTC') + interval '9 hours';
begin
  if exists (select from cue.cues where account_id = p_account_id and memory_check and deleted_at is null) then return; end if;
  perform cue.create_cue(p_account_id, jsonb_build_object(
      'memory_check', true, 'name', 'Memory block update check', 'description', 'Reminds an agent to read GET /v1/memory-block.',
      'transport', 'worker', 'schedule_type', 'recurring', 'cron', '0 9 * * 1',
      'payload', '{"task": "memory-update-check"}', 'task', 'memory-update-check', 'on_failure_email', false,
      'timeout_seconds', 30, 'outcome_deadline_seconds', 300, 'claim_timeout_seconds', 604800,
      'alert_consecutive_failures', 10, 'alert_missed_window_multiplier', 10),
    case when v_monday > p_now then v_monday else v_monday + interval '7 days' end, p_now, p_actor => null);
end $$;
comment on function cue.start_memory is 'Creates the weekly cue that reminds an agent to read the memory block.';

-- One waiting job per subscriber is enough: the singleton key prevents a second.
create or replace function cue.note_memory(p_account_id uuid, p_except uuid default null) returns void
language plpgsql security definer as $$
begin
  -- plpgsql keeps the plan: this runs for each new cue, although few accounts have subscribers.
  perform cue.add_job('memory_updates', jsonb_build_object('subscription_id', s.id, 'account_id', s.account_id), p_singleton_key => s.id::text)
     from cue.memory_subscriptions s where s.account_id = p_account_id and s.id is distinct from p_except;
end $$;
comment on function cue.note_memory is 'Notifies subscribers of the memory block, except p_except, that it may have changed.';

-- The weekly cue itself is not listed.
create or replace function cue.memory_content(p_account_id uuid, p_release text) returns jsonb
language sql stable security definer as $$
  select jsonb_build_object('plan', a.plan, 'release', p_release, 'cues', (
      select coalesce(jsonb_agg(jsonb_build_object('id', c.id, 'name', c.name) order by c.created_at desc, c.id desc), '[]') from (
        select q.id, q.name, q.created_at from cue.cues q
         where q.account_id = a.id and q.deleted_at is null and q.status in ('active', 'paused') and not q.memory_check
         order by q.created_at desc, q.id desc limit 500) c))
    from cue.accounts a where a.id = p_account_id
$$;
comment on function cue.memory_content is 'Returns the content of the memory block, with the newest 500 cues.';

create or replace function cue.memory_changes(p_old jsonb, p_new jsonb) returns text[]
language plpgsql immutable as $$
declare
  v_changes text[];
begin
  if p_old is null then return array['The memory block was enabled.']; end if;
  with o as (
    select * from rows from (jsonb_to_recordset(p_old -> 'cues') as (id text, name text)) with ordinality as o (id, name, place)),
  n as (
    select * from rows from (jsonb_to_recordset(p_new -> 'cues') as (id text, name text)) with ordinality as n (id, name, place)),
  c as (
    select 1 as kind, 0 as place, format('Plan changed from %s to %s.', p_old ->> 'plan', p_new ->> 'plan') as change
     where p_new ->> 'plan' <> p_old ->> 'plan'
    union all
    select 2, 0, format('New instructions: release %s.', p_new ->> 'release') where p_new ->> 'release' <> p_old ->> 'release'
    union all
    select 3, n.place, format('Cue %s was added.', to_json(n.name)) from n where not exists (select from o where o.id = n.id)
    union all
    select 4, n.place, format('Cue %s was renamed to %s.', to_json(o.name), to_json(n.name)) from n join o using (id)
     where n.name <> o.name
    union all
    select 5, o.place, format('Cue %s was deleted or has ended.', to_json(o.name)) from o where not exists (select from n where n.id = o.id))
  select array_agg(c.change order by c.kind, c.place) into v_changes from c;
  if cardinality(v_changes) > 20 then
    return v_changes[:19] || format('%s more cues changed.', cardinality(v_changes) - 19);
  end if;
  return v_changes;
end $$;
comment on function cue.memory_changes is 'Returns the differences between two contents of the memory block as sentences, at most twenty.';

-- Subscribers other than p_reader are notified of a new version.
create or replace function cue.read_memory(
  p_account_id uuid, p_release text, p_reader uuid default null, p_now timestamptz default now()
) returns table (
  version int, plan cue.plan, cues text[], key_prefix text, changelog jsonb, updated_at timestamptz
)
language plpgsql security definer as $$
declare
  m cue.memory_versions;
  v_content jsonb;
begin
  perform cue.refuse_if(not exists (select from cue.accounts a where a.id = p_account_id and a.memory_block_enabled), 'QU062',
    'The memory block is off. Turn it on with PATCH /v1/auth/me {"memory_block_enabled": true}.');
  v_content := cue.memory_content(p_account_id, p_release);
  select * into m from cue.memory_versions v where v.account_id = p_account_id order by v.version desc limit 1;
  if m.content is distinct from v_content then
    perform cue.lock_account(p_account_id);
    v_content := cue.memory_content(p_account_id, p_release);
    select * into m from cue.memory_versions v where v.account_id = p_account_id order by v.version desc limit 1;
    if m.content is distinct from v_content then
      insert into cue.memory_versions (account_id, version, content, changes, created_at)
      values (p_account_id, coalesce(m.version, 0) + 1, v_content, cue.memory_changes(m.content, v_content), p_now) returning * into m;
      delete from cue.memory_versions v where v.account_id = p_account_id and v.version <= m.version - 50;
      perform cue.note_memory(p_account_id, p_reader);
    end if;
  end if;
  return query
  select m.version, (m.content ->> 'plan')::cue.plan,
         array(select c.cue ->> 'name' from jsonb_array_elements(m.content -> 'cues') with ordinality as c (cue, place) order by c.place),
         (select k.prefix from cue.api_keys k where k.account_id = p_account_id and k.revoked_at is null
           order by k.is_default desc, k.created_at desc, k.id desc limit 1),
         (select jsonb_agg(jsonb_build_object('version', l.version, 'changes', l.changes, 'updated_at', cue.iso(l.created_at))
                           order by l.version desc)
            from (select * from cue.memory_versions v where v.account_id = p_account_id order by v.version desc limit 10) l),
         m.created_at;
end $$;
comment on function cue.read_memory is 'Returns an account''s memory block, as a new version if it has changed; QU062 if off.';

create or replace function cue.subscribe_memory(
  p_account_id uuid, p_agent_id text, p_callback_url text, p_release text, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  v_version int;
begin
  perform cue.lock_account(p_account_id);
  select m.version into v_version from cue.read_memory(p_account_id, p_release, p_now => p_now) m;
  update cue.memory_subscriptions set callback_url = p_callback_url where account_id = p_account_id and agent_id = p_agent_id;
  if found then return; end if;
  perform cue.refuse_if((select count(*) from cue.memory_subscriptions where account_id = p_account_id) >= 20, 'QU011',
    'Subscription limit reached: 20 agents. Turning the memory block off and on again removes all subscriptions.');
  insert into cue.memory_subscriptions (id, account_id, agent_id, callback_url, sent_version, created_at)
  values (cue.uuid_v7(p_now), p_account_id, p_agent_id, p_callback_url, v_version, p_now);
end $$;
comment on function cue.subscribe_memory is 'Subscribes an agent to the memory block; QU062 if off, QU011 above 20 agents.';

create or replace function cue.memory_notice(p_subscription_id uuid, p_release text, p_now timestamptz default now()) returns table (
  url text, secrets text[], version int, changelog jsonb, updated_at timestamptz
)
language plpgsql security definer as $$
declare
  s cue.memory_subscriptions;
begin
  select m.* into s from cue.memory_subscriptions m join cue.accounts a on a.id = m.account_id
   where m.id = p_subscription_id and a.memory_block_enabled;
  if not found then return; end if;
  return query
  select s.callback_url, cue.signing_secrets(a, p_now), m.version,
         (select jsonb_agg(l.entry order by (l.entry ->> 'version')::int desc) from jsonb_array_elements(m.changelog) as l (entry)
           where (l.entry ->> 'version')::int > s.sent_version), m.updated_at
    from cue.read_memory(s.account_id, p_release, s.id, p_now) m join cue.accounts a on a.id = s.account_id
   where m.version > s.sent_version;
end $$;
comment on function cue.memory_notice is 'Returns a subscriber''s next memory block notification, or no row.';

-- If the subscriber's address has changed from p_url, it is notified again at the new one. Without p_url the address counts as unchanged.
create or replace function cue.end_memory_notice(p_subscription_id uuid, p_version int, p_url text default null) returns void
language plpgsql security definer as $$
declare
  s cue.memory_subscriptions;
begin
  select * into s from cue.memory_subscriptions where id = p_subscription_id for update;
  if s.callback_url <> p_url then
    perform cue.add_job('memory_updates', jsonb_build_object('subscription_id', s.id, 'account_id', s.account_id), p_singleton_key => s.id::text);
  elsif p_version is null then
    delete from cue.memory_subscriptions where id = s.id;
  else
    update cue.memory_subscriptions set sent_version = p_version where id = s.id and sent_version < p_version;
  end if;
end $$;
comment on function cue.end_memory_notice is 'Records a notified version, or removes the subscription if it is null.';

create or replace function cue.note_memory_release(p_release text) returns int
language plpgsql security definer as $$
declare
  v_count int;
begin
  perform cue.note_memory(s.account_id) from (
    select distinct m.account_id from cue.memory_subscriptions m
     where (select v.content ->> 'release' from cue.memory_versions v where v.account_id = m.account_id order by v.version desc limit 1)
           is distinct from p_release) s;
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function cue.note_memory_release is 'Queues notifications of new instructions; returns the number of accounts.';
