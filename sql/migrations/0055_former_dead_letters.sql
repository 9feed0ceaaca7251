-- no-transaction
-- 0055_former_dead_letters.sql: those from before the table. Reads executions once, some seconds for a million rows, while everybody goes on
-- writing them. Cancelled ones are left out, and so are those that were replayed.
insert into cue.dead_letters (execution_id, account_id, cue_id)
select e.id, e.account_id, e.cue_id from cue.executions e
 where e.status in ('failed', 'missed', 'outcome_timeout') and e.error_message is distinct from 'cancelled'
   and e.id not in (select r.replayed_from from cue.executions r where r.replayed_from is not null)
on conflict do nothing;
