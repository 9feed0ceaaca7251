-- Costs that handlers report with their outcomes: exact sums by execution, cue, tag and day.

-- The caller has locked the execution. Of evidence (attempt 0), p_costs replaces what earlier evidence stated; of a report, nothing was stated before.
create or replace function cue.add_costs(e cue.executions, p_attempt int, p_costs jsonb, p_now timestamptz default now()) returns boolean
language plpgsql security definer as $$
declare
  v_before jsonb;
  v_after jsonb;
  v_reported jsonb;
begin
  if p_costs is null then return false; end if;
  select coalesce(jsonb_object_agg(c.unit, c.amount), '{}'), jsonb_object_agg(c.unit, c.reported_at) into v_before, v_reported
    from cue.costs c where c.execution_id = e.id and c.attempt = p_attempt;
  delete from cue.costs c
   where c.execution_id = e.id and c.attempt = p_attempt and c.unit not in (select g ->> 'unit' from jsonb_array_elements(p_costs) g);
  insert into cue.costs as c (execution_id, attempt, unit, amount, account_id, cue_id, reported_at)
  select e.id, p_attempt, g ->> 'unit', sum((g ->> 'amount')::numeric), e.account_id, e.cue_id, p_now
    from jsonb_array_elements(p_costs) g group by g ->> 'unit' order by 3
  on conflict (execution_id, attempt, unit) do update set amount = excluded.amount;
  select coalesce(jsonb_object_agg(c.unit, c.amount), '{}') into v_after from cue.costs c where c.execution_id = e.id and c.attempt = p_attempt;
  if v_after is distinct from v_before then perform cue.add_spending(e, v_before, v_after, v_reported, p_now); end if;
  return v_after is distinct from v_before;
end $$;
comment on function cue.add_costs is 'Records the costs that an attempt of an execution, or its evidence, states; returns whether anything changed.';

-- Days are those of UTC. The costs of a cue with several tags count for each of them.
create or replace function cue.read_costs(p_account_id uuid, p_by text, p_from timestamptz, p_to timestamptz, p_limit int default 1000)
returns table (name text, unit text, amount text)
language plpgsql stable security definer as $$
begin
  return query
  with spent as (
    select c.cue_id, c.unit, case p_by when 'day' then (c.reported_at at time zone 'utc')::date end as day, sum(c.amount) as amount
      from cue.costs c where c.account_id = p_account_id and c.reported_at >= p_from and c.reported_at < p_to
     group by 1, 2, 3),
  named as (
    select case p_by when 'day' then s.day::text when 'cue' then s.cue_id else t.tag end as name, s.unit, sum(s.amount) as total
      from spent s
      left join lateral (select unnest(q.tags) as tag from cue.cues q where q.id = s.cue_id and p_by = 'tag') t on true
     where p_by <> 'tag' or t.tag is not null
     group by 1, 2)
  select n.name, n.unit, trim_scale(n.total)::text from named n
   order by case p_by when 'day' then n.name end, n.total desc, n.name, n.unit limit p_limit;
end $$;
comment on function cue.read_costs is 'Returns what an account spent in a period, by cue, tag or day and by unit: days in order, otherwise the most first.';
