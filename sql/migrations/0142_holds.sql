-- 0142_holds.sql: an operator can hold the service or an account. Locks accounts for milliseconds.
create table cue.holds (
  id uuid primary key default gen_random_uuid(),
  account_id uuid references cue.accounts (id) on delete cascade,
  reason text not null check (length(reason) between 1 and 500),
  held_by text not null,
  from_at timestamptz not null,
  until_at timestamptz not null default 'infinity',
  catches_up boolean not null default true,
  check (from_at < until_at)
);
create unique index holds_active on cue.holds (account_id) nulls not distinct where until_at = 'infinity';
