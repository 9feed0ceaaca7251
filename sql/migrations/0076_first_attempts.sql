-- 0076_first_attempts.sql: an execution whose first attempt succeeds needs no row in attempts. Locks executions and all of their partitions, for
-- milliseconds and reading no row: 0077 validates the check.
alter table cue.executions
  add column attempt_ms int,
  add constraint first_attempt check (attempt_ms is null or attempts = 1 and delivered_at is not null) not valid;
