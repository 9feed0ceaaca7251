-- 0043_due_at.sql: when an execution was meant to start, if that differs from its slot. Locks executions and all of their partitions, for
-- milliseconds and reading no row.
alter table cue.executions add column due_at timestamptz;
