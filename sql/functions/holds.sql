-- Holds: an operator stops the service, or one account, without stopping a replica. While something is held, nothing of it is taken, begun or claimed: the
-- functions that do so look here, so a hold is in force for every statement that begins after its commit, whatever engines know of it. What is under
-- way ends. A hold of the service and those of accounts are independent.

create or replace function cue.hold(
  p_reason text, p_account_id uuid default null, p_actor text default session_user, p_now timestamptz default now()
) returns table (account_id uuid, reason text, by text, since timestamptz)
language plpgsql security definer as $$
#variable_conflict use_column
begin
  perform cue.refuse_if(p_account_id is not null and not exists (select from cue.accounts a where a.id = p_account_id), 'QU007',
    format('account %s not found', p_account_id));
  return query
  insert into cue.holds as h (account_id, reason, held_by, from_at) values (p_account_id, p_reason, p_actor, p_now)
  on conflict (account_id) where until_at = 'infinity' do update set reason = excluded.reason, held_by = excluded.held_by
  returning h.account_id, h.reason, h.held_by, h.from_at;
  perform pg_notify('cue_hold', '');
  if p_account_id is not null then
    perform cue.record_event(p_account_id, 'account.held', p_actor, null, jsonb_build_object('reason', p_reason), p_now);
  end if;
end $$;
comment on function cue.hold is
  'Holds the service, or an account: nothing is taken, sent or claimed until release. Held already, it gets the new reason. QU007 account not found.';

-- Engines report from which length on catch_up applies.
create or replace function cue.release(p_account_id uuid default null, p_actor text default session_user, p_now timestamptz default now())
returns boolean
language plpgsql security definer as $$
declare
  v_missed_after interval := coalesce(
    (select n.missed_after from cue.engines n where n.missed_after is not null order by n.last_seen_at desc limit 1), cue.missed_after());
begin
  update cue.holds h
     set until_at = greatest(p_now, h.from_at + interval '1 millisecond'), catches_up = p_now - h.from_at > v_missed_after
   where h.account_id is not distinct from p_account_id and h.until_at = 'infinity';
  if not found then return false; end if;
  perform pg_notify('cue_hold', '');
  if p_account_id is not null then perform cue.record_event(p_account_id, 'account.released', p_actor, null, '{}', p_now); end if;
  return true;
end $$;
comment on function cue.release is
  'Ends the hold of the service, or of an account; returns whether there was one. Slots that came due during a long one follow catch_up.';

create or replace function cue.held_reason(p_account_id uuid default null) returns text
language sql stable security definer as $$
  select h.reason from cue.holds h
   where h.until_at = 'infinity' and (h.account_id is null or h.account_id = p_account_id) order by h.account_id nulls first limit 1
$$;
comment on function cue.held_reason is 'Returns why the service is held, or the account; null if neither is.';

create or replace function cue.is_held(p_account_id uuid) returns boolean
language sql stable as $$
  select exists (select from cue.holds h where h.until_at = 'infinity' and (h.account_id is null or h.account_id = p_account_id))
$$;
comment on function cue.is_held is 'Returns whether the service or the account is held.';

create or replace function cue.has_holds() returns boolean
language sql stable as $$ select exists (select from cue.holds h where h.until_at = 'infinity') $$;
comment on function cue.has_holds is 'Returns whether anything is held, which hardly ever is so: then nothing else has to be looked up.';

create or replace function cue.held_accounts() returns setof uuid
language sql stable security definer as $$ select h.account_id from cue.holds h where h.until_at = 'infinity' $$;
comment on function cue.held_accounts is 'Returns the accounts that are held; null stands for the service.';

create or replace function cue.require_unheld(p_account_id uuid) returns void
language plpgsql stable security definer as $$
declare
  v_reason text := cue.held_reason(p_account_id);
begin
  if v_reason is not null then
    perform cue.refuse('QU027', format('The operator holds %s: %s. Try again later.',
      case when cue.held_reason() is null then 'this account' else 'the service' end, v_reason));
  end if;
end $$;
comment on function cue.require_unheld is 'Raises QU027 if the service or the account is held.';
