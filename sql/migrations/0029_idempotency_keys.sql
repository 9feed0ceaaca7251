-- 0029_idempotency_keys.sql: responses to requests with an Idempotency-Key, for repetitions. Locks accounts for milliseconds.
create table cue.idempotency_keys (
  account_id uuid not null references cue.accounts (id) on delete cascade,
  route text not null,
  key text not null check (key ~ '^[\x21-\x7e]{1,255}$'),
  request_hash bytea not null,
  status int not null,
  body text not null,
  place bigint not null,
  bytes_before bigint not null,
  bytes int not null,
  created_at timestamptz not null,
  primary key (account_id, route, key)
);
create index idempotency_keys_place on cue.idempotency_keys (account_id, created_at, place);
create index idempotency_keys_created_at on cue.idempotency_keys (created_at);
