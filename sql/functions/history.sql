-- What became of a cue's slots, by day. However many there are, it reads at most 5,000 executions and 2,000 rows of missed slots.

-- p_bounds: the beginnings of days in ascending order, and the end of the last one. An execution belongs to the day of its slot; executions are
-- found by their ids, which contain the time of creation.
create or replace function cue.read_history(p_account_id uuid, p_cue_id text, p_bounds timestamptz[])
returns table (complete_from timestamptz, days jsonb, gaps jsonb)
language plpgsql stable security definer as $$
declare
  v_from timestamptz := p_bounds[1];
  v_until timestamptz := p_bounds[cardinality(p_bounds)];
begin
  perform cue.refuse_if(not exists (select from cue.cues where id = p_cue_id and account_id = p_account_id and deleted_at is null), 'QU001',
    format('cue %s not found', p_cue_id));
  return query
  with newest as materialized (
    select e.created_at, e.scheduled_for, e.status = 'missed' as was_missed, e.ended_at is null as is_open,
           e.status in ('failed', 'outcome_timeout') or e.outcome_success is false as has_failed
      from cue.executions e
     where e.cue_id = p_cue_id and e.id >= cue.uuid_v7_floor(v_from) and e.id < cue.uuid_v7_floor(v_until + interval '1 day')
     order by e.id desc limit 5000)
  select (select case when count(*) = 5000 then min(n.created_at) end from newest n),
         (select coalesce(jsonb_agg(to_jsonb(d) order by d.day), '[]')
            from (select width_bucket(n.scheduled_for, p_bounds) - 1 as day, count(*) filter (where not (n.is_open or n.was_missed or n.has_failed)) as succeeded,
                         count(*) filter (where n.has_failed) as failed, count(*) filter (where n.was_missed) as missed,
                         count(*) filter (where n.is_open and not n.has_failed) as running
                    from newest n where n.scheduled_for >= v_from and n.scheduled_for < v_until group by 1) d),
         (select coalesce(jsonb_agg(jsonb_build_object('first', cue.iso(g.first), 'last', cue.iso(g.last), 'count', g.count, 'reason', g.reason)
                          order by g.id desc), '[]')
            from (select m.* from (select * from cue.missed_slots s where s.cue_id = p_cue_id order by s.id desc limit 2000) m
                   where m.last >= v_from and m.first < v_until order by m.id desc limit 200) g);
end $$;
comment on function cue.read_history is 'Returns a cue''s executions by day and its latest 200 gaps; QU001 if not found.';
