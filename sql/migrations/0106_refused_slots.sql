-- 0106_refused_slots.sql: an account over its monthly limit costs one row per cue and hour. Locks cue_runs for milliseconds and reads no row of it.
alter table cue.cue_runs add column refused_from timestamptz;
