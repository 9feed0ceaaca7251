-- 0067_error_groups.sql: dead letters by their error. Locks dead_letters for milliseconds. group_dead_letters fills in the existing rows.
alter table cue.dead_letters add column error_group uuid;
