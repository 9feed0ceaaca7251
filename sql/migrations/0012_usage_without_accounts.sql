-- 0012_usage_without_accounts.sql: counting an account's use takes no lock of its row, so that nobody who holds that one keeps the engine
-- from firing the cues of all the others. The counters are removed with the account by erase_account. Locks counters and accounts for
-- milliseconds.
alter table cue.usage_counters drop constraint usage_counters_account_id_fkey;
