-- 0051_missed_overlaps.sql: why a slot did not run. Alone in this file: new labels are usable only after commit.
alter type cue.missed_reason add value 'overlap';
alter type cue.missed_reason add value 'queue_full';
