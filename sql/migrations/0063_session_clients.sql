-- 0063_session_clients.sql: where a session was opened, so that people recognise it in a list. Locks sessions for milliseconds. Existing sessions,
-- and those that the previous release opens, have null in both columns.
alter table cue.sessions add column ip text, add column user_agent text;
