-- Stripe subscriptions and the plan that follows from them. Events arrive twice, late and in any order: each is applied once, older ones
-- change nothing, and a cancelled subscription stays cancelled. Locks: the account, its subscriptions, cues.

create or replace function cue.set_customer(p_account_id uuid, p_customer_id text, p_now timestamptz default now()) returns text
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
begin
  update cue.accounts set stripe_customer_id = coalesce(stripe_customer_id, p_customer_id), updated_at = p_now where id = a.id returning * into a;
  return a.stripe_customer_id;
end $$;
comment on function cue.set_customer is 'Sets an account''s Stripe customer unless it has one, and returns the one stored.';

create or replace function cue.billing_account(p_account_id uuid) returns table (email text, customer_id text, subscription_id text)
language sql stable security definer as $$
  select a.email, a.stripe_customer_id,
         (select s.id from cue.subscriptions s where s.account_id = a.id and cue.is_paid(s.status) order by s.plan desc, s.id limit 1)
    from cue.accounts a where a.id = p_account_id
$$;
comment on function cue.billing_account is 'Returns an account''s Stripe customer and its paid subscription, if any.';

-- past_due counts: Stripe retries the payment, and cancels the subscription when it gives up.
create or replace function cue.is_paid(p_status text) returns boolean
language sql immutable as $$ select p_status in ('active', 'trialing', 'past_due') $$;
comment on function cue.is_paid is 'Returns whether a subscription with this status pays for its plan.';

create or replace function cue.note_stripe_event(p_event_id text, p_type text, p_now timestamptz default now()) returns boolean
language plpgsql security definer as $$
begin
  insert into cue.stripe_events (id, type, received_at) values (p_event_id, p_type, p_now) on conflict do nothing;
  return found;
end $$;
comment on function cue.note_stripe_event is 'Records a Stripe event; false if it was handled before.';

create or replace function cue.find_customer(
  p_customer_id text, p_subscription_id text default null, p_account_id uuid default null, p_now timestamptz default now()
) returns uuid
language plpgsql security definer as $$
declare
  a cue.accounts;
begin
  select * into a from cue.accounts where id = coalesce(
    (select c.id from cue.accounts c where c.stripe_customer_id = p_customer_id),
    (select s.account_id from cue.subscriptions s where s.id = p_subscription_id), p_account_id);
  if a.id is not null and a.stripe_customer_id is null then
    perform cue.set_customer(a.id, p_customer_id, p_now);
  end if;
  return a.id;
end $$;
comment on function cue.find_customer is 'Returns the account of a Stripe customer, and stores the customer there.';

-- p_account_id comes from our checkout. p_first applies the event only if the subscription is new, because a checkout event has less detail
-- than the subscription's own events. p_version marks a state fetched from Stripe: it applies unless another event was applied since that
-- version.
-- replayed: handled before. stale: a later event was applied. unknown: no such account. unclear: another event of the same second
-- contradicts this one. The caller then fetches the subscription and calls again with version; nothing is recorded.
create or replace function cue.apply_subscription(
  p_event_id text, p_type text, p_subscription_id text, p_customer_id text, p_account_id uuid, p_plan cue.plan, p_status text,
  p_at timestamptz, p_first boolean default false, p_version int default null, p_now timestamptz default now()
) returns table (result text, version int)
language plpgsql security definer as $$
declare
  a cue.accounts;
  s cue.subscriptions;
begin
  a.id := cue.find_customer(p_customer_id, p_subscription_id, p_account_id, p_now);
  if a.id is not null then a := cue.lock_account(a.id); end if;
  if exists (select from cue.stripe_events where id = p_event_id) then return query select 'replayed', null::int; return; end if;
  select * into s from cue.subscriptions where id = p_subscription_id for update;
  if s.status <> 'canceled' and p_status <> 'canceled' and not p_first and s.state_at = p_at and s.version is distinct from p_version
     and (s.plan, s.status) <> (p_plan, p_status) then
    return query select 'unclear', s.version;
    return;
  end if;
  perform cue.note_stripe_event(p_event_id, p_type, p_now);
  if a.id is null or s.account_id <> a.id then return query select 'unknown', null::int; return; end if;
  if s.id is not null and (s.status = 'canceled' or p_first or s.state_at > p_at and p_status <> 'canceled') then
    return query select 'stale', null::int;
    return;
  end if;
  insert into cue.subscriptions as x (id, account_id, plan, status, state_at, created_at, updated_at)
  values (p_subscription_id, a.id, p_plan, p_status, p_at, p_now, p_now)
  on conflict (id) do update set plan = excluded.plan, status = excluded.status, state_at = excluded.state_at, version = x.version + 1,
                                 updated_at = excluded.updated_at;
  perform cue.set_plan(a.id, coalesce(
    (select max(x.plan) from cue.subscriptions x where x.account_id = a.id and cue.is_paid(x.status)), 'free'), 'stripe', null, p_now);
  return query select 'applied', null::int;
end $$;
comment on function cue.apply_subscription is 'Applies a subscription event, and sets the resulting plan.';

-- Null keeps the plan. The newest cues above the limit are paused, and a mail lists them. Nothing is deleted, and a larger limit resumes nothing.
create or replace function cue.change_plan(
  p_account_id uuid, p_plan cue.plan default null, p_limits jsonb default '{}', p_actor text default session_user, p_ip text default null,
  p_now timestamptz default now()
) returns setof text
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  old cue.accounts := a;
  p cue.plans;
  v_ids text[];
begin
  perform cue.check_limits(p_limits);
  a.plan := coalesce(p_plan, old.plan);
  -- The account of an embedded database, whose address nobody can register, has no limits to begin with.
  a.limits := case when lower(old.email) = 'you@localhost' then old.limits || p_limits else jsonb_strip_nulls(old.limits || p_limits) end;
  if (a.plan, a.limits) = (old.plan, old.limits) then return; end if;
  p := cue.limits_of(a);
  insert into cue.overridden_limits as o (name, least)
  select l.key, l.value::bigint from jsonb_each_text(p_limits) l where l.value is not null
  on conflict (name) do update set least = excluded.least where o.least > excluded.least;
  update cue.accounts
     set plan = a.plan, limits = a.limits, updated_at = p_now,
         limit_reached_at = case when cue.executions_used(a.id, p_now) >= p.executions_per_month then limit_reached_at end
   where id = a.id;
  perform cue.retry_refused(array[a.id], p_now);
  perform cue.record_event(a.id, 'plan.changed', p_actor, p_ip, jsonb_strip_nulls(jsonb_build_object(
    'from', nullif(old.plan, a.plan), 'to', nullif(a.plan, old.plan)))
    || case p_limits when '{}' then '{}'::jsonb else jsonb_build_object('limits', p_limits) end, p_now);
  if p.cues is not null then
    v_ids := array(
      select id from cue.cues where account_id = a.id and status = 'active' and deleted_at is null and not memory_check
       order by created_at, id offset p.cues);
  end if;
  if cardinality(v_ids) > 0 then
    perform cue.lock_cues(v_ids);
    v_ids := array(
      select id from cue.cues where id = any (v_ids) and status = 'active' and deleted_at is null order by created_at desc, id desc);
    perform cue.pause_cues(v_ids, 'plan', p_now => p_now);
  end if;
  if a.plan < old.plan or cardinality(v_ids) > 0 then
    perform cue.add_job('mails', jsonb_strip_nulls(jsonb_build_object(
      'kind', 'downgrade', 'account_id', a.id, 'cue_ids', coalesce(v_ids, '{}'), 'same_plan', nullif(a.plan = old.plan, false))));
  end if;
  perform cue.note_memory(a.id);
  return query select unnest(v_ids);
end $$;
comment on function cue.change_plan is
  'Sets an account''s plan and limits of its own in one step, as set_plan and set_limits do; returns the cues paused because a limit is lower.';

create or replace function cue.set_plan(
  p_account_id uuid, p_plan cue.plan, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns setof text
language sql security definer as $$ select cue.change_plan(p_account_id, p_plan, '{}', p_actor, p_ip, p_now) $$;
comment on function cue.set_plan is 'Sets an account''s plan and returns the cues paused because the new limit is lower.';

create or replace function cue.set_limits(
  p_account_id uuid, p_limits jsonb, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns setof text
language sql security definer as $$ select cue.change_plan(p_account_id, null, p_limits, p_actor, p_ip, p_now) $$;
comment on function cue.set_limits is
  'Gives an account limits of its own, with the names of cue.plans; null removes one. Returns the cues paused because the new limit is lower.';

create or replace function cue.note_failed_payment(
  p_event_id text, p_type text, p_customer_id text, p_subscription_id text default null, p_next_attempt_at timestamptz default null,
  p_now timestamptz default now()
) returns boolean
language plpgsql security definer as $$
declare
  v_account_id uuid := cue.find_customer(p_customer_id, p_subscription_id, null, p_now);
begin
  if not cue.note_stripe_event(p_event_id, p_type, p_now) or v_account_id is null then return false; end if;
  perform cue.add_job('mails',
    jsonb_build_object('kind', 'payment_failed', 'account_id', v_account_id, 'next_attempt_at', cue.iso(p_next_attempt_at)));
  return true;
end $$;
comment on function cue.note_failed_payment is 'Queues a mail about a failed payment; false if handled before or unknown.';
