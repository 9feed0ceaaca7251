-- Finding work for workers. Every lookup follows an index and stops early, so a backlog costs nothing. Plans are generic, because planning
-- over all partitions takes longer than a claim.

-- A recursive query jumps from one task to the next: select distinct would read the whole backlog.
create or replace function cue.claimable_tasks(p_account_id uuid, p_now timestamptz default now()) returns text[]
language plpgsql stable security definer as $$
declare
  v_tasks text[];
begin
  with recursive tasks as (
    (select coalesce(e.task, '') as task, 1 as n from cue.executions e
      where e.account_id = p_account_id and e.claimable_at is not null order by coalesce(e.task, '') limit 1)
    union all
    select f.task, t.n + 1 from tasks t cross join lateral (
      select coalesce(e.task, '') as task from cue.executions e
       where e.account_id = p_account_id and e.claimable_at is not null and coalesce(e.task, '') > t.task
       order by coalesce(e.task, '') limit 1) f
     where t.n < 100)
  select array_agg(t.task) into v_tasks from tasks t
   where (select true from cue.claimable_executions e -- as a join it might read all
           where e.account_id = p_account_id and e.task = t.task and e.claimable_at <= p_now limit 1);
  return coalesce(v_tasks, '{}');
end $$;
comment on function cue.claimable_tasks is 'Returns up to 100 tasks that have claimable executions; '''' stands for no task.';

-- Every statement that looks for work reads the view claimable_executions, which defines the order. A lock and a task each need their own
-- plan: hence four statements.
create or replace function cue.find_claimable(
  p_account_id uuid, p_task text, p_limit int, p_lock boolean default false, p_except uuid[] default '{}', p_now timestamptz default now()
) returns uuid[]
language plpgsql security definer as $$
begin
  if p_lock and p_task is null then
    return array(
      select e.id from cue.claimable_executions e
       where e.account_id = p_account_id and e.claimable_at <= p_now and e.id <> all (p_except)
       limit p_limit for update skip locked);
  elsif p_lock then
    return array(
      select e.id from cue.claimable_executions e
       where e.account_id = p_account_id and e.task = p_task and e.claimable_at <= p_now and e.id <> all (p_except)
       limit p_limit for update skip locked);
  elsif p_task is null then
    return array(
      select e.id from cue.claimable_executions e
       where e.account_id = p_account_id and e.claimable_at <= p_now and e.id <> all (p_except) limit p_limit);
  else
    return array(
      select e.id from cue.claimable_executions e
       where e.account_id = p_account_id and e.task = p_task and e.claimable_at <= p_now and e.id <> all (p_except)
       limit p_limit);
  end if;
end $$;
comment on function cue.find_claimable is 'Returns the next claimable executions of one task, or of all; locks them if asked.';

-- If there is more than one page, half of it is shared among the tasks, so that a backlog of one task doesn't hide others. A page holds at
-- most p_bytes, but at least one execution; it is then filled task by task.
create or replace function cue.claimable_page(
  p_account_id uuid, p_task text default null, p_limit int default 50, p_bytes int default cue.page_bytes(), p_now timestamptz default now()
) returns table (
  id uuid, execution_id uuid, cue_id text, cue_name text, task text, scheduled_for timestamptz, attempt int, payload text, template_values text, has_more boolean
)
language plpgsql stable security definer as $$
declare
  v_ids uuid[] := cue.find_claimable(p_account_id, p_task, p_limit + 1, p_now => p_now);
  v_more boolean := cardinality(v_ids) > p_limit;
  v_tasks text[];
begin
  v_ids := v_ids[:p_limit];
  if p_task is null and v_more then
    v_tasks := cue.claimable_tasks(p_account_id, p_now);
    v_ids := array(
      select s.id from (
        select u.id, case when 2 * u.place <= p_limit + 1 then 0 else p_limit + u.place end as rank
          from unnest(v_ids) with ordinality as u (id, place)
        union all
        select u.id, u.place
          from unnest(v_tasks) as t (task)
         cross join lateral unnest(cue.find_claimable(p_account_id, t.task, 1 + p_limit / (2 * cardinality(v_tasks)), p_now => p_now))
               with ordinality as u (id, place)) s
       group by s.id order by min(s.rank), s.id limit p_limit);
  end if;
  return query
  select f.id, f.id, f.cue_id, f.cue_name, f.task, f.scheduled_for, f.attempts + 1, f.payload, f.template_values, v_more or f.found > count(*) over () from (
    select c.*, count(*) over () as found, row_number() over w as nth, sum(octet_length(c.payload) + 2048 + c.more) over w as bytes from (
      select o.*, row_number() over (partition by o.task order by o.place) as turn from (
        select e.id, e.cue_id, q.name as cue_name, e.task, e.scheduled_for, e.attempts,
               coalesce(e.payload, (select p.body from cue.stored_payloads p where p.id = e.payload_id and p.cue_id = e.cue_id limit 1)) as payload,
               case when e.is_fixed then (select r.template_values::text from cue.fixed_requests r where r.execution_id = e.id) end as template_values,
               case when e.is_fixed then cue.rendered_bytes(e.id) else 0 end as more,
               row_number() over (order by t.turn, e.id) as place
          from unnest(v_ids) as u (id)
         cross join lateral (select * from cue.executions x where x.id = u.id limit 1) e
         cross join lateral (select c.turn from cue.claimable_executions c where c.id = u.id limit 1) t
         cross join lateral (select c.name from cue.cues c where c.id = e.cue_id limit 1) q) o) c
    window w as (order by c.turn, c.place)) f
   where f.nth = 1 or f.bytes <= p_bytes
   order by f.place;
end $$;
comment on function cue.claimable_page is 'Returns a page of claimable executions, oldest first.';

create or replace function cue.next_claimable(p_account_id uuid, p_now timestamptz default now()) returns timestamptz
language plpgsql stable security definer as $$
begin
  return (
    select e.claimable_at from cue.executions e
     where e.account_id = p_account_id and e.claimable_at > p_now and e.claimable_at < 'infinity'
     order by e.claimable_at limit 1);
end $$;
comment on function cue.next_claimable is 'Returns when the next deferred execution of an account becomes claimable.';
