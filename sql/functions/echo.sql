-- The echo buffer: the latest request posted to each token, for five minutes.

-- The second limit bounds the table's size: each echo may take a megabyte, and addresses are cheap. A null p_address means no limit.
create or replace function cue.store_echo(
  p_token text, p_payload text, p_headers jsonb, p_address text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
begin
  perform cue.require_within('echo:' || p_address, 10, '1 hour', 'Echo limit reached: 10 per hour from one address.', p_now);
  delete from cue.echoes where token = any (array(
    select token from cue.echoes where expires_at <= p_now order by expires_at limit 10 for update skip locked));
  perform cue.refuse_if(
    (select count(*) from (select from cue.echoes limit 1000) e) >= 1000 and not exists (select from cue.echoes where token = p_token), 'QU031',
    'The echo buffer is full. Try again in five minutes.', '300');
  insert into cue.echoes (token, payload, headers, received_at, expires_at)
  values (p_token, p_payload, p_headers, p_now, p_now + interval '5 minutes')
  on conflict (token) do update
     set payload = excluded.payload, headers = excluded.headers, received_at = excluded.received_at, expires_at = excluded.expires_at;
end $$;
comment on function cue.store_echo is 'Stores a request posted to an echo token for five minutes; QU031 above a limit.';

create or replace function cue.read_echo(p_token text, p_now timestamptz default now())
returns table (payload text, headers jsonb, received_at timestamptz)
language sql stable security definer as $$
  select payload, headers, received_at from cue.echoes where token = p_token and expires_at > p_now
$$;
comment on function cue.read_echo is 'Returns the latest request posted to an echo token, or no row.';
