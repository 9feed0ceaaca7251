-- no-transaction
-- after_load.sql: triggers on cue_runs, and rows that need them. Run at the end of every migration, so each statement finds out quickly if nothing
-- is left to do.

-- Locks cue_runs for milliseconds.
do $$
begin
  if exists (select from pg_trigger where tgrelid = 'cue.cue_runs'::regclass and tgname = 'success_window_opens') then return; end if;
  create trigger success_window_opens after insert on cue.cue_runs for each row
    when (new.success_due_at is not null) execute function cue.list_success_window();
  create trigger success_window_moves after update on cue.cue_runs for each row
    when (new.success_due_at is distinct from old.success_due_at) execute function cue.list_success_window();
  create trigger success_window_ends after delete on cue.cue_runs for each row
    when (old.success_due_at is not null) execute function cue.list_success_window();
end $$;

-- Windows from before the triggers. Reads cue_runs once, some seconds for a million rows, while everybody goes on writing it: what changes
-- meanwhile is listed by the triggers, too.
do $$
begin
  if to_regclass('cue.cue_runs_success_due') is null then return; end if;
  insert into cue.success_windows (due_at, cue_id) select r.success_due_at, r.cue_id from cue.cue_runs r where r.success_due_at is not null;
end $$;
drop index concurrently if exists cue.cue_runs_success_due;
