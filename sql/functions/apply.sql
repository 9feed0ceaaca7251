-- Declared cues: a set of cues that its users keep in a file. Locks: the account, then cues and their cue_runs, then gates.

-- p_cues: an array of {key, cue_id, version, next_run, next_slot, paused, changes}. The caller has looked up cue_id and version, null for a
-- new cue, and computed next_run from them. paused: whether a new cue is paused. changes as for update_cue, with replaces, or the columns of a
-- new cue. p_gates: an array of {key, columns}, for put_gate, before the cues, which may name them. p_keys: all keys of the list; with p_prune, cues of the set with other keys are deleted. Exact, because the account is locked; if
-- all is as it should be, nothing is locked or written.
-- If any cue is refused, or with p_dry_run, everything is undone. Then error is the SQLSTATE of the refusal, of those of create_cue and
-- update_cue, or QU024. Without p_may_approve, also QU076 for a pruned cue with an approval. QU014 is raised: the caller looks again.
create or replace function cue.apply_cues(
  p_account_id uuid, p_set text, p_cues jsonb, p_keys text[], p_prune boolean default false, p_take_over boolean default false,
  p_dry_run boolean default false, p_now timestamptz default now(), p_actor text default session_user, p_gates jsonb default '[]',
  p_may_approve boolean default false
) returns table (key text, action text, before jsonb, after jsonb, error text, message text)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  v_results jsonb := '[]';
  v_gates jsonb := '[]';
  v_pruned text[] := case when p_prune then cue.keys_outside(p_account_id, p_set, p_keys) else '{}' end;
begin
  p_cues := cue.compare_cues(p_account_id, p_set, p_cues);
  if p_cues @? '$[*] ? (@.same == false)' or v_pruned <> '{}' or p_gates <> '[]' then
    begin
      perform from cue.accounts where id = p_account_id for no key update;
      v_pruned := case when p_prune then cue.keys_outside(p_account_id, p_set, p_keys) else '{}' end;
      perform cue.lock_cues(array(
        select c.id from cue.cues c
         where c.account_id = p_account_id and c.deleted_at is null
           and c.key = any (v_pruned || array(select g.cue ->> 'key' from jsonb_array_elements(p_cues) as g (cue) where g.cue -> 'same' = 'false'))));
      v_gates := cue.apply_each(p_account_id, p_set, 'gate', p_gates, p_take_over, p_may_approve, p_actor, p_now);
      -- First, because it makes room.
      v_results := cue.apply_each(p_account_id, p_set, 'prune', (select jsonb_agg(jsonb_build_object('key', u.key)) from unnest(v_pruned) as u (key)),
                                  p_take_over, p_may_approve, p_actor, p_now)
        || cue.apply_each(p_account_id, p_set, 'change', jsonb_path_query_array(p_cues, '$[*] ? (@.same == false)'), p_take_over, p_may_approve, null, p_now)
        || cue.apply_each(p_account_id, p_set, 'create', cue.add_declared(p_account_id, p_cues, p_now), p_take_over, p_may_approve, null, p_now);
      v_results := cue.chain_declared(p_account_id, v_results, p_keys, v_pruned);
      if p_dry_run or v_gates || v_results @? '$[*] ? (@.error != null)' then raise sqlstate 'UNDO0'; end if;
      if v_results <> '[]' or v_pruned <> '{}' then perform cue.record_event(p_account_id, 'cues.applied', p_actor, null, jsonb_build_object(
        'set', p_set, 'created', jsonb_array_length(jsonb_path_query_array(v_results, '$[*] ? (@.action == "created")')),
        'updated', jsonb_array_length(jsonb_path_query_array(v_results, '$[*] ? (@.action == "updated")')), 'pruned', cardinality(v_pruned)), p_now);
      end if;
    exception when sqlstate 'UNDO0' then
      null; -- what was done is undone; variables keep their values
    end;
  end if;
  return query
  select r.* from jsonb_to_recordset(v_gates) as r (key text, action text, before jsonb, after jsonb, error text, message text);
  return query
  select g.cue ->> 'key', coalesce(r.action, 'unchanged'), r.before, r.after, r.error, r.message
    from jsonb_array_elements(p_cues) with ordinality as g (cue, place)
    left join jsonb_to_recordset(v_results) as r (key text, action text, before jsonb, after jsonb, error text, message text)
      on r.key = g.cue ->> 'key'
   order by g.place;
  return query
  select u.key, coalesce(r.action, 'pruned'), null::jsonb, null::jsonb, r.error, r.message from unnest(v_pruned) as u (key)
    left join jsonb_to_recordset(v_results) as r (key text, action text, error text, message text) on r.key = u.key order by u.key;
end $$;
comment on function cue.apply_cues is
  'Makes the cues of a set as declared, all or none; returns what it did with each: created, updated (with its definition before and after), '
  'unchanged, pruned or refused; for gates, put_gate''s result behind "gate ".';

create or replace function cue.keys_outside(p_account_id uuid, p_set text, p_keys text[]) returns text[]
language sql stable security definer as $$
  select coalesce(array_agg(c.key), '{}') from cue.cues c
   where c.account_id = p_account_id and c.managed_by = p_set and c.deleted_at is null and c.key <> all (p_keys)
$$;
comment on function cue.keys_outside is 'Returns the keys of a set''s cues that are not among p_keys.';

create or replace function cue.compare_cues(p_account_id uuid, p_set text, p_cues jsonb) returns jsonb
language sql stable security definer as $$
  select coalesce(jsonb_agg(g.cue || jsonb_build_object('changes', g.changes, 'same', coalesce((
             select cue.with_changes(c, g.changes) is not distinct from c
               from cue.cues c join cue.cue_runs r on r.cue_id = c.id
              where c.id = g.cue ->> 'cue_id' and c.account_id = p_account_id and c.deleted_at is null
                and r.version = (g.cue ->> 'version')::int), false)) order by g.place), '[]')
    from (select d.cue, d.place, d.cue -> 'changes' || jsonb_build_object('managed_by', p_set, 'in_set', true) as changes
            from jsonb_array_elements(p_cues) with ordinality as d (cue, place) offset 0) g
$$;
comment on function cue.compare_cues is 'Returns declared cues with the member same: whether each is as declared already.';

-- p_items: for gates their members key and columns, for cues to delete their keys, for others members of p_cues, and of those that exist by now also
-- the refusal of add_declared.
create or replace function cue.apply_each(
  p_account_id uuid, p_set text, p_step text, p_items jsonb, p_take_over boolean, p_may_approve boolean, p_actor text, p_now timestamptz
) returns jsonb
language sql security definer as $$
  select coalesce(jsonb_agg(a.result), '[]')
    from (select cue.apply_item(p_account_id, p_set, p_step, g.item, p_take_over, p_may_approve, p_actor, p_now) as result
            from jsonb_array_elements(p_items) with ordinality as g (item, place) order by g.place offset 0) a
   where a.result is not null
$$;
comment on function cue.apply_each is 'Takes one of the steps of apply_cues for each of these; returns what it did with each.';

create or replace function cue.apply_item(
  p_account_id uuid, p_set text, p_step text, p_item jsonb, p_take_over boolean, p_may_approve boolean, p_actor text, p_now timestamptz
) returns jsonb
language plpgsql security definer as $$
declare
  v_key text := p_item ->> 'key';
  v_id text := p_item ->> 'cue_id';
  v_before jsonb;
  v_error text;
  v_message text;
begin
  case p_step
    when 'gate' then
      return jsonb_build_object('key', v_key, 'action', 'gate ' || cue.put_gate(p_account_id, v_key, p_item -> 'columns', p_actor, null, p_now));
    when 'prune' then
      perform cue.remove_cues(p_account_id, array[cue.cue_id_by_key(p_account_id, v_key)], p_now, null, p_may_approve);
      return null;
    when 'change' then
      perform cue.refuse_if(v_id is distinct from cue.cue_id_by_key(p_account_id, v_key), 'QU014',
        format('Cue %s was changed at the same time. Try again.', v_key));
      if v_id is null then return null; end if;
      v_before := cue.cue_definition(v_id);
      perform cue.refuse_if(v_before ->> 'managed_by' <> p_set and not p_take_over, 'QU024',
        format('Cue %s belongs to the set %s. Remove it from one of the two, or take it over with take_over.', v_key, v_before ->> 'managed_by'));
      perform cue.update_cue(p_account_id, v_id, (p_item ->> 'version')::int, p_item -> 'changes', (p_item ->> 'next_run')::timestamptz, p_now,
                             (p_item ->> 'next_slot')::timestamptz, null, p_may_approve);
      return jsonb_build_object('key', v_key, 'action', 'updated', 'before', v_before, 'after', cue.cue_definition(v_id));
    when 'create' then
      if p_item ->> 'refusal' is not null then perform cue.raise_refused(p_account_id, p_item ->> 'refusal', v_key, p_item ->> 'gate'); end if;
      perform cue.record_cue_events(array[p_account_id], 'cue.created', array[null], array[v_id], '{}', p_now);
      return jsonb_build_object('key', v_key, 'action', 'created');
  end case;
exception
  when sqlstate 'QU011' or sqlstate 'QU024' or sqlstate 'QU030' or sqlstate 'QU038' or sqlstate 'QU039' or sqlstate 'QU052' or sqlstate 'QU076' then
    get stacked diagnostics v_error = returned_sqlstate, v_message = message_text;
    return jsonb_build_object('key', v_key, 'action', case p_step when 'gate' then 'gate ' else '' end || 'refused', 'error', v_error, 'message', v_message);
end $$;
comment on function cue.apply_item is 'Takes a step of apply_cues; returns what it did, also if it is refused, or null.';

create or replace function cue.add_declared(p_account_id uuid, p_cues jsonb, p_now timestamptz) returns jsonb
language plpgsql security definer as $$
declare
  v_new jsonb[] := array(
    select g.cue from jsonb_array_elements(p_cues) with ordinality as g (cue, place)
     where g.cue -> 'same' = 'false' and g.cue ->> 'cue_id' is null order by g.place);
  v_next_runs timestamptz[] := array(
    select case when not u.cue @> '{"paused": true}' then (u.cue ->> 'next_run')::timestamptz end from unnest(v_new) with ordinality as u (cue, n) order by u.n);
  v_next_slots timestamptz[] := array(
    select case when not u.cue @> '{"paused": true}' then (u.cue ->> 'next_slot')::timestamptz end from unnest(v_new) with ordinality as u (cue, n) order by u.n);
begin
  if v_new = '{}' then return '[]'; end if;
  return (
    select jsonb_agg(jsonb_build_object('key', a.cue -> 'key', 'gate', a.cue -> 'changes' -> 'gate', 'cue_id', a.id, 'refusal', a.refusal) order by a.n)
      from rows from (unnest(v_new), cue.add_cues(
             array_fill(p_account_id, array[cardinality(v_new)]),
             (select jsonb_agg(u.cue -> 'changes' || jsonb_build_object('key', u.cue -> 'key') || case when u.cue @> '{"paused": true}'
                         then jsonb_build_object('status', 'paused', 'paused_by', 'user', 'paused_at', p_now) else '{}' end order by u.n)
                from unnest(v_new) with ordinality as u (cue, n)),
             v_next_runs, p_now, v_next_slots)) with ordinality as a (cue, id, refusal, n));
end $$;
comment on function cue.add_declared is 'Creates the declared cues that do not exist; returns the id of each, or why it is refused.';

-- When all cues are as declared: in which order a list names them doesn't matter.
create or replace function cue.chain_declared(p_account_id uuid, p_results jsonb, p_keys text[], p_pruned text[]) returns jsonb
language plpgsql security definer as $$
declare
  v_ids text[] := array(
    select c.id from jsonb_array_elements(p_results) with ordinality as r (result, n)
     cross join lateral (
       select q.id, q.after from cue.cues q
        where q.account_id = p_account_id and q.key = r.result ->> 'key' and q.deleted_at is null limit 1) c
     where c.after is not null and r.result ->> 'error' is null order by r.n);
  v_pruned text[] := array(
    select c.id from unnest(p_pruned) as u (key)
     cross join lateral (
       select q.id from cue.cues q where q.account_id = p_account_id and q.key = u.key and q.deleted_at is not null
        order by q.deleted_at desc limit 1) c
     where exists (select from cue.cue_parents p where p.parent_id = c.id));
  v_id text;
  v_error text;
  v_message text;
  v_detail text;
begin
  perform cue.link_cues(v_ids);
  -- All at once; if that fails, one by one, for the one at fault.
  begin
    perform cue.require_chains(v_ids);
    v_ids := '{}';
  exception when sqlstate 'QU063' or sqlstate 'QU064' or sqlstate 'QU065' then
    null;
  end;
  foreach v_id in array v_pruned || v_ids loop
    begin
      if v_id = any (v_pruned) then perform cue.require_no_followers(p_account_id, v_id);
      else perform cue.require_chains(array[v_id]);
      end if;
    exception when sqlstate 'QU063' or sqlstate 'QU064' or sqlstate 'QU065' or sqlstate 'QU066' then
      get stacked diagnostics v_error = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail;
      -- The cue that it follows is at fault itself.
      continue when v_error = 'QU063' and v_detail = any (p_keys);
      p_results := p_results || jsonb_build_object('key', cue.name_cue(v_id), 'action', 'refused', 'error', v_error, 'message', v_message);
    end;
  end loop;
  return p_results;
end $$;
comment on function cue.chain_declared is 'Writes and checks the edges of declared cues; returns the results with those of cues at fault.';
