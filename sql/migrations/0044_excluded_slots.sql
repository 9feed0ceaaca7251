-- 0044_excluded_slots.sql: records slots that did not run because they are excluded. Alone in this file: a new label is usable only after commit.
alter type cue.missed_reason add value 'excluded';
