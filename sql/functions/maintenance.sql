-- Housekeeping: partitions, retention, and what is kept for a while only. Run by pg-boss's schedules, once per cluster.

-- Makes the monthly partitions of executions and attempts, from this month to p_months ahead. No default partition: it would have to be
-- scanned whenever another is added.
create or replace function cue.maintain_partitions(p_months int default 12, p_now timestamptz default now()) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_month timestamp;
  v_parent text;
  v_made int := 0;
begin
  for v_month in
    select generate_series(date_trunc('month', p_now at time zone 'utc'),
                           date_trunc('month', p_now at time zone 'utc') + p_months * interval '1 month', interval '1 month')
  loop
    foreach v_parent in array array['executions', 'attempts'] loop
      continue when to_regclass(format('cue.%I', v_parent || to_char(v_month, '_YYYY_MM'))) is not null;
      execute format('create table cue.%I partition of cue.%I for values from (%L) to (%L)', v_parent || to_char(v_month, '_YYYY_MM'), v_parent,
        cue.partition_bound(v_month), cue.partition_bound(v_month + interval '1 month'));
      -- Each execution is updated once or more: its second version must fit beside the first for a HOT update.
      execute format('alter table cue.%I set (fillfactor = %s, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)',
        v_parent || to_char(v_month, '_YYYY_MM'), case v_parent when 'executions' then 50 else 100 end);
      v_made := v_made + 1;
    end loop;
  end loop;
  return v_made;
end $$;
comment on function cue.maintain_partitions is 'Makes monthly partitions ahead of time. Returns how many.';

create or replace function cue.partition_bound(p_month timestamp) returns uuid
language sql immutable as $$
  select (lpad(to_hex(floor(extract(epoch from p_month at time zone 'utc') * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;
comment on function cue.partition_bound is 'The id that a month''s partitions begin with.';

-- Executions that ended before p_before go a month at a time: the month is dropped when nothing in it is unfinished or younger; else up to
-- p_batch of its ended rows are deleted. Returns the partitions dropped; raises lock_not_available when readers hold one, for the caller to try again.
create or replace function cue.drop_old_executions(p_before timestamptz, p_batch int default 5000) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s' as $$
declare
  r record;
  v_open boolean;
begin
  for r in
    select c.relname, to_timestamp(right(c.relname, 7) || '+00', 'YYYY_MMTZH') as month
      from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'cue.executions'::regclass order by c.relname
  loop
    continue when r.month + interval '1 month' > p_before;
    execute format('select exists (select from cue.%I where ended_at is null)', r.relname) into v_open;
    if v_open then
      execute format('with gone as (delete from cue.%1$I where id in (select id from cue.%1$I where ended_at < %2$L limit %3$s) returning id)
                      delete from cue.attempts a using gone where a.execution_id = gone.id', r.relname, p_before, p_batch);
    else
      execute format('drop table cue.%I', r.relname);
      execute format('drop table if exists cue.%I', replace(r.relname, 'executions', 'attempts'));
      return next r.relname;
    end if;
  end loop;
end $$;
comment on function cue.drop_old_executions is 'Drops the months that lie wholly before an instant.';

-- Deletes a batch of a deleted cue's history, and with the last one the cue itself. Returns how many executions went; 0: it is done.
create or replace function cue.purge_cue(p_cue_id text, p_batch int default 1000) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_ids uuid[];
begin
  if not exists (select from cue.cues where id = p_cue_id and deleted_at is not null) then return 0; end if;
  select array_agg(id) into v_ids from (
    select id from cue.executions where cue_id = p_cue_id order by id desc limit p_batch for update skip locked) e;
  if v_ids is null then
    delete from cue.cues q where q.id = p_cue_id and not exists (select from cue.executions e where e.cue_id = p_cue_id);
    return 0;
  end if;
  delete from cue.attempts where execution_id = any (v_ids);
  delete from cue.executions where id = any (v_ids);
  perform cue.drop_attempt_jobs(v_ids);
  return cardinality(v_ids);
end $$;
comment on function cue.purge_cue is 'Deletes a batch of a deleted cue''s history.';

-- Cues whose deletion lost its job get one again.
create or replace function cue.requeue_purges(p_now timestamptz default now()) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_count int;
begin
  perform cue.add_job('purges', jsonb_build_object('cue_id', id), p_singleton_key => id)
     from cue.cues where deleted_at < p_now - interval '5 minutes';
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function cue.requeue_purges is 'Lets deletions that stopped midway go on.';

-- Removes what is kept for a while only: fires after a day, echoes and rate windows when they expire, outages and drops after 90 days.
create or replace function cue.prune(p_now timestamptz default now()) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from cue.fires where fired_at < p_now - interval '24 hours';
  delete from cue.echoes where expires_at < p_now;
  delete from cue.rate_windows where expires_at < p_now;
  delete from cue.outages where until_at < p_now - interval '90 days';
  delete from cue.missed_slots where recorded_at < p_now - interval '90 days';
  delete from cue.usage_counters where month < cue.usage_month(p_now - interval '400 days');
  perform cue.forget_engines(p_now);
end $$;
comment on function cue.prune is 'Removes what is kept for a while only.';
