-- no-transaction
-- 0038_schedules_checked.sql: reads cues twice, some seconds for a million rows, while everybody goes on writing them.
alter table cue.cues validate constraint cues_one_schedule;
alter table cue.cues validate constraint cues_schedule_rules_check;
