-- Reported outcomes, their evidence and their verification. Outcomes are written once (with retry_on_worker_failure, once per claim), evidence only
-- grows, and verification only moves up: guarded here and by the table's constraints. Locks: cue, cue_runs, execution.

-- Lists return artifacts whole. Stored numbers have all their digits: 1e300 takes 301 bytes.
create or replace function cue.check_artifacts(p_artifacts jsonb) returns void
language plpgsql security definer as $$
begin
  perform cue.refuse_if(cue.json_bytes(p_artifacts) > cue.artifacts_bytes(), 'QU023',
    'artifacts exceed 64 KB of JSON, including those already stored.');
end $$;
comment on function cue.check_artifacts is 'Raises QU023 if artifacts exceed 64 KB.';

-- The API measures metadata as sent. Stored, a number may have 60 times as many digits, and lists return metadata whole.
create or replace function cue.check_metadata(p_metadata jsonb) returns void
language plpgsql immutable security definer as $$
begin
  perform cue.refuse_if(octet_length(p_metadata::text) > 4 * cue.metadata_bytes(), 'QU022',
    'metadata exceeds 40 KB with all digits of its numbers. Send large numbers as strings.');
end $$;
comment on function cue.check_metadata is 'Raises QU022 if metadata exceeds 40 KB as stored.';

-- QU002 not found, QU011 not begun yet, QU016 outdated claim token, QU020 already reported, QU022 metadata over 40 KB as stored, QU023
-- artifacts over 64 KB.
create or replace function cue.report_outcome(
  p_account_id uuid, p_execution_id uuid, p_success boolean, p_result text default null, p_error text default null,
  p_metadata jsonb default null, p_external_id text default null, p_result_url text default null, p_result_type text default null,
  p_summary text default null, p_artifacts jsonb default null, p_claim_token uuid default null, p_now timestamptz default now(),
  p_result_ref text default null, p_costs jsonb default null
) returns setof cue.executions
language plpgsql security definer as $$
declare
  c cue.cues := cue.lock_cue_of(p_account_id, p_execution_id);
  e cue.executions;
  v_status cue.execution_status; -- in which the report ends the execution or lets it wait for another claim; null if it continues
  v_worked boolean;
  v_retry_at timestamptz;
begin
  select * into e from cue.executions where id = p_execution_id for update;
  perform cue.refuse_superseded(e);
  perform cue.refuse_if(p_claim_token is not null and e.claim_token is distinct from p_claim_token, 'QU016',
    format('Claim lost: execution %s may have been claimed by another worker. The report was not recorded.', e.id));
  -- That of a worker's execution which is claimed is the report of an earlier claim.
  perform cue.refuse_if(e.outcome_recorded_at is not null and (e.status <> 'delivering' or e.transport = 'webhook'), 'QU020',
    format('The outcome of execution %s was already reported. Add evidence with PATCH /evidence.', e.id));
  perform cue.refuse_if(e.status = 'pending', 'QU011', format('Execution %s is pending. Claim it before reporting its outcome.', e.id));
  perform cue.check_artifacts(p_artifacts);
  perform cue.check_metadata(p_metadata);
  v_status := case when e.status = 'pending_outcome' or e.status = 'delivering' and e.transport = 'worker' and p_success then 'success'
                   when e.status = 'delivering' and e.transport = 'worker' then
                     case when c.retry_on_worker_failure and e.attempts - e.lost_attempts < c.retry_max_attempts then 'retrying' else 'failed' end end;
  v_worked := e.status = 'delivering' and v_status is not null;
  if v_status = 'retrying' then v_retry_at := cue.retry_due_at(c.retry_backoff_minutes, e.attempts - e.lost_attempts, null, p_now); end if;
  if v_worked then
    perform cue.log_attempt(e, case when p_success then 'success' else 'failed' end::cue.attempt_result, p_error, p_now);
  end if;
  -- One update for the report and the end of the execution: each update checks all constraints.
  update cue.executions
     set outcome_success = p_success, outcome_recorded_at = p_now, result = p_result, error = p_error, metadata = p_metadata,
         external_id = p_external_id, result_url = p_result_url, result_ref = p_result_ref, result_type = p_result_type, summary = p_summary,
         artifacts = p_artifacts,
         outcome_state = cue.judge_outcome(c.verification_mode, p_success, p_external_id, p_result_url, p_artifacts), updated_at = p_now,
         status = coalesce(v_status, status),
         ended_at = case when v_status is null then ended_at when v_retry_at is null then p_now end,
         claimable_at = v_retry_at, claim_deadline_at = v_retry_at + cue.claim_timeout(c.claim_timeout_seconds),
         claim_token = case when v_retry_at is null then claim_token end,
         claimed_by_worker = case when v_retry_at is null then claimed_by_worker end,
         claimed_at = case when v_retry_at is null then claimed_at end,
         last_heartbeat_at = case when v_retry_at is null then last_heartbeat_at end,
         lease_expires_at = case when v_status is null then lease_expires_at end,
         outcome_deadline_at = case when v_status is null then outcome_deadline_at end,
         delivered_at = case when v_worked and v_retry_at is null then p_now else delivered_at end,
         error_message = case when not v_worked then error_message
                              when not p_success then coalesce(p_error, 'the worker reported a failure') end
   where id = e.id returning * into e;
  perform cue.add_costs(e, e.attempts, p_costs, p_now);
  if v_retry_at is not null then
    perform cue.wake_workers(e.account_id, v_retry_at);
    if c.gate is not null then perform cue.release_held(c.account_id, c.gate, p_now); end if;
    perform cue.add_execution_events('execution.retrying', array[e.id], p_now);
  elsif v_status is null then
    perform cue.count_outcome(e, c, p_now);
    perform cue.add_verification_event(e, p_now);
    perform cue.send_signals(array[e.id], p_now);
  else
    perform cue.after_end(e, c, p_now);
  end if;
  return next e;
end $$;
comment on function cue.report_outcome is 'Records a handler''s outcome, and ends the execution unless it is retried.';

create or replace function cue.json_bytes(p_json jsonb) returns int
language sql immutable as $$
  select octet_length(p_json::text) - regexp_count(regexp_replace(p_json::text, '"(\\.|[^"\\])*"', '', 'g'), ' ')
$$;
comment on function cue.json_bytes is 'Returns the size of stored JSON, without blanks outside strings.';

-- Null arguments change nothing; metadata and artifacts are merged, costs replace those of earlier evidence. The verification state can only improve. QU002 not found, QU016
-- outdated claim token, QU021 no outcome yet, QU022 metadata over 10 KB, QU023 artifacts over 64 KB.
create or replace function cue.attach_evidence(
  p_account_id uuid, p_execution_id uuid, p_external_id text default null, p_result_url text default null, p_result_ref text default null,
  p_result_type text default null, p_summary text default null, p_artifacts jsonb default null, p_metadata jsonb default null,
  p_claim_token uuid default null, p_now timestamptz default now(), p_costs jsonb default null
) returns table (execution_id uuid, outcome_state cue.outcome_state, evidence_updated boolean)
language plpgsql security definer as $$
declare
  c cue.cues;
  old cue.executions := cue.lock_execution(p_account_id, p_execution_id);
  e cue.executions;
  v_spent boolean;
begin
  perform cue.refuse_superseded(old);
  perform cue.refuse_if(p_claim_token is not null and old.claim_token is distinct from p_claim_token, 'QU016',
    format('Claim lost: execution %s may have been claimed by another worker. The evidence was not recorded.', old.id));
  perform cue.refuse_if(old.outcome_recorded_at is null, 'QU021', format('Execution %s has no outcome yet. Report it first.', old.id));
  e := old;
  e.external_id := coalesce(p_external_id, e.external_id);
  e.result_url := coalesce(p_result_url, e.result_url);
  e.result_ref := coalesce(p_result_ref, e.result_ref);
  e.result_type := coalesce(p_result_type, e.result_type);
  e.summary := coalesce(p_summary, e.summary);
  -- A null member does not remove a stored value.
  e.metadata := case when p_metadata is null then e.metadata else coalesce(e.metadata, '{}') || coalesce((
    select jsonb_object_agg(g.key, g.value) from jsonb_each(p_metadata) g where g.value <> 'null' or e.metadata -> g.key is null), '{}') end;
  -- Stored artifacts are not added again, so that a repeated request changes nothing.
  e.artifacts := case when p_artifacts is null then e.artifacts else coalesce(e.artifacts, '[]') || coalesce((
    select jsonb_agg(a.value order by a.place) from jsonb_array_elements(p_artifacts) with ordinality as a (value, place)
     where not exists (select from jsonb_array_elements(e.artifacts) as k (value) where k.value = a.value)), '[]') end;
  perform cue.refuse_if(p_metadata is not null and old.metadata is not null and cue.json_bytes(e.metadata) > cue.metadata_bytes(), 'QU022',
    'metadata exceeds 10 KB of JSON, including members already stored.');
  if p_metadata is not null then perform cue.check_metadata(e.metadata); end if;
  if e.artifacts is distinct from old.artifacts then perform cue.check_artifacts(e.artifacts); end if;
  select * into c from cue.cues where id = e.cue_id;
  if e.rejected_at is null and e.outcome_success and e.outcome_state in ('verification_failed', 'reported_success')
     and cue.judge_outcome(c.verification_mode, true, e.external_id, e.result_url, e.artifacts) = 'verified_success' then
    e.outcome_state := 'verified_success';
  end if;
  if e is distinct from old then
    update cue.executions x
       set external_id = e.external_id, result_url = e.result_url, result_ref = e.result_ref, result_type = e.result_type,
           summary = e.summary, metadata = e.metadata, artifacts = e.artifacts, outcome_state = e.outcome_state, updated_at = p_now
     where x.id = e.id;
    if e.outcome_state <> old.outcome_state then
      perform cue.add_verification_event(e, p_now);
      perform cue.send_signals(array[e.id], p_now);
    end if;
  end if;
  v_spent := cue.add_costs(e, 0, p_costs, p_now);
  return query select e.id, e.outcome_state, v_spent or e is distinct from old;
end $$;
comment on function cue.attach_evidence is 'Adds evidence to a reported outcome and returns its state and whether anything was added.';

create or replace function cue.verify_outcome(
  p_account_id uuid, p_execution_id uuid, p_state cue.outcome_state, p_reason text default null, p_now timestamptz default now()
) returns setof cue.executions
language plpgsql security definer as $$
declare
  e cue.executions := cue.lock_execution(p_account_id, p_execution_id);
begin
  perform cue.refuse_if(e.outcome_recorded_at is null, 'QU021', format('Execution %s has no outcome yet. Report it first.', e.id));
  perform cue.refuse_if(e.outcome_state <> 'reported_success' and (e.outcome_state <> 'verification_pending' or p_state = 'verification_pending'),
    'QU011', format('The outcome of execution %s is %s, which cannot be changed this way.', e.id, e.outcome_state));
  update cue.executions
     set outcome_state = p_state, rejected_at = case p_state when 'verification_failed' then p_now end,
         verification_reason = p_reason, updated_at = p_now
   where id = e.id returning * into e;
  perform cue.add_verification_event(e, p_now);
  perform cue.send_signals(array[e.id], p_now);
  return next e;
end $$;
comment on function cue.verify_outcome is 'Sets the verification of a reported success; QU002, QU021 no outcome, QU011.';
