-- no-transaction
-- 0036_failing_cues.sql: finds what a success resets, together with failed deliveries. Reads cues and cue_runs, some seconds for a million rows,
-- while everybody goes on writing them. cue_runs_failing goes with the next release.
create index concurrently cue_runs_failed on cue.cue_runs (cue_id) where failed_deliveries > 0 or failed_runs > 0;
alter table cue.cues validate constraint cues_pause_after_check;
