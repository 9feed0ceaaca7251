-- Requests of executions that no longer follow their cues. Rows are written with their executions, or before their first attempt, and then
-- never change.

create or replace function cue.fix_callback(c cue.cues, p_execution_id uuid) returns void
language plpgsql security definer as $$
begin
  insert into cue.fixed_requests as f (execution_id, account_id, callback_url, callback_method, callback_headers)
  values (p_execution_id, c.account_id, c.callback_url, c.callback_method, c.callback_headers)
  on conflict (execution_id) do update
     set callback_url = excluded.callback_url, callback_method = excluded.callback_method, callback_headers = excluded.callback_headers;
  update cue.executions set is_fixed = true where id = p_execution_id and is_fixed is null;
end $$;
comment on function cue.fix_callback is 'Has an execution sent to the callback that its webhook cue has now; the caller has locked both.';
