-- 0035_failed_runs.sql: counts failed runs in a row. Locks cue_runs for milliseconds: the default is constant, so no row is written.
alter table cue.cue_runs add column failed_runs int not null default 0;
