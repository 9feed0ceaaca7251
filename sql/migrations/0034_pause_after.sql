-- 0034_pause_after.sql: how many failed runs in a row pause a cue. Locks cues for milliseconds.
alter table cue.cues
  add column on_failure_pause_after int,
  add constraint cues_pause_after_check check (on_failure_pause_after between 1 and 1000) not valid;
