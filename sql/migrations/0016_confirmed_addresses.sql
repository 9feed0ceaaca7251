-- 0016_confirmed_addresses.sql: an address gets few mails until somebody who reads its mail has confirmed it. Locks accounts for milliseconds.
alter table cue.accounts add column email_confirmed_at timestamptz;
