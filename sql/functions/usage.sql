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

-- Folds what takers have counted into slot 0 and starts the grace of accounts that reached their limit. Nobody waits for this but a taker
-- whose own row is just folded, and this waits for nobody: rows and accounts that others hold are left to the next time. Returns the
-- accounts folded.
create or replace function cue.fold_usage(p_now timestamptz default now()) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  a cue.accounts;
  v_reached uuid[];
  v_count int;
begin
  if not pg_try_advisory_xact_lock(hashtext('cue.fold_usage')) then return 0; end if;
  v_reached := array(
    select c.id from (select distinct u.account_id from cue.usage_counters u where u.slot <> 0) u
      join cue.accounts c on c.id = u.account_id join cue.plans p on p.plan = c.plan
     where (c.limit_reached_at is null or cue.usage_month(c.limit_reached_at) < cue.usage_month(p_now))
       and cue.executions_used(c.id, p_now) >= p.executions_per_month);
  for a in select * from cue.accounts where id = any (v_reached) order by id for no key update skip locked loop
    perform cue.start_grace(a, p_now);
    v_reached := array_remove(v_reached, a.id);
  end loop;
  -- Those whose grace could not be started keep their rows, so that they are looked at again.
  with held as (
    select u.account_id, u.month, u.slot from cue.usage_counters u join cue.accounts c on c.id = u.account_id
     where u.slot <> 0 and u.account_id <> all (v_reached)
       for update of u skip locked for key share of c skip locked),
  gone as (
    delete from cue.usage_counters u using held
     where u.account_id = held.account_id and u.month = held.month and u.slot = held.slot
    returning u.account_id, u.month, u.executions),
  folded as (
    insert into cue.usage_counters as u (account_id, month, slot, executions)
    select account_id, month, 0, sum(executions) from gone group by account_id, month
    on conflict (account_id, month, slot) do update set executions = u.executions + excluded.executions)
  select count(distinct account_id) into v_count from gone;
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
