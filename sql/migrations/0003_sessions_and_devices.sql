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
comment on type cue.device_code_status is 'How far a sign-in is. It expires at every stage.';

create table cue.sessions (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_account on cue.sessions (account_id);
create index sessions_expires_at on cue.sessions (expires_at);
comment on table cue.sessions is 'Sessions by the jti of their JWT. One is good until it expires or its row goes.';
comment on column cue.sessions.id is 'The jti.';
comment on column cue.sessions.account_id is 'Whose session it is.';
comment on column cue.sessions.created_at is 'When it was opened.';
comment on column cue.sessions.expires_at is 'A year later; a day after it was refreshed.';

create unlogged table cue.session_tokens (
  token_hash bytea primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  expires_at timestamptz not null
);
create index session_tokens_account on cue.session_tokens (account_id);
create index session_tokens_expires_at on cue.session_tokens (expires_at);
comment on table cue.session_tokens is
  'One-time tokens, by SHA-256, that a session or a key is given for. Gone when used. Unlogged: after a crash people sign in again.';
comment on column cue.session_tokens.token_hash is 'SHA-256 of the token.';
comment on column cue.session_tokens.account_id is 'Whose session or key it is given for.';
comment on column cue.session_tokens.expires_at is 'A quarter of an hour after it was made.';

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
comment on table cue.device_codes is
  'Sign-ins under way, by the SHA-256 of the code that the device made. Unlogged: after a crash people sign in again.';
comment on column cue.device_codes.code_hash is 'SHA-256 of the code.';
comment on column cue.device_codes.status is 'How far the sign-in is, unless it has expired.';
comment on column cue.device_codes.ip is 'Where the device is, for the person who is asked to let it in.';
comment on column cue.device_codes.email is 'The address that a person named.';
comment on column cue.device_codes.link_id is 'What the link in the mail proves to know: the link carries it, signed.';
comment on column cue.device_codes.code_ciphertext is 'The code, encrypted like the default key, for the mail that repeats it.';
comment on column cue.device_codes.account_id is 'The account that the device was let in to.';
comment on column cue.device_codes.key_id is 'The key of an account that this sign-in made. Whoever polls is given it, once.';
comment on column cue.device_codes.created_at is 'When the device began.';
comment on column cue.device_codes.expires_at is 'A quarter of an hour later.';

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
comment on table cue.deletions is
  'Accounts that asked to be deleted. The link in the mail carries the id, signed: a genuine one without a row was carried out.';
comment on column cue.deletions.id is 'Known to the link only.';
comment on column cue.deletions.account_id is 'The account that will go.';
comment on column cue.deletions.requested_at is 'When its owner asked.';
comment on column cue.deletions.due_at is 'A day later: the account goes then.';
comment on column cue.deletions.cancelled_at is 'Set when the account was kept after all.';
