-- 0016_addresses_and_instants.sql: an address gets few mails until somebody who reads its mail has confirmed it. A slot is an instant in
-- milliseconds, which engines compare: with microseconds, as psql's now() has, a cue never ran. Reads cue_runs once; no table is rewritten, and
-- the check is not made for rows that are there.
alter table cue.accounts add column email_confirmed_at timestamptz;
update cue.cue_runs set next_run = date_trunc('milliseconds', next_run) where date_part('microseconds', next_run)::bigint % 1000 <> 0;
alter table cue.cue_runs add constraint next_run_in_milliseconds check (date_part('microseconds', next_run)::bigint % 1000 = 0) not valid;
-- Another argument would make a second function beside the old one.
drop function if exists cue.drop_old_executions(timestamptz);
