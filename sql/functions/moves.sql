-- A cell that moves to another server. From the commit of leave_cell on, the other server has the cell: whoever waits here to write, of whichever
-- release, meets the trigger.

-- Ends the session, so that the replica opens another and learns where the cell is. Sessions that it may not end are refused, until the operator's
-- tool ends them.
create or replace function cue.refuse_moved() returns trigger
language plpgsql security definer as $$
begin
  begin
    perform pg_terminate_backend(pg_backend_pid());
  exception
    when insufficient_privilege then null;
  end;
  raise read_only_sql_transaction using message = 'The cell has moved to another server.';
end $$;
comment on function cue.refuse_moved is 'Refuses every change to a database that its cell has left.';

-- Called by the owner, with all tables locked.
create or replace function cue.leave_cell(p_to_url text, p_tables regclass[]) returns void
language plpgsql as $$
declare
  v_table regclass;
begin
  insert into cue.moved (to_url) values (p_to_url);
  foreach v_table in array p_tables loop
    execute format('create trigger cell_has_moved before insert or update or delete or truncate on %s for each statement '
                   'execute function cue.refuse_moved()', v_table);
  end loop;
end $$;
comment on function cue.leave_cell is 'Closes this database for good, since its cell goes on at another server.';
