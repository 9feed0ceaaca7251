-- no-transaction
-- 0018_indexes.sql: what sweeps read, and no more than that. Nobody waits: each table is read twice while everybody goes on writing it, some
-- seconds for a million rows.

-- Cues whose payload store_payloads moves.
create index concurrently cues_large_payload on cue.cues (id) where octet_length(payload) > 2048;
-- What fold_usage sums up; and the months that prune removes, which are folded by then.
create index concurrently usage_counters_unfolded on cue.usage_counters (account_id) where slot <> 0;
create index concurrently usage_counters_month on cue.usage_counters (month) where slot = 0;
create index concurrently missed_slots_recorded_at on cue.missed_slots (recorded_at);
-- With deleted cues, too: to delete an account all cues were read, since the foreign key asks for any cue of it.
create index concurrently cues_of_account on cue.cues (account_id, created_at desc, id desc);
drop index concurrently if exists cue.cues_account;
