-- Templates: the values of names in the texts of a cue, fixed when an execution is created. The service replaces them when it sends or shows the
-- payload: see src/templates.

-- Also those behind {{{{, which are text: that their values are stored does no harm.
create or replace function cue.names_in(p_texts text[]) returns text[]
language sql immutable as $$
  select coalesce(array_agg(distinct btrim(split_part(m.piece, '}}', 1))), '{}')
    from unnest(p_texts) as u (text) cross join lateral unnest((string_to_array(u.text, '{{'))[2:]) as m (piece)
   where strpos(m.piece, '}}') > 0
$$;
comment on function cue.names_in is 'Returns the names in placeholders of texts, each once.';

-- For texts that the service does not check, because it does not know all of them, or whether they belong to a template.
create or replace function cue.require_names(c cue.cues, p_text text, p_member text) returns void
language plpgsql stable security definer as $$
declare
  v_unknown text;
  v_marks int := (length(p_text) - length(replace(p_text, '{{', ''))) / 2;
begin
  perform cue.refuse_if(v_marks > cue.max_placeholders(), 'QU048',
    format('at most %s placeholders are allowed, and {{{{ counts as two; this text has %s', cue.max_placeholders(), v_marks), p_member);
  select u.name into v_unknown from unnest(cue.names_in(array[replace(p_text, '{{{{', '')])) as u (name)
   where u.name !~ cue.template_names()
     and not exists (
       select from jsonb_array_elements_text(c.after -> 'cues') as r (id)
         left join lateral (select q.key from cue.cues q where q.id = r.id limit 1) p on true
        cross join lateral (values (r.id), (p.key)) k (key)
        where starts_with(u.name, 'parents.' || k.key || '.') and substr(u.name, length('parents.' || k.key || '.') + 1) ~ cue.parent_names()) limit 1;
  perform cue.refuse_if(found, 'QU048', format('{{%s}} is not a known name', left(v_unknown, 100)), p_member);
end $$;
comment on function cue.require_names is 'Raises QU048, with the member, for a text that names something unknown, or too much.';

-- As src/templates does it for texts that are sent. The result is cut, since it is shown to people.
create or replace function cue.render_text(p_text text, p_values jsonb) returns text
language plpgsql immutable as $$
declare
  v_out text := '';
  v_at int;
begin
  loop
    v_at := strpos(p_text, '{{');
    exit when v_at = 0;
    v_out := v_out || left(p_text, v_at - 1);
    p_text := substr(p_text, v_at + 2);
    if starts_with(p_text, '{{') then
      v_out := v_out || '{{';
      p_text := substr(p_text, 3);
      continue;
    end if;
    v_at := strpos(p_text, '}}');
    if v_at = 0 then
      p_text := '{{' || replace(p_text, '{{{{', '{{');
      exit;
    end if;
    v_out := left(v_out || coalesce(p_values ->> btrim(left(p_text, v_at - 1), ' '), ''), 4000);
    p_text := substr(p_text, v_at + 2);
  end loop;
  return left(v_out || p_text, 4000);
end $$;
comment on function cue.render_text is 'Returns a text with the values of its placeholders, at most 4,000 characters.';

create or replace function cue.has_values(e cue.executions) returns boolean
language sql stable security definer as $$
  select e.is_fixed is true and exists (select from cue.fixed_requests f where f.execution_id = e.id and f.template_values is not null)
$$;
comment on function cue.has_values is 'Returns whether an execution is that of a template.';

create or replace function cue.rendered_bytes(p_execution_id uuid) returns bigint
language sql stable security definer as $$
  select octet_length(f.template_values::text) * cue.max_placeholders()::bigint from cue.fixed_requests f where f.execution_id = p_execution_id
$$;
comment on function cue.rendered_bytes is 'Returns by how much values can enlarge a payload.';

-- Reads few rows, unless all of them failed.
create or replace function cue.previous_success(p_cue_id text, p_now timestamptz default now()) returns setof cue.executions
language plpgsql stable security definer as $$
begin
  return query
  select (n.e).* from (
    select e from cue.executions e where e.cue_id = p_cue_id order by e.id desc limit 1000) n
   where cue.is_success((n.e).status, (n.e).outcome_success) and (n.e).ended_at <= p_now limit 1;
end $$;
comment on function cue.previous_success is 'Returns the latest success among a cue''s newest 1,000 executions.';

create or replace function cue.run_values(e cue.executions) returns jsonb
language sql stable as $$
  select jsonb_build_object(
    'execution_id', e.id, 'scheduled_for', cue.iso(e.scheduled_for), 'success_at', cue.iso(e.ended_at), 'outcome', jsonb_build_object(
      'result', e.result, 'external_id', e.external_id, 'result_url', e.result_url, 'summary', e.summary, 'metadata', e.metadata))
$$;
comment on function cue.run_values is 'Returns what names of another run stand for.';

-- PostgreSQL may not know a time zone that the service knows.
create or replace function cue.local_date(p_at timestamptz, p_timezone text) returns text
language plpgsql stable security definer as $$
begin
  return to_char(p_at at time zone p_timezone, 'YYYY-MM-DD');
exception when invalid_parameter_value then
  return null;
end $$;
comment on function cue.local_date is 'Returns the date of an instant in a time zone.';

-- The smallest values come first, so that one that is too large takes no room from others.
create or replace function cue.template_values(
  c cue.cues, e cue.executions, p_now timestamptz default now()
) returns table (template_values jsonb, is_truncated boolean)
language plpgsql stable security definer as $$
declare
  v_names text[] := cue.names_in(array[
    coalesce(c.payload, (select p.body from cue.stored_payloads p where p.id = coalesce(c.payload_id, c.payload_ref) and p.cue_id = c.id limit 1)),
    c.callback_url, c.callback_headers::text, c.approval ->> 'message']);
  v_known jsonb := jsonb_build_object(
    'execution_id', e.id, 'scheduled_for', cue.iso(e.scheduled_for), 'due_at', cue.iso(coalesce(e.due_at, e.scheduled_for)),
    'triggered_by', e.triggered_by, 'cue', jsonb_build_object('id', c.id, 'key', c.key, 'name', c.name));
begin
  if 'scheduled_date' = any (v_names) then
    v_known := v_known || jsonb_build_object('scheduled_date', cue.local_date(e.scheduled_for, c.timezone));
  end if;
  if exists (select from unnest(v_names) as u (name) where u.name like 'previous.%') then
    v_known := v_known || jsonb_build_object('previous', (select cue.run_values(p) from cue.previous_success(c.id, p_now) p));
  end if;
  return query
  select coalesce(jsonb_object_agg(s.name, s.value) filter (where s.total <= cue.template_bytes()), '{}'),
         coalesce(bool_or(s.total > cue.template_bytes()), false)
    from (
      select n.name, n.value, sum(octet_length(n.name) + octet_length(n.value::text)) over (order by octet_length(n.value::text), n.name) as total
        from (
          select u.name, v_known #> string_to_array(u.name, '.') as value from unnest(v_names) as u (name) where u.name ~ cue.template_names()
          union all
          select u.name, cue.parent_value(u.name, e.parents) from unnest(v_names) as u (name) where u.name like 'parents.%') n
       where n.value <> 'null') s;
end $$;
comment on function cue.template_values is 'Returns the values of the names that a cue''s texts have, up to 16 KB, and whether others were left out.';

create or replace function cue.parent_value(p_name text, p_parents jsonb) returns jsonb
language plpgsql stable security definer as $$
declare
  v_parent record;
begin
  select k.key, p.execution_id into v_parent
    from jsonb_to_recordset(p_parents) as p (cue_id text, cue_key text, execution_id uuid) cross join lateral (values (p.cue_key), (p.cue_id)) k (key)
   where starts_with(p_name, 'parents.' || k.key || '.') and substr(p_name, length('parents.' || k.key || '.') + 1) ~ cue.parent_names()
   order by length(k.key) desc limit 1;
  if not found then return null; end if;
  return (
    select cue.run_values(e) #> string_to_array(substr(p_name, length('parents.' || v_parent.key || '.') + 1), '.')
      from cue.executions e where e.id = v_parent.execution_id);
end $$;
comment on function cue.parent_value is 'Returns the value of a name of the parent with the longest key that fits.';

-- A replay has the values of the original, so that it sends the same. The caller has just added the execution, with the payload of c, or has found the
-- parents that it waited for.
create or replace function cue.fix_values(c cue.cues, p_execution_id uuid, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  e cue.executions;
  v_values jsonb;
  v_truncated boolean;
begin
  select * into e from cue.executions where id = p_execution_id;
  if e.replayed_from is not null then
    select f.template_values, o.template_truncated into v_values, v_truncated
      from cue.fixed_requests f join cue.executions o on o.id = f.execution_id where f.execution_id = e.replayed_from;
  else
    select * into v_values, v_truncated from cue.template_values(c, e, p_now);
  end if;
  insert into cue.fixed_requests (execution_id, account_id, template_values) values (e.id, e.account_id, v_values)
  on conflict (execution_id) do update set template_values = excluded.template_values;
  if v_truncated then update cue.executions set template_truncated = true where id = e.id; end if;
end $$;
comment on function cue.fix_values is 'Stores the values of a template with an execution.';

-- For tests and previews, which store nothing. c may have no id.
create or replace function cue.example_values(
  c cue.cues, p_execution_id uuid, p_scheduled_for timestamptz, p_triggered_by cue.trigger_kind, p_now timestamptz default now()
) returns text
language plpgsql stable security definer as $$
declare
  e cue.executions;
begin
  e.id := p_execution_id;
  e.scheduled_for := p_scheduled_for;
  e.triggered_by := p_triggered_by;
  return (select v.template_values::text from cue.template_values(c, e, p_now) v);
end $$;
comment on function cue.example_values is 'Returns the values that an execution of a cue would have now, as text.';

-- p_cue: an object of columns. Of an existing cue, the previous run is known.
create or replace function cue.preview_values(
  p_account_id uuid, p_cue jsonb, p_scheduled_for timestamptz, p_cue_id text default null, p_now timestamptz default now()
) returns text
language plpgsql stable security definer as $$
declare
  c cue.cues := jsonb_populate_record(null::cue.cues, p_cue);
begin
  c.id := coalesce((select q.id from cue.cues q where q.id = p_cue_id and q.account_id = p_account_id), 'cue_0000000000AA');
  return cue.example_values(c, cue.uuid_v7(p_now), p_scheduled_for, 'schedule', p_now);
end $$;
comment on function cue.preview_values is 'Returns the values that the next run of a cue would have, as text.';
