-- 0006_tasks_are_names.sql: a task longer than what workers can ask for is none. It stood in an index, which refuses long entries, and one cue
-- with such a task kept all that was fired with it from being fired. Reads cues once.
update cue.cues set task = null where length(task) > 255;
alter table cue.cues add constraint task_is_a_name check (length(task) <= 255);
