-- no-transaction
-- 0145_cue_events_are_found.sql: finds the changes of a cue. Nobody waits: the audit log is read twice, some seconds for a million entries.
create index concurrently audit_events_cue on cue.audit_events ((detail ->> 'cue_id'), seq) where detail ? 'cue_id';
