-- 0080_shared_payloads.sql: executions refer to the payload in their cue's row, instead of copying it. Locks cues for milliseconds and reads no
-- row: cues that exist get their payload_ref with their next change, and until then their executions copy the payload.
alter table cue.cues
  add column payload_ref bigint,
  add column payload_since_run bigint not null default 0;
alter table cue.cues alter column payload_ref set default nextval('cue.payload_ids');
