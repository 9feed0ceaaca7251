-- 0017_known_secrets.sql: by what a replica's secrets are recognised, so that one with others is refused. A new table: locks nothing.
create table cue.known_secrets (
  name text not null,
  value text not null,
  known_at timestamptz not null default now(),
  primary key (name, value)
);
