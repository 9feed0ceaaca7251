-- Statements that name every column of cue.cues. They are generated from the catalog whenever functions are loaded, so a new column needs no
-- line here. They don't contain a column added by a later migration: it keeps its default until the functions are loaded again.
do $load$
begin
  execute (
    select format($create$
      create or replace function cue.insert_cues(p_ids text[], p_account_ids uuid[], p_payload_ids bigint[], p_cues jsonb, p_now timestamptz)
      returns void
      language plpgsql as $body$
      begin
        insert into cue.cues (id, account_id, payload_id, created_at, updated_at, tracked, payload, %1$s)
        select g.id, g.account_id, g.payload_id, p_now, p_now, coalesce(g.overlap, 'allow') <> 'allow', case when g.payload_id is null then coalesce(g.payload, '{}') end, %2$s
          from rows from (unnest(p_ids, p_account_ids, p_payload_ids), jsonb_to_recordset(p_cues) as (payload text, %3$s))
            as g (id, account_id, payload_id)
         where g.id is not null;
      end $body$;

      create or replace function cue.save_cue(c cue.cues) returns void
      language plpgsql as $body$
      begin
        update cue.cues q set payload_id = c.payload_id, updated_at = c.updated_at, tracked = c.tracked, payload = c.payload, %4$s where q.id = c.id;
      end $body$;

      create or replace function cue.reset_cue(c cue.cues) returns cue.cues
      language plpgsql as $body$
      begin
        %5$s
        c.payload := '{}';
        c.payload_id := null;
        return c;
      end $body$;
      $create$,
      string_agg(quote_ident(a.attname), ', ' order by a.attnum),
      string_agg(format('coalesce(g.%I, %s)', a.attname, coalesce(pg_get_expr(d.adbin, d.adrelid), 'null')), ', ' order by a.attnum),
      string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum),
      string_agg(format('%1$I = c.%1$I', a.attname), ', ' order by a.attnum),
      string_agg(format('c.%I := %s;', a.attname, coalesce(pg_get_expr(d.adbin, d.adrelid), 'null')), ' ' order by a.attnum)
        filter (where a.attname not in ('key', 'managed_by', 'status', 'paused_at', 'paused_by', 'pause_reason', 'paused_until',
                                   'completed_reason', 'transport', 'memory_check', 'deleted_at')))
      from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     where a.attrelid = 'cue.cues'::regclass and a.attnum > 0 and not a.attisdropped
       and a.attname not in ('id', 'account_id', 'payload_id', 'payload_ref', 'payload_since_run', 'created_at', 'updated_at', 'tracked', 'payload'));
end $load$;
comment on function cue.insert_cues is 'Inserts cues that have an id, from objects of columns; the others have defaults.';
comment on function cue.save_cue is 'Writes all columns of a cue.';
comment on function cue.reset_cue is 'Returns a cue with the table''s defaults in all columns of its definition, except the payload.';

create or replace function cue.implied_settings() returns cue.cues
language sql immutable as $$
  select jsonb_populate_record(null::cue.cues, '{
    "timeout_seconds": 30, "outcome_deadline_seconds": 300, "claim_timeout_seconds": 900,
    "alert_consecutive_failures": 3, "alert_missed_window_multiplier": 2, "verification_mode": "none"}')
$$;
comment on function cue.implied_settings is 'Returns the settings of a cue whose delivery, alerts or verification is null.';
