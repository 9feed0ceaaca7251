-- Chains: cues that follow other cues, by their column after. cue_parents has the same edges for lookups. Whoever writes edges, or deletes cues, has
-- locked the account, so that no two requests make a cycle together, and no parent is deleted while another cue comes to follow it.

-- Those that are not found stay as they are.
create or replace function cue.resolve_parents(p_account_id uuid, p_after jsonb) returns jsonb
language sql stable security definer as $$
  select jsonb_strip_nulls(p_after) || jsonb_build_object('cues', (
    select coalesce(jsonb_agg(x.id order by x.n), '[]') from (
      select coalesce((select c.id from cue.cues c where c.id = r.ref and c.account_id = p_account_id and c.deleted_at is null),
                      cue.cue_id_by_key(p_account_id, r.ref), r.ref) as id, min(r.n) as n
        from jsonb_array_elements_text(p_after -> 'cues') with ordinality as r (ref, n) group by 1) x))
   where p_after is not null
$$;
comment on function cue.resolve_parents is 'Returns the after of a cue with the ids of its cues instead of their keys.';

create or replace function cue.show_parents(p_after jsonb) returns jsonb
language sql stable security definer as $$
  select p_after || jsonb_build_object('cues', (
    select jsonb_agg(coalesce((select c.key from cue.cues c where c.id = r.id and c.deleted_at is null), r.id) order by r.n)
      from jsonb_array_elements_text(p_after -> 'cues') with ordinality as r (id, n)))
$$;
comment on function cue.show_parents is 'Returns the after of a cue with the keys of its cues, where they have any, instead of their ids.';

create or replace function cue.link_cues(p_cue_ids text[]) returns void
language plpgsql security definer as $$
begin
  update cue.cues c set after = cue.resolve_parents(c.account_id, c.after)
   where c.id = any (p_cue_ids) and c.after <> cue.resolve_parents(c.account_id, c.after);
  delete from cue.cue_parents where cue_id = any (p_cue_ids);
  insert into cue.cue_parents (cue_id, parent_id, account_id)
  select c.id, p.id, c.account_id
    from unnest(p_cue_ids) as u (id)
   cross join lateral (select q.id, q.account_id, q.after from cue.cues q where q.id = u.id limit 1) c
   cross join lateral jsonb_array_elements_text(c.after -> 'cues') as r (id)
   cross join lateral (select q.id from cue.cues q where q.id = r.id and q.account_id = c.account_id and q.deleted_at is null limit 1) p;
  delete from cue.signals s
   where s.follower_id = any (p_cue_ids) and s.spent_at is null
     and not exists (select from cue.cue_parents p where p.cue_id = s.follower_id and p.parent_id = s.parent_id);
end $$;
comment on function cue.link_cues is 'Writes the edges of cues anew, without those to cues that are not found, and drops signals of cues that they no longer follow.';

-- Levels rather than paths, of which there may be very many. Level n is the cues at the end of a path of n edges: a cycle is endless.
create or replace function cue.is_chain_too_long(p_cue_ids text[]) returns boolean
language sql stable security definer as $$
  with recursive above (id) as (
    select unnest(p_cue_ids)
    union
    select p.parent_id from above a cross join lateral (select q.parent_id from cue.cue_parents q where q.cue_id = a.id) p),
  levels (id, level) as (
    select a.id, 0 from above a where not exists (select from cue.cue_parents q where q.cue_id = a.id)
    union
    select p.cue_id, l.level + 1 from levels l cross join lateral (select q.cue_id from cue.cue_parents q where q.parent_id = l.id) p
     where l.level < 20)
  select exists (select from levels where level >= 20)
      -- In a cycle, or behind one.
      or exists (select from above a where not exists (select from levels l where l.id = a.id))
$$;
comment on function cue.is_chain_too_long is 'Returns whether a line through one of these cues has more than 20 cues, or no end.';

create or replace function cue.find_cycle(p_cue_id text) returns text[]
language plpgsql stable security definer as $$
declare
  v_seen jsonb := '{}'; -- for each cue above, the follower by which it was reached
  v_next jsonb;
  v_level text[] := array[p_cue_id];
  v_path text[] := array[p_cue_id];
begin
  while v_level <> '{}' and not v_seen ? p_cue_id loop
    v_next := (
      select coalesce(jsonb_object_agg(d.parent_id, d.cue_id), '{}')
        from (select p.parent_id, min(p.cue_id) as cue_id from cue.cue_parents p where p.cue_id = any (v_level) group by p.parent_id) d
       where not v_seen ? d.parent_id);
    v_level := array(select jsonb_object_keys(v_next));
    v_seen := v_seen || v_next;
  end loop;
  if not v_seen ? p_cue_id then return null; end if;
  loop
    v_path := v_path || (v_seen ->> v_path[cardinality(v_path)]);
    exit when v_path[cardinality(v_path)] = p_cue_id;
  end loop;
  return v_path;
end $$;
comment on function cue.find_cycle is 'Returns the shortest cycle of a cue, each cue followed by one that follows it; null: none.';

create or replace function cue.name_cue(p_cue_id text) returns text
language sql stable security definer as $$ select coalesce((select c.key from cue.cues c where c.id = p_cue_id), p_cue_id) $$;
comment on function cue.name_cue is 'Returns the key of a cue, or its id if it has none.';

-- The caller has locked the account and written the edges.
create or replace function cue.require_chains(p_cue_ids text[]) returns void
language plpgsql security definer as $$
declare
  v_text text;
  v_cycle text[];
begin
  select r.ref into v_text from cue.cues c cross join lateral jsonb_array_elements_text(c.after -> 'cues') as r (ref)
   where c.id = any (p_cue_ids) and not exists (select from cue.cue_parents p where p.cue_id = c.id and p.parent_id = r.ref) limit 1;
  perform cue.refuse_if(found, 'QU063', format('cue %s not found; after.cues has keys or ids of cues of this account', v_text), v_text);
  select p.parent_id into v_text from (select distinct q.parent_id from cue.cue_parents q where q.cue_id = any (p_cue_ids)) p
   where (select count(*) from cue.cue_parents f where f.parent_id = p.parent_id) > 50 limit 1;
  perform cue.refuse_if(found, 'QU065',
    format('Cue %s has 50 followers, which is the maximum. Follow one of those, or merge some.', cue.name_cue(v_text)));
  if not cue.is_chain_too_long(p_cue_ids) then return; end if;
  foreach v_text in array p_cue_ids loop
    v_cycle := cue.find_cycle(v_text);
    if v_cycle is not null then
      perform cue.refuse('QU064',
        format('The cues would follow each other: %s. Remove one of them from the after of the next.',
          (select string_agg(cue.name_cue(u.id), ' → ' order by u.n) from unnest(v_cycle) with ordinality as u (id, n))));
    end if;
  end loop;
  perform cue.refuse('QU065', 'More than 20 cues would follow one another in a line. Shorten the chain.');
end $$;
comment on function cue.require_chains is
  'Raises QU063 if a cue that these follow is not found, QU064 for a cycle, QU065 for a line of more than 20 cues or more than 50 followers.';

create or replace function cue.require_no_followers(p_account_id uuid, p_cue_id text) returns void
language plpgsql stable security definer as $$
declare
  v_ids text[] := array(select p.cue_id from cue.cue_parents p where p.parent_id = p_cue_id and p.account_id = p_account_id order by 1);
begin
  if v_ids <> '{}' then
    perform cue.refuse('QU066',
      format('Cue %s is followed by %s. Remove it from their after, or delete them too, in one bulk delete.', cue.name_cue(p_cue_id),
        cue.first_names(array(select cue.name_cue(u.id) from unnest(v_ids[:11]) with ordinality as u (id, n) order by u.n))),
      array_to_json(v_ids)::text);
  end if;
end $$;
comment on function cue.require_no_followers is 'Raises QU066 if other cues follow a cue; the detail is a JSON array of their ids.';

create or replace function cue.still_followed(p_cue_ids text[]) returns setof text
language sql stable security definer as $$
  with recursive kept (id) as (
    select p.parent_id from cue.cue_parents p where p.parent_id = any (p_cue_ids) and p.cue_id <> all (p_cue_ids)
    union
    select p.parent_id from kept k cross join lateral (select q.parent_id from cue.cue_parents q where q.cue_id = k.id) p
     where p.parent_id = any (p_cue_ids))
  select id from kept
$$;
comment on function cue.still_followed is 'Returns those of these cues that are, also through others of them, followed by a cue that is not among them.';

create or replace function cue.chain_of(p_account_id uuid, p_ref text) returns setof text
language sql stable security definer as $$
  with recursive start (id) as (
    select c.id from cue.cues c
     where c.id in (p_ref, cue.cue_id_by_key(p_account_id, p_ref)) and c.account_id = p_account_id and c.deleted_at is null),
  above (id) as (
    select s.id from start s
    union
    select p.parent_id from above a cross join lateral (select q.parent_id from cue.cue_parents q where q.cue_id = a.id) p),
  below (id) as (
    select s.id from start s
    union
    select p.cue_id from below b cross join lateral (select q.cue_id from cue.cue_parents q where q.parent_id = b.id) p)
  select id from above union select id from below
$$;
comment on function cue.chain_of is 'Returns a cue by id or key, the cues that it follows, and those that follow it, however far away.';
