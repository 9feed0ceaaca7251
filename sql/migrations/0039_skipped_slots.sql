-- 0039_skipped_slots.sql: counts slots that are recorded as executions although they did not run. Locks cue_runs for milliseconds.
alter table cue.cue_runs add column skipped_count int;
