-- Approvals: executions that wait until a person decides. Locks: the cue, its cue_runs, the execution, then its row here.

-- Infinity: never. With skip, however short the time is, nothing runs unless a person approves it.
create or replace function cue.unapproved_after(p_approval jsonb) returns float8
language sql immutable as $$
  select case when p_approval is null then 0
              when p_approval ->> 'on_expiry' = 'run' and p_approval ->> 'expires' is not null
              then extract(epoch from (p_approval ->> 'expires')::interval)::float8 else 'infinity' end
$$;
comment on function cue.unapproved_after is 'Returns the seconds after which an execution runs without a decision, by its cue''s approval.';

create or replace function cue.refuse_protected(c cue.cues, p_what text) returns void
language plpgsql as $$
begin
  raise exception 'Cue % has an approval, and only a signed-in person, or a key with scope approve, can %.', c.id, p_what
    using errcode = cue.refusal('QU076');
end $$;
comment on function cue.refuse_protected is 'Raises QU076 for what would get around the approval of a cue.';

create or replace function cue.require_approver(old cue.cues, c cue.cues) returns void
language plpgsql as $$
begin
  if old.approval is null then return; end if;
  if cue.unapproved_after(c.approval) < cue.unapproved_after(old.approval) then
    perform cue.refuse_protected(old, 'remove or weaken it');
  elsif c.key is distinct from old.key then
    perform cue.refuse_protected(old, 'change its key');
  end if;
end $$;
comment on function cue.require_approver is 'Raises QU076 for a change of a cue that only a caller who may approve can make.';
