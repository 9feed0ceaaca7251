-- no-transaction
-- 0032_pauses_end.sql: finds pauses that end. Reads cues twice, some seconds for a million rows, while everybody goes on writing them.
create index concurrently cues_paused_until on cue.cues (paused_until) where paused_until is not null and deleted_at is null;
alter table cue.cues validate constraint cues_pause_reason_check;
alter table cue.cues validate constraint cues_paused;
