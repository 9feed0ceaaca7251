-- 0003_sessions_and_devices.sql: signing in, sessions, and the deletion of accounts. Quick on any size: all tables are new.

alter type cue.audit_event add value 'session.created';
alter type cue.audit_event add value 'session.refreshed';
alter type cue.audit_event add value 'session.revoked';
alter type cue.audit_event add value 'account.deletion_requested';
alter type cue.audit_event add value 'account.deletion_cancelled';
alter type cue.audit_event add value 'account.disowned';

-- It asks about a session, too, since.
drop function if exists cue.admit(bytea, uuid, text, text, boolean, timestamptz);

create type cue.device_code_status as enum ('pending', 'email_sent', 'approved', 'claimed');

create table cue.sessions (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_account on cue.sessions (account_id);
create index sessions_expires_at on cue.sessions (expires_at);

create unlogged table cue.session_tokens (
  token_hash bytea primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  expires_at timestamptz not null
);
create index session_tokens_account on cue.session_tokens (account_id);
create index session_tokens_expires_at on cue.session_tokens (expires_at);

create unlogged table cue.device_codes (
  code_hash bytea primary key,
  status cue.device_code_status not null default 'pending',
  ip text,
  email text,
  link_id uuid unique,
  code_ciphertext text,
  account_id uuid references cue.accounts on delete cascade,
  key_id uuid,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  check ((email is not null) = (status <> 'pending')),
  check (num_nulls(email, link_id, code_ciphertext) in (0, 3)),
  check ((account_id is not null) = (status in ('approved', 'claimed')))
);
create index device_codes_account on cue.device_codes (account_id) where account_id is not null;
create index device_codes_email on cue.device_codes (lower(email)) where email is not null;
create index device_codes_expires_at on cue.device_codes (expires_at);

create table cue.deletions (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  requested_at timestamptz not null,
  due_at timestamptz not null,
  cancelled_at timestamptz
);
create index deletions_account on cue.deletions (account_id);
create unique index deletions_pending on cue.deletions (account_id) where cancelled_at is null;
create index deletions_due_at on cue.deletions (due_at) where cancelled_at is null;
