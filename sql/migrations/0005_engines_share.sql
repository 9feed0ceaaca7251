-- 0005_engines_share.sql: beat_engine tells how many engines live, too; what a function returns can only be changed by dropping it.
drop function if exists cue.beat_engine(uuid, text, int, int, interval, timestamptz);
