-- no-transaction
-- 0078_failed_cues_have_one_index.sql: no release in use reads this index since cue_runs_noted (0050). Nobody waits.
drop index concurrently if exists cue.cue_runs_failed;
