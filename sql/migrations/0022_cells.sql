-- 0022_cells.sql: the number of this database among those of the service. A database with accounts is cell 1; a new one takes the number that the
-- migrating session sets. Ticket numbers of cells must not clash, so each cell starts far from the others. A new table; locks tickets for
-- milliseconds.
create table cue.cell (
  id smallint not null check (id between 1 and 61),
  created_at timestamptz not null default now()
);
create unique index cell_is_one on cue.cell ((true));
insert into cue.cell (id)
select case when exists (select from cue.accounts) then 1 else coalesce(nullif(current_setting('pgcue.cell', true), ''), '1')::smallint end;
-- Ids and keys contain the number. Conditional rules, so that the statement's rights are still checked.
create rule cell_stays as on delete to cue.cell where true do instead nothing;
create rule cell_stays_the_same as on update to cue.cell where true do instead nothing;
do $$
begin
  if (select id from cue.cell) > 1 then
    execute format('alter table cue.tickets alter column id set start with %1$s restart with %1$s', (select (id - 1) * 35000000 + 1 from cue.cell));
  end if;
end $$;
