-- 0042_next_slots.sql: slots that fire later than their nominal time, and slots that are excluded. Locks cue_runs for milliseconds: the defaults
-- are constant, so no row is written.
alter table cue.cue_runs
  add column next_slot timestamptz,
  add column excluded_at timestamptz,
  add column recomputed int not null default 0,
  add constraint cue_runs_next_slot_check check (next_slot <= next_run) not valid;
