-- no-transaction
-- 0062_cues_paused_by_service.sql: finds the cues that the service has paused. Reads cues once, some seconds for a million, while everybody goes
-- on writing them. It changes only when a cue is paused or resumed.
create index concurrently cues_paused_by_service on cue.cues (account_id, paused_at) where paused_by <> 'user' and deleted_at is null;
