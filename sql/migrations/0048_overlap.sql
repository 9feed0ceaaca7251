-- 0048_overlap.sql: what a cue does if its slot comes while it is running. Locks cues for milliseconds: the defaults are constant, so no row is
-- written.
create type cue.overlap as enum ('allow', 'skip', 'queue_one', 'queue_all', 'cancel_previous');
alter table cue.cues
  add column overlap cue.overlap not null default 'allow',
  add column tracked boolean not null default false;
