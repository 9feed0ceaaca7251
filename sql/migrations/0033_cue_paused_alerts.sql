-- 0033_cue_paused_alerts.sql: a new type of alerts. Alone in this file: a new label is usable only after commit.
alter type cue.alert_type add value 'cue_paused';
