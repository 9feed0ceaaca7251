-- 0025_cue_keys.sql: the user's own key of a cue. Locks cues for milliseconds.
alter table cue.cues
  add column key text,
  add constraint cues_key_check check (key ~ '^[A-Za-z0-9._:/-]{1,255}$') not valid;
