-- 0007_workers_are_forgotten.sql: workers are counted, and forgotten, by when they were last heard of. Heartbeats wait while the index is
-- built; a second for a million workers.
create index workers_last_heartbeat on cue.workers (last_heartbeat);
