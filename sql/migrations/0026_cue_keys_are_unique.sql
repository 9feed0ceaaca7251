-- no-transaction
-- 0026_cue_keys_are_unique.sql: a key names one cue of an account; deleting the cue frees it. Nobody waits: cues are read twice, some seconds for a
-- million rows, while everybody goes on writing them.
create unique index concurrently cues_key on cue.cues (account_id, key) where key is not null and deleted_at is null;
alter table cue.cues validate constraint cues_key_check;
