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
