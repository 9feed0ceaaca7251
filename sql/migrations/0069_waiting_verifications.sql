-- no-transaction
-- 0069_waiting_verifications.sql: finds the outcomes that wait for a person. Reads executions once, some minutes for ten million, a partition at a
-- time, while everybody goes on writing them. Deliveries without an outcome never touch it.
create index concurrently executions_verification on cue.executions (account_id, id) where outcome_state = 'verification_pending';
