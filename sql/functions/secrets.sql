-- ENCRYPTION_KEYS differs if it no longer contains a key that was once the first; SESSION_SECRET if its hash is another.
create or replace function cue.check_secrets(
  p_encryption_key_ids text[], p_session_secret text, p_changed boolean default false, p_now timestamptz default now()
) returns setof text
language plpgsql security definer as $$
declare
  v_other text[];
begin
  perform pg_advisory_xact_lock(hashtext('cue.check_secrets'));
  if p_changed then delete from cue.known_secrets; end if;
  select array_agg(distinct s.name) into v_other from cue.known_secrets s
   where case s.name when 'ENCRYPTION_KEYS' then s.value <> all (p_encryption_key_ids) else s.value <> p_session_secret end;
  if v_other is null then
    insert into cue.known_secrets (name, value, known_at)
    values ('ENCRYPTION_KEYS', p_encryption_key_ids[1], p_now), ('SESSION_SECRET', p_session_secret, p_now)
    on conflict do nothing;
  end if;
  return query select unnest(v_other);
end $$;
comment on function cue.check_secrets is 'Returns the settings whose secrets differ from those of other replicas.';
