-- 0015_result_refs.sql: a report takes a reference to its result, too. Quick on any size.
-- Another argument would make a second function beside the old one.
drop function if exists cue.report_outcome(uuid, uuid, boolean, text, text, jsonb, text, text, text, text, jsonb, uuid, timestamptz);
