-- 0141_engine_reports.sql: engines report what keeps due work waiting, and from which length of an outage catch_up applies. Quick on any size.
alter table cue.engines add column full_accounts uuid[] not null default '{}', add column passed_over text[] not null default '{}',
  add column missed_after interval;
