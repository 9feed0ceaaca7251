-- 0016_confirmed_addresses.sql: an address gets few mails until somebody who reads its mail has confirmed it. Quick on any size.
alter table cue.accounts add column email_confirmed_at timestamptz;
