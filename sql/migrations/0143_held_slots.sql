-- 0143_held_slots.sql: slots that came due during a hold. Alone in this file: a new label is usable only after commit.
alter type cue.missed_reason add value 'held';
