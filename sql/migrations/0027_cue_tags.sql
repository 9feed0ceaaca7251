-- 0027_cue_tags.sql: labels of cues. Locks cues for milliseconds: the default is constant, so no row is written.
alter table cue.cues
  add column tags text[] not null default '{}',
  add constraint cues_tags_check check (cardinality(tags) <= 10) not valid;
