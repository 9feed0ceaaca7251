-- Refusals: exceptions of class QU, which the API turns into responses. They are results, not errors, so PostgreSQL's log doesn't show them.

-- PostgreSQL decides whether to log when the exception is raised. The setting ends with the transaction, which the exception aborts. It is
-- reserved for superusers, so if the functions' owner may not change it, refusals are logged.
create or replace function cue.refusal(p_sqlstate text) returns text
language plpgsql as $$
begin
  if has_parameter_privilege('log_min_messages', 'set') then
    perform set_config('log_min_messages', 'log', true);
  end if;
  return p_sqlstate;
end $$;
comment on function cue.refusal is 'Returns the SQLSTATE of a refusal, and keeps PostgreSQL from logging it as an error.';

create or replace function cue.refuse(p_sqlstate text, p_message text, p_detail text default null) returns void
language plpgsql as $$
begin
  if p_detail is null then raise exception using message = p_message, errcode = cue.refusal(p_sqlstate); end if;
  raise exception using message = p_message, errcode = cue.refusal(p_sqlstate), detail = p_detail;
end $$;
comment on function cue.refuse is 'Raises a refusal.';

create or replace function cue.refuse_if(p_is_refused boolean, p_sqlstate text, p_message text, p_detail text default null) returns void
language plpgsql as $$
begin
  if p_is_refused then perform cue.refuse(p_sqlstate, p_message, p_detail); end if;
end $$;
comment on function cue.refuse_if is 'Raises a refusal if this is true.';

create or replace function cue.first_names(p_names text[]) returns text
language sql immutable as $$ select array_to_string(p_names[:10], ', ') || case when cardinality(p_names) > 10 then ' and more' else '' end $$;
comment on function cue.first_names is 'Returns up to ten names as a refusal lists them.';
