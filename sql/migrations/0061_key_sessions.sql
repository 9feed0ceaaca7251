-- 0061_key_sessions.sql: sessions opened with an API key have its scopes and end with it. Locks sessions for milliseconds. Existing sessions have
-- null in both columns: all scopes, and no key.
alter table cue.sessions add column scopes cue.key_scope[], add column key_id uuid;
