-- no-transaction
-- 0050_tracked_cues.sql: marks tracked cues where slots are taken and results are written. The first statement locks cue_runs for milliseconds;
-- then cue_runs is read twice, some seconds for a million rows, while everybody goes on writing it. cue_runs_failed goes with the next release.
alter table cue.cue_runs add column if not exists tracked boolean not null default false;
create index concurrently cue_runs_noted on cue.cue_runs (cue_id) where failed_deliveries > 0 or failed_runs > 0 or tracked;
drop index concurrently if exists cue.cue_runs_failing;
