-- 0144_cue_events.sql: the audit log has the changes of cues, and holds. Nothing else in this file: new labels are usable only after commit.
alter type cue.audit_event add value 'cue.created';
alter type cue.audit_event add value 'cue.updated';
alter type cue.audit_event add value 'cue.paused';
alter type cue.audit_event add value 'cue.resumed';
alter type cue.audit_event add value 'cue.deleted';
alter type cue.audit_event add value 'cues.applied';
alter type cue.audit_event add value 'operation.created';
alter type cue.audit_event add value 'account.held';
alter type cue.audit_event add value 'account.released';
