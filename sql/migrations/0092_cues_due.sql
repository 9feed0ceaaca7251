-- no-transaction
-- 0092_cues_due.sql: finds due cues by instant and account only. Those that an account has at one instant share an entry, so a cue that moves on
-- costs less. Nobody waits: cue_runs is read twice, some seconds for a million rows, while everybody goes on writing it.
create index concurrently cue_runs_next on cue.cue_runs (next_run, account_id) where next_run is not null;
drop index concurrently if exists cue.cue_runs_due;
