-- Values that several functions and the service rely on. Each is written here only: the service's copy, src/catalog.ts, is generated, and
-- engines pass the lease that they rely on to each function that grants one, so that replicas of different releases each keep to their own.
-- Immutable and inlined: they cost nothing at run time.

create or replace function cue.flight_lease() returns interval language sql immutable as $$ select interval '4 seconds' $$;
comment on function cue.flight_lease is 'Returns how long an engine holds a flight that it does not extend.';

create or replace function cue.claim_lease() returns interval language sql immutable as $$ select interval '15 minutes' $$;
comment on function cue.claim_lease is 'Returns how long a worker holds a claim that it does not extend.';

create or replace function cue.worker_timeout() returns interval language sql immutable as $$ select interval '3 minutes' $$;
comment on function cue.worker_timeout is 'Returns how long a worker counts as live after a heartbeat.';

create or replace function cue.engine_timeout() returns interval language sql immutable as $$ select interval '15 seconds' $$;
comment on function cue.engine_timeout is 'Returns how long an engine counts as live after a heartbeat.';

create or replace function cue.missed_after() returns interval language sql immutable as $$ select interval '60 seconds' $$;
comment on function cue.missed_after is 'Returns the default length of an outage from which catch_up applies.';

create or replace function cue.mask() returns text language sql immutable as $$ select '********' $$;
comment on function cue.mask is 'Returns the text shown in place of a secret.';

create or replace function cue.default_scopes() returns cue.key_scope[] language sql immutable as $$ select '{read,write,worker,account}'::cue.key_scope[] $$;
comment on function cue.default_scopes is 'Returns the scopes of keys for which none are named: all but approve.';

create or replace function cue.page_bytes() returns int language sql immutable as $$ select 4 * 1024 * 1024 $$;
comment on function cue.page_bytes is 'Returns the maximum size of a list or of the claims of one request, beyond their first item.';

create or replace function cue.artifacts_bytes() returns int language sql immutable as $$ select 64 * 1024 $$;
comment on function cue.artifacts_bytes is 'Returns the maximum size of an execution''s artifacts.';

create or replace function cue.metadata_bytes() returns int language sql immutable as $$ select 10 * 1024 $$;
comment on function cue.metadata_bytes is 'Returns the maximum size of an execution''s metadata.';

create or replace function cue.idempotency_bytes() returns int language sql immutable as $$ select 64 * 1024 * 1024 $$;
comment on function cue.idempotency_bytes is 'Returns the maximum size of the responses that an account keeps for its Idempotency-Keys.';

create or replace function cue.queue_limit() returns int language sql immutable as $$ select 100 $$;
comment on function cue.queue_limit is 'Returns the maximum number of queued executions of a cue.';

create or replace function cue.gate_limit() returns int language sql immutable as $$ select 10000 $$;
comment on function cue.gate_limit is 'Returns the maximum number of executions that wait at a gate or a part of it.';

create or replace function cue.superseded() returns text language sql immutable as $$ select 'superseded by the next run' $$;
comment on function cue.superseded is 'Returns the error message of executions that were ended for the next one.';

create or replace function cue.counted_to() returns int language sql immutable as $$ select 10000 $$;
comment on function cue.counted_to is 'Returns the number up to which slots, jobs and other waiting work are counted.';

create or replace function cue.events_per_day() returns int language sql immutable as $$ select 100000 $$;
comment on function cue.events_per_day is 'Returns the number of an account''s events a day, beyond which those of executions are left out of the feed.';

create or replace function cue.event_bytes() returns int language sql immutable as $$ select 16 * 1024 $$;
comment on function cue.event_bytes is 'Returns the maximum size of an event''s data.';

create or replace function cue.notice_delays() returns interval[] language sql immutable as $$ select '{10 seconds,1 minute,5 minutes,30 minutes}'::interval[] $$;
comment on function cue.notice_delays is 'Returns the delays between the tries of what is sent to channels and endpoints.';

create or replace function cue.max_placeholders() returns int language sql immutable as $$ select 100 $$;
comment on function cue.max_placeholders is 'Returns the maximum number of placeholders in a template.';

create or replace function cue.template_bytes() returns int language sql immutable as $$ select 16 * 1024 $$;
comment on function cue.template_bytes is 'Returns the maximum size of the values that an execution keeps for a template.';

create or replace function cue.outcome_names() returns text
language sql immutable as $$ select 'outcome\.(result|external_id|result_url|summary|metadata(\.[A-Za-z0-9_-]+)+)' $$;
comment on function cue.outcome_names is 'Returns the pattern of names of an outcome in templates.';

create or replace function cue.template_names() returns text
language sql immutable as $$
  select '^(execution_id|scheduled_for|scheduled_date|due_at|triggered_by|cue\.(id|key|name)|previous\.(scheduled_for|success_at|' || cue.outcome_names() || '))$'
$$;
comment on function cue.template_names is 'Returns the pattern of names in templates, except those of parents.';

create or replace function cue.parent_names() returns text
language sql immutable as $$ select '^(execution_id|scheduled_for|' || cue.outcome_names() || ')$' $$;
comment on function cue.parent_names is 'Returns the pattern of what follows the key of a parent in names.';
