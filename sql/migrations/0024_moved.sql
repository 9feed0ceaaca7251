-- 0024_moved.sql: where the cell has gone if this database is not the cell any more. A new table: locks nothing.
create table cue.moved (
  to_url text not null,
  at timestamptz not null default now()
);
create unique index moved_is_one on cue.moved ((true));
