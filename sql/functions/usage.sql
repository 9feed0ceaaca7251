-- Plans and the monthly count of executions.

create or replace function cue.executions_used(p_account_id uuid, p_now timestamptz default now()) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(sum(executions), 0)::bigint from cue.usage_counters where account_id = p_account_id and month = cue.usage_month(p_now)
$$;
comment on function cue.executions_used is 'Executions that an account has created in the current UTC month.';

-- The first time in a month that the limit is reached: a day of grace begins, with a mail.
create or replace function cue.start_grace(a cue.accounts, p_now timestamptz default now()) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if a.limit_reached_at is null or cue.usage_month(a.limit_reached_at) < cue.usage_month(p_now) then
    update cue.accounts set limit_reached_at = p_now, updated_at = p_now where id = a.id;
    perform cue.add_job('mails', jsonb_build_object('kind', 'limit_reached', 'account_id', a.id, 'grace_ends_at', p_now + interval '24 hours'));
  end if;
end $$;
comment on function cue.start_grace is 'Begins the day of grace after the monthly limit.';

-- Folds what takers have counted into slot 0 and starts the grace of accounts that reached their limit. Rows that a taker holds wait for
-- the next time.
create or replace function cue.fold_usage(p_now timestamptz default now()) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  a cue.accounts;
  r record;
  v_count int := 0;
begin
  if not pg_try_advisory_xact_lock(hashtext('cue.fold_usage')) then return 0; end if;
  for r in select distinct account_id from cue.usage_counters where slot <> 0 order by account_id loop
    select * into a from cue.accounts where id = r.account_id for no key update skip locked;
    continue when not found;
    with held as (
      select month, slot from cue.usage_counters where account_id = r.account_id and slot <> 0 for update skip locked),
    gone as (
      delete from cue.usage_counters u using held
       where u.account_id = r.account_id and u.month = held.month and u.slot = held.slot returning u.month, u.executions)
    insert into cue.usage_counters as u (account_id, month, slot, executions)
    select r.account_id, month, 0, sum(executions) from gone group by month
    on conflict (account_id, month, slot) do update set executions = u.executions + excluded.executions;
    if cue.executions_used(a.id, p_now) >= (select executions_per_month from cue.plans where plan = a.plan) then
      perform cue.start_grace(a, p_now);
    end if;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.fold_usage is 'Sums up usage counters, and starts the grace of accounts at their limit.';

-- What the service's PLANS setting says, written at start. Accounts that a higher limit sets free are free at once.
create or replace function cue.set_plans(p_plans jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update cue.plans p
     set requests_per_minute = n.requests_per_minute, cues = n.cues, executions_per_month = n.executions_per_month
    from jsonb_each(p_plans) as l (name, limits),
         jsonb_to_record(l.limits) as n (requests_per_minute int, cues int, executions_per_month int)
   where p.plan::text = l.name
     and (p.requests_per_minute, p.cues, p.executions_per_month)
         is distinct from (n.requests_per_minute, n.cues, n.executions_per_month);
  if found then
    update cue.accounts a set limit_reached_at = null
      from cue.plans p where p.plan = a.plan and a.limit_reached_at is not null and cue.executions_used(a.id) < p.executions_per_month;
  end if;
end $$;
comment on function cue.set_plans is 'Sets the plans'' limits.';
