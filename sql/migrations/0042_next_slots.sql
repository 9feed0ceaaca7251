-- 0042_next_slots.sql: slots that fire later than their nominal time, and slots that are excluded. Locks cue_runs for milliseconds. The columns
-- are null for most cues, whose rows stay as narrow as they are.
alter table cue.cue_runs
  add column next_slot timestamptz,
  add column excluded_at timestamptz,
  add column recomputed int,
  add constraint cue_runs_next_slot_check check (next_slot <= next_run) not valid;
