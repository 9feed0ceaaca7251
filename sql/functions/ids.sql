-- Identifiers. Plain SQL, so that they work on PostgreSQL 15, and without settings, so that the planner can inline them.

-- The first 48 bits are the milliseconds, so ids sort by time and determine the partition.
create or replace function cue.uuid_v7(p_now timestamptz default now()) returns uuid
language sql volatile parallel safe as $$
  select encode(set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch from p_now) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid
$$;
comment on function cue.uuid_v7 is 'Returns a UUIDv7 for an instant.';

create or replace function cue.uuid_v7_floor(p_at timestamptz) returns uuid
language sql immutable parallel safe as $$
  select (lpad(to_hex(floor(extract(epoch from p_at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
$$;
comment on function cue.uuid_v7_floor is
  'Returns the smallest UUIDv7 of an instant''s millisecond: a bound for partitions and for "created since".';

create or replace function cue.new_cue_id() returns text
language sql volatile parallel safe as $$
  select 'cue_' || left(translate(encode(uuid_send(gen_random_uuid()), 'base64'), '+/=', ''), 12)
$$;
comment on function cue.new_cue_id is 'Returns a cue id: cue_ and twelve random characters of 0-9A-Za-z.';

create or replace function cue.usage_month(p_now timestamptz) returns date
language sql immutable parallel safe as $$ select date_trunc('month', p_now at time zone 'utc')::date $$;
comment on function cue.usage_month is 'Returns the UTC month that usage at an instant counts towards.';

create or replace function cue.iso(p_at timestamptz) returns text
language sql immutable parallel safe as $$ select to_char(p_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;
comment on function cue.iso is 'Formats an instant as the API does: ISO 8601 in UTC with milliseconds.';
