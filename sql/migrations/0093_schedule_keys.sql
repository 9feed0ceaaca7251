-- 0093_schedule_keys.sql: due cues with one schedule are found without reading each of them. Locks cue_runs for milliseconds and reads no row:
-- cues that exist get their key when they next fire.
alter table cue.cue_runs add column schedule_key uuid;
