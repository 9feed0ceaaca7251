-- no-transaction
-- 0090_cues_used.sql: counts an account's cues from an index alone, whose predicate is what counts against the plan. Nobody waits: cues are
-- read twice, some seconds for a million rows, while everybody goes on writing them.
create index concurrently cues_used on cue.cues (account_id, status) where deleted_at is null and status in ('active', 'paused') and not memory_check;
drop index concurrently if exists cue.cues_counted;
