-- 0057_backfill.sql: what created an execution. Alone in this file: a new label is usable only after commit.
alter type cue.trigger_kind add value 'backfill';
