-- Dead letters: executions that failed, were missed or timed out, until somebody replays or dismisses them. A cancelled execution is none. They are kept
-- in a table of their own, so that listing them reads no other executions and the end of a successful one writes nothing more.

create or replace function cue.add_dead_letter(e cue.executions) returns void
language sql security definer as $$
  insert into cue.dead_letters (execution_id, account_id, cue_id, error_group)
  values (e.id, e.account_id, e.cue_id, cue.error_group(e)) on conflict do nothing
$$;
comment on function cue.add_dead_letter is 'Adds an ended execution to the dead letters.';

create or replace function cue.settle_dead_letter(p_execution_id uuid) returns void
language sql security definer as $$
  delete from cue.dead_letters where execution_id = p_execution_id
$$;
comment on function cue.settle_dead_letter is 'Removes an execution from the dead letters, if it is one.';

create or replace function cue.dismiss_execution(p_account_id uuid, p_execution_id uuid, p_now timestamptz default now())
returns setof cue.executions
language plpgsql security definer as $$
declare
  e cue.executions;
begin
  select x.* into e from cue.executions x
   where x.id = p_execution_id and x.account_id = p_account_id and (select c.deleted_at is null from cue.cues c where c.id = x.cue_id);
  perform cue.refuse_if(not found, 'QU002', format('execution %s not found', p_execution_id));
  perform cue.refuse_if(e.status not in ('failed', 'missed', 'outcome_timeout'), 'QU011',
    format('Only an execution that failed, was missed or timed out can be dismissed; execution %s is %s.', e.id, e.status));
  perform cue.settle_dead_letter(e.id);
  return next e;
end $$;
comment on function cue.dismiss_execution is 'Removes an execution from the dead letters; QU002 not found, QU011 not failed.';

-- Executions are dropped by month. What they leave here is not shown, and follows in batches.
create or replace function cue.prune_dead_letters(p_batch int default 5000) returns int
language plpgsql security definer as $$
declare
  v_first uuid := (
    select min(cue.partition_bound(to_date(substring(p.relname from '\d{4}_\d\d$'), 'YYYY_MM'))::text)::uuid
      from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = 'cue.executions'::regclass);
  v_table text;
  v_count int;
begin
  -- A signal of an execution that can still be replayed keeps its lineage from signalling again.
  foreach v_table in array '{dead_letters,backfilled_slots,approvals,signals}'::text[] loop
    execute format('delete from cue.%1$I where ctid = any (array(
                      select ctid from cue.%1$I where execution_id < %2$L order by execution_id limit %3$s for update skip locked))', v_table, v_first, p_batch);
    get diagnostics v_count = row_count;
    exit when v_count > 0;
  end loop;
  return v_count;
end $$;
comment on function cue.prune_dead_letters is
  'Removes a batch of dead letters, backfilled slots, approvals and signals whose executions have been dropped; returns how many.';
