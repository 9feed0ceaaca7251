-- no-transaction
-- 0091_cheaper_check.sql: the check that a slot is an instant in milliseconds took an instant apart whenever a cue moved on, a fortieth of what
-- a delivery costs the database. Now it rounds. Replacing it locks cue_runs for milliseconds; the rows are then read, a second for a million,
-- while everybody goes on reading and writing them.
alter table cue.cue_runs
  drop constraint if exists next_run_in_milliseconds,
  add constraint next_run_in_milliseconds check (next_run = next_run::timestamptz(3)) not valid;
alter table cue.cue_runs validate constraint next_run_in_milliseconds;
