-- 0009_plan_limits.sql: what an account may hold open, and optional limits that operators set. Locks plans, which has a row per plan, for
-- milliseconds.
alter table cue.plans
  add column open_deliveries int not null default 1000 check (open_deliveries > 0),
  add column max_timeout_seconds int check (max_timeout_seconds between 1 and 3600),
  add column min_interval_seconds int check (min_interval_seconds > 0),
  add column payload_bytes_per_day bigint check (payload_bytes_per_day > 0);
update cue.plans set open_deliveries = case plan when 'free' then 50 when 'pro' then 250 else 1000 end;
