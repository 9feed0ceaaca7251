-- 0058_backfilled_slots.sql: slots that ran later, each once. Locks cues for milliseconds.
create table cue.backfilled_slots (
  cue_id text not null references cue.cues (id) on delete cascade,
  slot timestamptz not null,
  execution_id uuid not null,
  primary key (cue_id, slot)
);
create index backfilled_slots_execution on cue.backfilled_slots (execution_id);
