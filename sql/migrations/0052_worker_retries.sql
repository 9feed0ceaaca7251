-- 0052_worker_retries.sql: a worker's execution may be retrying, and waits for a claim then. Locks executions and all of their partitions, for
-- milliseconds and reading no row: 0053 validates the checks.
alter table cue.executions
  drop constraint attempt_due,
  drop constraint claimable,
  add constraint attempt_due check ((attempt_due_at is not null) =
    (transport = 'webhook' and status in ('pending', 'retrying', 'retry_ready'))) not valid,
  add constraint claimable check ((claimable_at is not null) =
    (transport = 'worker' and status in ('pending', 'retrying', 'retry_ready'))) not valid;
