-- 0037_schedule_rules.sql: what few schedules have besides cron and zone, and why a cue has completed. Locks cues for milliseconds. A completed
-- cue without a reason is a one-time cue.
create type cue.completion as enum ('ended', 'max_runs', 'once');
alter table cue.cues
  add column schedule_rules jsonb,
  add column completed_reason cue.completion,
  drop constraint cues_check,
  add constraint cues_one_schedule check (
    num_nonnulls(cron, schedule_rules -> 'crons', schedule_rules -> 'every') = (schedule_type = 'recurring')::int) not valid,
  add constraint cues_schedule_rules_check check (jsonb_typeof(schedule_rules) = 'object' and schedule_rules <> '{}') not valid;
