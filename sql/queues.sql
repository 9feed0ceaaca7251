-- no-transaction
-- queues.sql: our index on pg-boss's table of jobs. Run whenever pg-boss has created or changed its tables.

-- For erase_account, which removes all jobs of an account. Jobs in the queue "attempts" have no account and are not indexed.
create index concurrently job_account on pgboss.job (group_id) where group_id is not null;
