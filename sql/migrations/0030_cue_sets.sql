-- no-transaction
-- 0030_cue_sets.sql: the set of declared cues that a cue belongs to. The first statement locks cues for milliseconds; after it nobody waits: cues
-- are read twice, some seconds for a million rows, while everybody goes on writing them.
alter table cue.cues
  add column if not exists managed_by text,
  drop constraint if exists cues_managed_by_check,
  add constraint cues_managed_by_check check (length(managed_by) >= 1 and length(managed_by) <= 100) not valid;
create index concurrently cues_of_set on cue.cues (account_id, managed_by) where managed_by is not null and deleted_at is null;
alter table cue.cues validate constraint cues_managed_by_check;
