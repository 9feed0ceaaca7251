-- Creates the roles, which belong to the cluster, if the migrating user may. Grant them to logins: cue_service to the service, cue_reader to
-- dashboards and people, cue_operator to people who also act.
do $$
declare
  v_role text;
begin
  foreach v_role in array array['cue_service', 'cue_reader', 'cue_operator'] loop
    if not exists (select from pg_roles where rolname = v_role) then
      begin
        execute format('create role %I nologin', v_role);
      exception
        when insufficient_privilege then
          raise notice 'role % is missing, and this user may not create it: run "create role % nologin" as a user who may, then migrate again',
            v_role, v_role;
        when duplicate_object or unique_violation then null; -- a migration of another database in the cluster was faster
      end;
    end if;
  end loop;
end $$;

revoke all on schema cue, pgboss from public;
revoke execute on all functions in schema cue, pgboss from public;

do $$
declare
  v_view record;
  v_function text;
begin
  if to_regrole('cue_service') is not null then
    grant usage on schema cue, pgboss to cue_service;
    grant select on all tables in schema cue to cue_service;
    grant execute on all functions in schema cue to cue_service;
    grant select, insert, update, delete on all tables in schema pgboss to cue_service;
    grant execute on all functions in schema pgboss to cue_service;
  end if;
  if to_regrole('cue_reader') is not null then
    grant usage on schema cue to cue_reader;
    for v_view in select oid::regclass as name from pg_class where relnamespace = 'cue'::regnamespace and relkind = 'v' loop
      execute format('grant select on %s to cue_reader', v_view.name);
    end loop;
    -- Functions that views call run with the reader's rights.
    grant execute on function cue.iso, cue.mask, cue.uuid_v7_floor, cue.usage_month, cue.executions_used, cue.latest_executions, cue.latest_missed,
      cue.waiting_work, cue.mask_target, cue.describe_held, cue.latest_signals, cue.show_parents to cue_reader;
  end if;
  if to_regrole('cue_operator') is not null and to_regrole('cue_reader') is not null then
    -- Checked first: granting a role created by another user fails, even if it is granted already.
    if not pg_has_role('cue_operator', 'cue_reader', 'member') then
      begin
        grant cue_reader to cue_operator;
      exception
        -- The roles may belong to another user than the database; all other grants are up to the database's owner.
        when insufficient_privilege then
          raise notice 'cue_operator cannot read, and this user may not change that: run "grant cue_reader to cue_operator" as a user who may';
      end;
    end if;
    foreach v_function in array array['fire_cue', 'replay_execution', 'cancel_execution', 'dismiss_execution', 'acknowledge_alert', 'set_ticket_status', 'set_plan', 'set_limits',
                                      'why_late', 'floods', 'forecast', 'who_changed', 'replicas', 'destinations', 'disk_use', 'hold', 'release',
                                      'requeue_attempts', 'recover_flights', 'recover_leases', 'recover_stuck', 'expire_outcomes',
                                      'miss_unclaimed', 'repair_queues'] loop
      execute (select string_agg(format('grant execute on function %s to cue_operator', oid::regprocedure), ';')
                 from pg_proc where pronamespace = 'cue'::regnamespace and proname = v_function);
    end loop;
  end if;
exception
  when insufficient_privilege then raise notice 'grants to the cue_ roles were not made: %', sqlerrm;
end $$;
