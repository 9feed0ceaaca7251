-- 0008_memory_notices.sql: what ends a notice takes the address that was told, too. Quick on any size.
-- Another argument would make a second function beside the old one.
drop function if exists cue.end_memory_notice(uuid, int);
