-- no-transaction
-- 0028_cue_tags_are_few.sql: reads cues once, some seconds for a million rows, while everybody goes on writing them.
alter table cue.cues validate constraint cues_tags_check;
