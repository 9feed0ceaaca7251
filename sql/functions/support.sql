-- Support tickets. Locks: the account, then a rate window.

-- p_tracked queues a job that creates an issue in the tracker.
create or replace function cue.create_ticket(
  p_account_id uuid, p_subject text, p_message text, p_severity cue.ticket_severity default 'medium', p_type cue.ticket_type default 'bug',
  p_tracked boolean default false, p_now timestamptz default now()
) returns int
language plpgsql security definer as $$
declare
  a cue.accounts := cue.lock_account(p_account_id);
  v_id int;
begin
  perform cue.refuse_if(a.created_at > p_now - interval '1 hour', 'QU060', 'Accounts can open tickets one hour after registration. Try again later.');
  perform cue.refuse_if(not exists (select from cue.cues where account_id = a.id and status = 'active' and deleted_at is null and not memory_check),
    'QU061', 'A ticket requires an active cue. Create or resume one first.');
  perform cue.require_within('support:' || a.id, 5, '1 hour', 'Ticket limit reached: 5 per hour.', p_now);
  insert into cue.tickets (account_id, subject, message, severity, type, created_at, updated_at)
  values (a.id, p_subject, p_message, p_severity, p_type, p_now, p_now) returning id into v_id;
  if p_tracked then perform cue.add_job('tickets', jsonb_build_object('ticket_id', v_id, 'account_id', a.id)); end if;
  return v_id;
end $$;
comment on function cue.create_ticket is 'Opens a support ticket; QU060 too new, QU061 no active cue, QU031 limit.';

create or replace function cue.set_ticket_status(p_ticket_id int, p_status cue.ticket_status, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  update cue.tickets set status = p_status, updated_at = p_now where id = p_ticket_id;
  perform cue.refuse_if(not found, 'QU006', format('ticket %s not found', p_ticket_id));
end $$;
comment on function cue.set_ticket_status is 'Sets a ticket''s status, by hand; QU006 if not found.';

-- tried: an issue may exist already, if its creation was not recorded.
create or replace function cue.begin_issue(p_ticket_id int, p_now timestamptz default now()) returns table (
  ticket_id int, account_id uuid, plan cue.plan, subject text, message text, severity cue.ticket_severity, type cue.ticket_type,
  created_at timestamptz, tried boolean
)
language plpgsql security definer as $$
declare
  k cue.tickets;
begin
  select * into k from cue.tickets t where t.id = p_ticket_id and t.issue_url is null for update;
  if not found then return; end if;
  update cue.tickets t set issue_tried_at = p_now where t.id = k.id;
  return query
  select k.id, a.id, a.plan, k.subject, k.message, k.severity, k.type, k.created_at, k.issue_tried_at is not null
    from cue.accounts a where a.id = k.account_id;
end $$;
comment on function cue.begin_issue is 'Returns the content of a tracker issue for a ticket that has none, or no row.';

create or replace function cue.end_issue(p_ticket_id int, p_url text) returns void
language sql security definer as $$
  update cue.tickets set issue_url = p_url where id = p_ticket_id
$$;
comment on function cue.end_issue is 'Records the tracker issue of a ticket.';
