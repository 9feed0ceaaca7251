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
      v_gates := cue.put_declared_gates(p_account_id, p_gates, p_actor, p_now);
      -- First, because it makes room.
      v_results := cue.prune_declared(p_account_id, v_pruned, p_may_approve, p_now);
      v_results := v_results || cue.change_declared(p_account_id, p_set, p_cues, p_take_over, p_may_approve, p_now);
      v_results := v_results || cue.add_declared(p_account_id, p_cues, p_now);
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

create or replace function cue.put_declared_gates(p_account_id uuid, p_gates jsonb, p_actor text, p_now timestamptz) returns jsonb
language plpgsql security definer as $$
declare
  v_gate jsonb;
  v_results jsonb := '[]';
  v_error text;
  v_message text;
begin
  for v_gate in select g.gate from jsonb_array_elements(p_gates) with ordinality as g (gate, place) order by g.place loop
    begin
      v_results := v_results || jsonb_build_object('key', v_gate -> 'key', 'action',
        'gate ' || cue.put_gate(p_account_id, v_gate ->> 'key', v_gate -> 'columns', p_actor, null, p_now));
    exception when sqlstate 'QU039' then
      get stacked diagnostics v_error = returned_sqlstate, v_message = message_text;
      v_results := v_results || jsonb_build_object('key', v_gate -> 'key', 'action', 'gate refused', 'error', v_error, 'message', v_message);
    end;
  end loop;
  return v_results;
end $$;
comment on function cue.put_declared_gates is 'Creates or replaces declared gates; returns what it did with each.';

create or replace function cue.prune_declared(p_account_id uuid, p_keys text[], p_may_approve boolean, p_now timestamptz) returns jsonb
language plpgsql security definer as $$
declare
  v_key text;
  v_results jsonb := '[]';
  v_error text;
  v_message text;
begin
  foreach v_key in array p_keys loop
    begin
      perform cue.remove_cues(p_account_id, array[cue.cue_id_by_key(p_account_id, v_key)], p_now, null, p_may_approve);
    exception when sqlstate 'QU076' then
      get stacked diagnostics v_error = returned_sqlstate, v_message = message_text;
      v_results := v_results || jsonb_build_object('key', v_key, 'action', 'refused', 'error', v_error, 'message', v_message);
    end;
  end loop;
  return v_results;
end $$;
comment on function cue.prune_declared is 'Deletes cues that a set no longer has; returns those that are refused.';

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

create or replace function cue.change_declared(p_account_id uuid, p_set text, p_cues jsonb, p_take_over boolean, p_may_approve boolean, p_now timestamptz) returns jsonb
language plpgsql security definer as $$
declare
  v_cue jsonb;
  v_before jsonb;
  v_results jsonb := '[]';
  v_error text;
  v_message text;
begin
  for v_cue in
    select g.cue from jsonb_array_elements(p_cues) with ordinality as g (cue, place) where g.cue -> 'same' = 'false' order by g.place
  loop
    if v_cue ->> 'cue_id' is distinct from cue.cue_id_by_key(p_account_id, v_cue ->> 'key') then
      raise exception 'Cue % was changed at the same time. Try again.', v_cue ->> 'key' using errcode = cue.refusal('QU014');
    end if;
    continue when v_cue ->> 'cue_id' is null;
    v_before := cue.cue_definition(v_cue ->> 'cue_id');
    begin
      if v_before ->> 'managed_by' <> p_set and not p_take_over then
        raise exception 'Cue % belongs to the set %. Remove it from one of the two, or take it over with take_over.', v_cue ->> 'key',
          v_before ->> 'managed_by' using errcode = cue.refusal('QU024');
      end if;
      perform cue.update_cue(p_account_id, v_cue ->> 'cue_id', (v_cue ->> 'version')::int, v_cue -> 'changes',
                             (v_cue ->> 'next_run')::timestamptz, p_now, (v_cue ->> 'next_slot')::timestamptz, null, p_may_approve);
      v_results := v_results || jsonb_build_object(
        'key', v_cue -> 'key', 'action', 'updated', 'before', v_before, 'after', cue.cue_definition(v_cue ->> 'cue_id'));
    exception when sqlstate 'QU011' or sqlstate 'QU024' or sqlstate 'QU030' or sqlstate 'QU038' or sqlstate 'QU052' or sqlstate 'QU076' then
      get stacked diagnostics v_error = returned_sqlstate, v_message = message_text;
      v_results := v_results || jsonb_build_object('key', v_cue -> 'key', 'action', 'refused', 'error', v_error, 'message', v_message);
    end;
  end loop;
  return v_results;
end $$;
comment on function cue.change_declared is 'Changes existing cues to what is declared; returns what it did with each.';

create or replace function cue.add_declared(p_account_id uuid, p_cues jsonb, p_now timestamptz) returns jsonb
language plpgsql security definer as $$
declare
  v_new jsonb[] := array(
    select g.cue from jsonb_array_elements(p_cues) with ordinality as g (cue, place)
     where g.cue -> 'same' = 'false' and g.cue ->> 'cue_id' is null order by g.place);
  r record;
  v_results jsonb := '[]';
  v_error text;
  v_message text;
begin
  if v_new = '{}' then return v_results; end if;
  for r in
    select a.cue ->> 'key' as key, a.cue -> 'changes' ->> 'gate' as gate, a.id, a.refusal
      from rows from (unnest(v_new), cue.add_cues(
             array_fill(p_account_id, array[cardinality(v_new)]),
             (select jsonb_agg(n.cue -> 'changes' || jsonb_build_object('key', n.cue -> 'key') || case when n.cue @> '{"paused": true}'
                         then jsonb_build_object('status', 'paused', 'paused_by', 'user', 'paused_at', p_now) else '{}' end order by n.place)
                from unnest(v_new) with ordinality as n (cue, place)),
             array(select case when not n.cue @> '{"paused": true}' then (n.cue ->> 'next_run')::timestamptz end
                     from unnest(v_new) with ordinality as n (cue, place) order by n.place), p_now,
             array(select case when not n.cue @> '{"paused": true}' then (n.cue ->> 'next_slot')::timestamptz end
                     from unnest(v_new) with ordinality as n (cue, place) order by n.place)))
        as a (cue, id, refusal)
  loop
    begin
      if r.refusal is not null then perform cue.raise_refused(p_account_id, r.refusal, r.key, r.gate); end if;
      perform cue.record_cue_events(array[p_account_id], 'cue.created', array[null], array[r.id], '{}', p_now);
      v_results := v_results || jsonb_build_object('key', r.key, 'action', 'created');
    exception when sqlstate 'QU030' or sqlstate 'QU038' or sqlstate 'QU052' then
      get stacked diagnostics v_error = returned_sqlstate, v_message = message_text;
      v_results := v_results || jsonb_build_object('key', r.key, 'action', 'refused', 'error', v_error, 'message', v_message);
    end;
  end loop;
  return v_results;
end $$;
comment on function cue.add_declared is 'Creates the declared cues that do not exist; returns what it did with each.';

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
