-- 0021_ended_executions.sql: executions that ended, counted by status for /metrics. Sequences, because counting then locks no row and leaves
-- none behind. Locks no table.
create sequence cue.ended_success;
create sequence cue.ended_failed;
create sequence cue.ended_missed;
create sequence cue.ended_outcome_timeout;
