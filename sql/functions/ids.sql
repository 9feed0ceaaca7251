-- Identifiers. Plain SQL, so that they work on PostgreSQL 15, and without settings, so that the planner can inline them.

-- Its body is the number in cue.cell, so that it is inlined and creating an id reads no table.
do $$
declare
  v_cell int := (select id from cue.cell);
begin
  if v_cell is null then raise 'cue.cell is empty: insert the number of this database'; end if;
  execute format('create or replace function cue.cell_id() returns int language sql stable parallel safe as $f$ select %s $f$', v_cell);
end $$;
comment on function cue.cell_id is 'Returns the number of this cell, as in cue.cell.';

-- The first 48 bits are the milliseconds, so ids sort by time and determine the partition. The version, the cell in six bits, and 68 random
-- bits follow.
create or replace function cue.uuid_v7(p_now timestamptz default now()) returns uuid
language sql volatile parallel safe as $$
  select encode(set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid()) placing substring(
      int8send((floor(extract(epoch from p_now) * 1000)::bigint << 8) | (112 + (cue.cell_id() >> 2))) from 2) from 1 for 7),
    62, cue.cell_id() & 1), 63, (cue.cell_id() >> 1) & 1), 'hex')::uuid
$$;
comment on function cue.uuid_v7 is 'Returns a UUIDv7 for an instant, which encodes the cell.';

-- Random bytes from the operating system cost more than all else of an id, so they are drawn once: the last 48 bits count up from there in random
-- steps, below 2^28 each. With a digit in front, so that to_hex writes all twelve. In PL/pgSQL, which keeps its plan.
create or replace function cue.uuids_v7(p_count int, p_now timestamptz default now()) returns uuid[]
language plpgsql volatile parallel safe as $$
declare
  v_id text := cue.uuid_v7(p_now);
  v_head text := left(v_id, 24);
  v_tail bigint := ('x10' || substr(v_id, 25, 11))::bit(52)::bigint;
begin
  return array(
    select (v_head || substr(to_hex(v_tail + (n::bigint << 28) + floor(random() * (1 << 28))::bigint), 2))::uuid
      from generate_series(1, p_count) as n);
end $$;
comment on function cue.uuids_v7 is 'Returns up to 2^19 ids of one instant in ascending order.';

create or replace function cue.cell_of(p_id uuid) returns int
language sql immutable parallel safe as $$ select ((get_byte(uuid_send(p_id), 6) & 15) << 2) | (get_byte(uuid_send(p_id), 7) >> 6) $$;
comment on function cue.cell_of is 'Returns the cell that an id encodes.';

create or replace function cue.uuid_v7_floor(p_at timestamptz) returns uuid
language sql immutable parallel safe as $$
  select (lpad(to_hex(floor(extract(epoch from p_at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
$$;
comment on function cue.uuid_v7_floor is 'Returns the smallest UUIDv7 of a millisecond: a bound of partitions and periods.';

create or replace function cue.new_cue_id() returns text
language sql volatile parallel safe as $$
  select 'cue_' || left(translate(encode(uuid_send(gen_random_uuid()), 'base64'), '+/=', ''), 12)
$$;
comment on function cue.new_cue_id is 'Returns a cue id: cue_ and twelve random characters of 0-9A-Za-z.';

create or replace function cue.usage_month(p_now timestamptz) returns date
language sql immutable parallel safe as $$ select date_trunc('month', p_now at time zone 'utc')::date $$;
comment on function cue.usage_month is 'Returns the UTC month that usage at an instant counts towards.';

-- Not immutable, since to_char is not: the planner would not inline it.
create or replace function cue.iso(p_at timestamptz) returns text
language sql stable parallel safe as $$ select to_char(p_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;
comment on function cue.iso is 'Formats an instant as the API does: ISO 8601 in UTC with milliseconds.';
