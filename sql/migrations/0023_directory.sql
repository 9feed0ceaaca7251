-- 0023_directory.sql: the cell of each email address, so that an address has one account across all cells, and the cell in which a sign-in
-- continues. A new table; locks device_codes for milliseconds.
create table cue.directory (
  email_hash bytea primary key,
  cell smallint not null,
  created_at timestamptz not null
);
alter table cue.device_codes add column cell smallint;
