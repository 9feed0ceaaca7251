-- 0014_execution_payloads.sql: executions refer to a payload that is stored once. Locks executions and all of their partitions, for
-- milliseconds and reading no row: the new column is null, and the check is validated by 0019.
alter table cue.executions
  alter column payload drop not null,
  add column payload_id bigint,
  add constraint one_payload check ((payload is null) = (payload_id is not null)) not valid;
