-- no-transaction
-- 0046_excluded_slots_are_found.sql: finds cues by their calendars, and excluded slots that have passed. Reads cues and cue_runs, some seconds for a
-- million rows, while everybody goes on writing them.
create index concurrently cues_with_calendars on cue.cues (account_id, id) where schedule_rules ? 'exclude_calendars' and deleted_at is null;
create index concurrently cue_runs_excluded on cue.cue_runs (excluded_at) where excluded_at is not null;
alter table cue.cue_runs validate constraint cue_runs_next_slot_check;
