-- 0146_recent_requests.sql: rate windows also have the hits of the latest five minutes, for the operator. Quick on any size.
alter table cue.rate_windows add column recent int[], add column recent_minute int;
alter table cue.rate_windows alter recent set storage plain;
