-- Signals that nobody spends in time, and slots that wait for signals. Locks as in signals.sql.

-- Signals that have come in time count, however late this is.
create or replace function cue.expire_signals(p_limit int default 200, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_id text;
  c cue.cues;
  v_held uuid[] := array(select h.account_id from cue.holds h where h.until_at = 'infinity');
  v_until timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_count int := 0;
begin
  if array_position(v_held, null) > 0 then return 0; end if;
  for v_id in
    select x.cue_id from (
      (select h.cue_id from cue.held_executions h where h.expires_at <= p_now and h.account_id <> all (v_held) order by h.expires_at limit p_limit)
      union
      (select s.follower_id from cue.signals s
        where s.spent_at is null and not s.is_new and s.expires_at <= p_now and s.account_id <> all (v_held) order by s.expires_at limit p_limit)) x
     order by 1
  loop
    continue when cue.lock_free_cues(array[v_id]) = '{}';
    select * into c from cue.cues q where q.id = v_id and q.deleted_at is null;
    if not found then
      delete from cue.signals where id = any (array(select id from cue.signals where follower_id = v_id limit 1000));
      continue;
    end if;
    continue when cue.is_start_blocked(c);
    perform cue.read_signals(c, p_now);
    perform cue.miss_unsignalled(c, p_now);
    perform cue.note_expired(c, p_now);
    v_count := v_count + 1;
    exit when clock_timestamp() > v_until;
  end loop;
  return v_count;
end $$;
comment on function cue.expire_signals is 'Misses slots that have waited for signals for too long, and records signals that were not spent; returns how many cues.';

create or replace function cue.miss_unsignalled(c cue.cues, p_now timestamptz) returns void
language plpgsql security definer as $$
begin
  perform cue.miss_waiting(x.e, 'after', format('the cues that it follows did not signal within %s', c.after ->> 'wait'), p_now) from (
      select h.execution_id from cue.held_executions h
       where h.cue_id = c.id and h.held_by = 'after' and h.expires_at <= p_now order by h.place limit 100) w
     cross join lateral (select e from cue.executions e where e.id = w.execution_id limit 1 for update skip locked) x;
end $$;
comment on function cue.miss_unsignalled is 'Ends the executions of a cue that have waited for signals for too long as missed.';

create or replace function cue.note_expired(c cue.cues, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  d record;
begin
  with expired as (
    update cue.signals set spent_at = p_now where id = any (array(
      select s.id from cue.signals s
       where s.follower_id = c.id and s.spent_at is null and not s.is_new and s.expires_at <= p_now order by s.expires_at limit 1000)) returning scheduled_for)
  select min(x.scheduled_for) as first, max(x.scheduled_for) as last, count(*)::int as count into d from expired x;
  if d.count > 0 then perform cue.note_missed_slots(c, 'after', d.first, d.last, d.count, null, p_now); end if;
end $$;
comment on function cue.note_expired is 'Records the signals of a cue that were not spent in time.';

-- The caller has locked the follower and its cue_runs, and records a slot that does not run.
create or replace function cue.wait_for_signals(
  c cue.cues, p_slot timestamptz, p_last_slot timestamptz, p_now timestamptz, p_slot_due_at timestamptz
) returns boolean
language plpgsql security definer as $$
declare
  e cue.executions;
  v_id uuid;
  v_until timestamptz;
begin
  if not c.after ? 'wait' then
    if c.schedule_type = 'once' then
      e := cue.add_ended_execution(c, 'missed', p_slot, 'the cues that it follows had not signalled', p_now);
      update cue.executions set missed_reason = 'after' where id = e.id returning * into e;
      perform cue.after_end(e, c, p_now);
    else
      perform cue.note_missed_slots(c, 'after', p_slot, p_slot, 1, p_last_slot, p_now);
    end if;
    return false;
  end if;
  if (select count(*) from cue.held_executions h where h.cue_id = c.id and h.held_by = 'after') >= cue.queue_limit() then
    perform cue.note_missed_slots(c, 'queue_full', p_slot, p_slot, 1, p_last_slot, p_now);
    return false;
  end if;
  v_id := cue.queue_execution(c, 'schedule', p_slot, p_held_by => 'after', p_slot_due_at => p_slot_due_at, p_now => p_now);
  update cue.held_executions set expires_at = date_trunc('milliseconds', due_at + cue.length_of(c.after ->> 'wait')) where execution_id = v_id
  returning expires_at into v_until;
  perform cue.wake('cue_deadline', v_until);
  return true;
end $$;
comment on function cue.wait_for_signals is 'Has a slot wait for signals, or records that it does not run; returns whether it has an execution.';

-- The caller has locked the cue and its cue_runs.
create or replace function cue.end_waits(c cue.cues, p_now timestamptz) returns void
language plpgsql security definer as $$
begin
  perform cue.continue_held(c, w.h, p_now) from (
    select h from cue.held_executions h where h.cue_id = c.id and h.held_by = 'after' order by h.place for update skip locked) w;
end $$;
comment on function cue.end_waits is 'Sends the slots of a cue that wait for signals on, because it follows no cue any more.';
