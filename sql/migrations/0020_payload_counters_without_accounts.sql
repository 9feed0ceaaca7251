-- 0020_payload_counters_without_accounts.sql: counting payload bytes takes no lock of the account's row, as with usage_counters since 0012, so
-- that nobody who holds that row keeps the engine from firing the cues of others. erase_account removes the counters. Locks payload_counters and
-- accounts for milliseconds.
alter table cue.payload_counters drop constraint payload_counters_account_id_fkey;
