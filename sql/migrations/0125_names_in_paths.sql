-- no-transaction
-- 0125_names_in_paths.sql: clients remove `.` and `..` from paths, so nothing has these names. A cue that had one gets its id as its key. Nobody
-- waits: cues are read twice, some seconds for a million rows, while everybody goes on writing them.
alter table cue.cues
  drop constraint if exists cues_key_check,
  add constraint cues_key_check check (key ~ '^(?![.]{1,2}$)[A-Za-z0-9._:/-]{1,255}$') not valid;
update cue.cues set key = id where key in ('.', '..');
alter table cue.cues validate constraint cues_key_check;
alter table cue.calendars
  drop constraint if exists calendars_name_check,
  add constraint calendars_name_check check (name ~ '^(?![.]{1,2}$)[A-Za-z0-9._:/-]{1,64}$') not valid;
alter table cue.workers
  drop constraint if exists workers_worker_id_check,
  add constraint workers_worker_id_check check (length(worker_id) between 1 and 255 and worker_id not in ('.', '..')) not valid;
delete from cue.workers where worker_id in ('.', '..');
alter table cue.workers validate constraint workers_worker_id_check;
