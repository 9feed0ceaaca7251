-- 0005_engines_share.sql: engines that were stopped in order count no more. Quick on any size.
alter table cue.engines add column stopped_at timestamptz check (stopped_at >= started_at);

-- It tells how many engines live, too; what a function returns can only be changed by dropping it.
drop function if exists cue.beat_engine(uuid, text, int, int, interval, timestamptz);
