-- 0010_payload_counters.sql: payload bytes per day, counted like executions. Locks accounts for milliseconds, for the foreign key.
create table cue.payload_counters (
  account_id uuid not null references cue.accounts on delete cascade,
  day date not null,
  slot int not null,
  bytes bigint not null,
  primary key (account_id, day, slot)
) with (fillfactor = 50);
create index payload_counters_day on cue.payload_counters (day);
