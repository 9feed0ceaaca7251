-- 0140_replica_names.sql: replicas have names that operators know. Quick on any size.
alter table cue.engines add column name text;
