-- 0031_pauses.sql: who paused a cue, why and until when. Locks cues for milliseconds. Cues that are paused already have null in all of them.
create type cue.pause_cause as enum ('user', 'plan', 'failures', 'deletion');
alter table cue.cues
  add column paused_at timestamptz,
  add column paused_by cue.pause_cause,
  add column pause_reason text,
  add column paused_until timestamptz,
  add constraint cues_pause_reason_check check (length(pause_reason) between 0 and 500) not valid,
  add constraint cues_paused check (status = 'paused' or num_nonnulls(paused_at, paused_by, pause_reason, paused_until) = 0) not valid;
