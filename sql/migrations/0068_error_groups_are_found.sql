-- no-transaction
-- 0068_error_groups_are_found.sql: finds the dead letters of a group, and those without one. Reads dead_letters twice, while everybody goes on
-- writing it.
create index concurrently dead_letters_group on cue.dead_letters (account_id, error_group, execution_id);
create index concurrently dead_letters_ungrouped on cue.dead_letters (execution_id) where error_group is null;
