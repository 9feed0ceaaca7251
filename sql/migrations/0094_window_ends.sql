-- no-transaction
-- 0094_window_ends.sql: a window for a success is in the index only if it ends before the cue is due again: one of several slots. So a cue that moves
-- on writes one index less. Nobody waits: cue_runs is read twice, some seconds for a million rows, while everybody goes on writing it. Until the
-- functions are loaded, a sweep of windows reads all cues.
create index concurrently cue_runs_window_ends on cue.cue_runs (success_due_at) where success_due_at < coalesce(next_run, 'infinity');
drop index concurrently if exists cue.cue_runs_success_due;
