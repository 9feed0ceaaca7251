-- no-transaction
-- 0105_instants_in_milliseconds.sql: what engines read, and send back to be compared, is whole milliseconds, not only next_run. excluded_at had
-- microseconds, so excluded slots were never recorded. The first statement locks cue_runs for milliseconds; the rows are then read, a second for a
-- million, while everybody goes on reading and writing them.
alter table cue.cue_runs
  drop constraint if exists instants_in_milliseconds,
  add constraint instants_in_milliseconds check (
    next_run = next_run::timestamptz(3) and next_slot = next_slot::timestamptz(3) and success_due_at = success_due_at::timestamptz(3)
      and excluded_at = excluded_at::timestamptz(3)) not valid;
update cue.cue_runs
   set next_slot = date_trunc('milliseconds', next_slot), success_due_at = date_trunc('milliseconds', success_due_at),
       excluded_at = date_trunc('milliseconds', excluded_at) + interval '1 millisecond'
 where next_slot <> next_slot::timestamptz(3) or success_due_at <> success_due_at::timestamptz(3) or excluded_at <> excluded_at::timestamptz(3);
alter table cue.cue_runs validate constraint instants_in_milliseconds;
alter table cue.cue_runs drop constraint if exists next_run_in_milliseconds;
