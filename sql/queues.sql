-- no-transaction
-- queues.sql: what pg-boss's tables need besides. Run whenever pg-boss has made or changed them.

-- The jobs of an account, of which erase_account leaves none. Jobs in the queue "attempts" name no account, and are not in it.
create index concurrently job_account on pgboss.job (group_id) where group_id is not null;
