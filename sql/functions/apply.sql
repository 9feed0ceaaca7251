-- Declared cues: a set of cues that its users keep in a file. Locks: the account, then cues and their cue_runs.

create or replace function cue.require_set(p_set text, p_managed_by text, p_key text, p_take_over boolean) returns void
language plpgsql stable as $$
begin
  if p_managed_by <> p_set and not p_take_over then
    raise exception 'Cue % belongs to the set %. Remove it from one of the two, or take it over with take_over.', p_key, p_managed_by
      using errcode = cue.refusal('QU024');
  end if;
end $$;
comment on function cue.require_set is 'Raises QU024 if a cue belongs to another set, unless it is to be taken over.';

-- p_cues: an array of {key, cue_id, version, next_run, next_slot, changes}. The caller has looked up cue_id and version, null for a new cue, and computed
-- next_run from them. changes as for update_cue, with replaces, or the columns of a new cue. p_keys: all keys of the list; with p_prune, cues of the
-- set with other keys are deleted. Exact, because the account is locked; if all is as it should be, nothing is locked or written.
-- If any cue is refused, or with p_dry_run, everything is undone. Then error is the SQLSTATE of the refusal, of those of create_cue and update_cue, or
-- QU024. QU014 is raised: the caller looks again.
create or replace function cue.apply_cues(
  p_account_id uuid, p_set text, p_cues jsonb, p_keys text[], p_prune boolean default false, p_take_over boolean default false,
  p_dry_run boolean default false, p_now timestamptz default now(), p_actor text default session_user
) returns table (key text, action text, before jsonb, after jsonb, error text, message text)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  v_results jsonb[] := '{}';
  v_given jsonb;
  v_before jsonb;
  v_ids text[];
  v_new jsonb[] := '{}';
  v_pruned text[];
  v_error text;
  v_message text;
  v_refused boolean := false;
  n int;
begin
  p_cues := (
    select coalesce(jsonb_agg(g.cue || jsonb_build_object('changes', g.changes, 'same', coalesce((
               select cue.with_changes(c, g.changes) is not distinct from c
                 from cue.cues c join cue.cue_runs r on r.cue_id = c.id
                where c.id = g.cue ->> 'cue_id' and c.account_id = p_account_id and c.deleted_at is null
                  and r.version = (g.cue ->> 'version')::int), false)) order by g.place), '[]')
      from (select d.cue, d.place, d.cue -> 'changes' || jsonb_build_object('managed_by', p_set) as changes
              from jsonb_array_elements(p_cues) with ordinality as d (cue, place) offset 0) g);
  v_pruned := case when p_prune then cue.keys_outside(p_account_id, p_set, p_keys) else '{}' end;
  if p_cues @? '$[*] ? (@.same == false)' or v_pruned <> '{}' then
    begin
      perform from cue.accounts where id = p_account_id for no key update;
      v_pruned := case when p_prune then cue.keys_outside(p_account_id, p_set, p_keys) else '{}' end;
      v_ids := array(
        select c.id from cue.cues c
         where c.account_id = p_account_id and c.deleted_at is null
           and c.key = any (v_pruned || array(select g.cue ->> 'key' from jsonb_array_elements(p_cues) as g (cue) where g.cue -> 'same' = 'false')));
      perform cue.lock_cues(v_ids);
      -- First, because it makes room.
      if v_pruned <> '{}' then
        perform cue.delete_cues(p_account_id, array(select c.id from cue.cues c where c.id = any (v_ids) and c.key = any (v_pruned)), p_now, null);
      end if;
      for v_given in select g.cue from jsonb_array_elements(p_cues) with ordinality as g (cue, place) order by g.place loop
        continue when (v_given ->> 'same')::boolean;
        if v_given ->> 'cue_id' is distinct from cue.cue_id_by_key(p_account_id, v_given ->> 'key') then
          raise exception 'Cue % was changed at the same time. Try again.', v_given ->> 'key' using errcode = cue.refusal('QU014');
        end if;
        if v_given ->> 'cue_id' is null then
          v_new := v_new || v_given;
          continue;
        end if;
        v_before := cue.cue_definition(v_given ->> 'cue_id');
        begin
          perform cue.require_set(p_set, v_before ->> 'managed_by', v_given ->> 'key', p_take_over);
          perform cue.update_cue(p_account_id, v_given ->> 'cue_id', (v_given ->> 'version')::int, v_given -> 'changes',
                                 (v_given ->> 'next_run')::timestamptz, p_now, (v_given ->> 'next_slot')::timestamptz, null);
          v_results := v_results || jsonb_build_object(
            'key', v_given -> 'key', 'action', 'updated', 'before', v_before, 'after', cue.cue_definition(v_given ->> 'cue_id'));
        exception when sqlstate 'QU011' or sqlstate 'QU024' or sqlstate 'QU030' or sqlstate 'QU052' then
          get stacked diagnostics v_error = returned_sqlstate, v_message = message_text;
          v_refused := true;
          v_results := v_results || jsonb_build_object('key', v_given -> 'key', 'action', 'refused', 'error', v_error, 'message', v_message);
        end;
      end loop;
      if v_new <> '{}' then
        v_ids := cue.add_cues(
          array_fill(p_account_id, array[cardinality(v_new)]),
          (select jsonb_agg(u.cue -> 'changes' || jsonb_build_object('key', u.cue -> 'key') order by u.place)
             from unnest(v_new) with ordinality as u (cue, place)),
          array(select (u.cue ->> 'next_run')::timestamptz from unnest(v_new) with ordinality as u (cue, place) order by u.place), p_now,
          array(select (u.cue ->> 'next_slot')::timestamptz from unnest(v_new) with ordinality as u (cue, place) order by u.place));
        for n in 1 .. cardinality(v_new) loop
          if v_ids[n] is null then
            raise lock_not_available using message = format('account %s is locked by another transaction', p_account_id);
          elsif cue.is_created(v_ids[n]) then
            v_results := v_results || jsonb_build_object('key', v_new[n] -> 'key', 'action', 'created');
          else
            begin
              perform cue.raise_refused(p_account_id, v_ids[n], v_new[n] ->> 'key');
            exception when sqlstate 'QU030' or sqlstate 'QU052' then
              get stacked diagnostics v_error = returned_sqlstate, v_message = message_text;
              v_refused := true;
              v_results := v_results || jsonb_build_object('key', v_new[n] -> 'key', 'action', 'refused', 'error', v_error, 'message', v_message);
            end;
          end if;
        end loop;
      end if;
      if v_refused or p_dry_run then raise sqlstate 'UNDO0'; end if;
      perform cue.record_event(p_account_id, 'cues.applied', p_actor, null, jsonb_build_object(
        'set', p_set, 'created', cardinality(v_new), 'updated', cardinality(v_results) - cardinality(v_new), 'pruned', cardinality(v_pruned)), p_now);
    exception when sqlstate 'UNDO0' then
      null; -- what was done is undone; variables keep their values
    end;
  end if;
  return query
  select g.cue ->> 'key', coalesce(r.action, 'unchanged'), r.before, r.after, r.error, r.message
    from jsonb_array_elements(p_cues) with ordinality as g (cue, place)
    left join jsonb_to_recordset(to_jsonb(v_results)) as r (key text, action text, before jsonb, after jsonb, error text, message text)
      on r.key = g.cue ->> 'key'
   order by g.place;
  return query select u.key, 'pruned', null::jsonb, null::jsonb, null, null from unnest(v_pruned) as u (key) order by u.key;
end $$;
comment on function cue.apply_cues is
  'Makes the cues of a set as declared, all or none; returns what it did with each: created, updated (with its definition before and after), '
  'unchanged, pruned or refused.';

create or replace function cue.keys_outside(p_account_id uuid, p_set text, p_keys text[]) returns text[]
language sql stable security definer as $$
  select coalesce(array_agg(c.key), '{}') from cue.cues c
   where c.account_id = p_account_id and c.managed_by = p_set and c.deleted_at is null and c.key <> all (p_keys)
$$;
comment on function cue.keys_outside is 'Returns the keys of a set''s cues that are not among p_keys.';
