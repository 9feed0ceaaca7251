/**
 * What the dashboard's pages read, in pages touched by PostgreSQL, for one account among few and many rows. 30,000 executions stand for many;
 * SCALE=370 makes a million cues with ten million executions, on a disk with 20 GB.
 */
import pg from 'pg'
import t from 'tap'
import { withoutIndexes } from '../support/bulk-load.ts'
import { scaled, spelled } from '../support/scale.ts'
import { build } from '../support/setup.ts'
import { forOneCell } from '../support/two-cells.ts'

t.setTimeout(7_200_000)
t.test(`pages read a bounded number of pages among ${spelled(30_000)} executions`, { skip: forOneCell }, async t => {
  const { pool, url, account, call, fn } = await build(t, undefined, { env: { PLANS: '{"free": {"cues": 10000000}}' } })
  await fn.maintainPartitions({})
  const loader = new pg.Client({ connectionString: url })
  await loader.connect()
  t.teardown(() => loader.end())
  const rows = async (text: string, values: unknown[] = []) => (await loader.query(text, values)).rows
  await rows('set session_replication_role = replica; set jit = off; set search_path = pg_catalog; set synchronous_commit = on')

  /**
   * Cues with an alert, most of them acknowledged, and ten executions of the last hours each, of which one failed in one of three ways; one execution
   * in a hundred waits for a person. All cues run, then all run again: executions are stored in the order of time.
   */
  const addCues = async (count: number) => {
    await rows(
      `create temporary table added as
       select 'cue_' || left(md5(random()::text), 12) as id, g, row_number() over (order by random()) as place from generate_series(1, $1::int) g`,
      [count]
    )
    await withoutIndexes(loader, ['cue.cues', 'cue.cue_runs', 'cue.executions', 'cue.dead_letters', 'cue.alerts'], async () => {
      await rows(
        `insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload, created_at)
         select id, $1, 'cue ' || g, 'webhook', 'recurring', '0 * * * *', 'http://127.0.0.1:' || 9000 + g % 20 || '/', '{}',
                now() - interval '1 year' + ($2 + g) * interval '10 seconds' from added order by g`,
        [account.id, loaded]
      )
      await rows(
        `insert into cue.cue_runs (cue_id, account_id, transport, next_run)
         select id, $1, 'webhook', date_trunc('hour', now()) + interval '1 hour' from added order by g`,
        [account.id]
      )
      await rows(
        `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, acknowledged_at, created_at)
         select cue.uuid_v7(at), $1, id, 'consecutive_failure', 'high', 'failed', case when g % 1000 > 0 then at end, at
           from added cross join lateral (select now() - interval '1 minute' + g * interval '1 microsecond' as at) a order by g`,
        [account.id]
      )
      for (let n = 10; n > 0; n--)
        await rows(
          `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at,
                                       last_attempt_at, attempt_ms, delivered_at, ended_at, created_at, updated_at, error_message, http_status,
                                       outcome_state, outcome_success, outcome_recorded_at)
           select cue.uuid_v7(at), $1, id, 'webhook', case when ok then 'success' else 'failed' end::cue.execution_status, 'schedule', at, '{}', 1, at,
                  at, case when ok then 20 end, case when ok then at end, at, at, at, case when not ok then 'answered ' || s || ' after 20 ms' end, s,
                  case when w then 'verification_pending'::cue.outcome_state end, case when w then true end, case when w then at end
             from (select id, at, ok, case when ok then 200 else 500 + floor(random() * 3)::int end as s, ok and random() < 0.01 as w
                     from (select id, now() - interval '15 minutes' * ($2 - place / $3::float8) as at, place % 10 + 1 <> $2 as ok
                             from added order by place) a) e`,
          [account.id, n, count]
        )
      const failed = "cue.executions e join added on added.id = e.cue_id where e.status = 'failed'"
      await rows(
        `insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, http_status)
         select e.id, 1, e.account_id, 'failed', e.started_at, e.ended_at, 20, e.http_status from ${failed} order by e.id`
      )
      await rows(
        `insert into cue.dead_letters (execution_id, account_id, cue_id, error_group)
         select e.id, e.account_id, e.cue_id, cue.error_group(e) from ${failed} order by e.id`
      )
    })
    // Four of each cue wait for approval.
    await rows(
      `with made as (
         insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempt_due_at, created_at, updated_at)
         select cue.uuid_v7(at), $1, id, 'webhook', 'pending', 'schedule', at, '{}', 'infinity', at, at
           from added cross join generate_series(1, 4) n cross join lateral (select now() - interval '1 hour' * n as at) a
         returning id, account_id, cue_id, created_at as at),
       held as (
         insert into cue.held_executions (execution_id, account_id, cue_id, transport, held_by, due_at, since)
         select id, account_id, cue_id, 'webhook', 'approval', at, at from made)
       insert into cue.approvals (execution_id, account_id, cue_id, message, on_expiry, requested_at)
       select id, account_id, cue_id, 'Send it?', 'skip', at from made`,
      [account.id]
    )
    loaded += count
    await rows('drop table added')
    await rows('vacuum analyze')
  }
  let loaded = 0

  // Each statement of a request is repeated under EXPLAIN, with the settings of the service's own sessions.
  let touched = 0
  const explained = new pg.Client({ connectionString: url })
  await explained.connect()
  t.teardown(() => explained.end())
  await explained.query('set search_path = pg_catalog, pg_temp; set enable_seqscan = off; set jit = off')
  const measure = async (text: string, values: unknown[]) => {
    const { rows } = await explained.query({ text: `explain (analyze, buffers, format json) ${text}`, values })
    const { Plan: plan } = rows[0]['QUERY PLAN'][0]
    touched += plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  }
  let measured: Promise<void> | undefined
  const watched = new WeakSet()
  pool.on('acquire', client => {
    if (watched.has(client)) return
    watched.add(client)
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    client.query = ((...args: unknown[]) => {
      const [first, second] = args as [string | { text: string; values?: unknown[] }, unknown[] | undefined]
      const { text, values = [] } = typeof first === 'string' ? { text: first, values: second } : first
      if (measured && /^\s*(select|with)/i.test(text)) measured = measured.then(() => measure(text, Array.isArray(values) ? values : []))
      return query(...args)
    }) as typeof client.query
  })

  const filtered = 'limit=50&count_to=1000&search_to=10000'
  const paths = async (): Promise<Record<string, string>> => {
    const [cue] = await rows('select id from cue.cues order by created_at desc limit 1')
    const [execution] = await rows('select id from cue.executions order by id desc limit 1')
    const [middle] = await rows('select id from cue.executions order by id offset $1 limit 1', [Math.floor(loaded * 5)])
    const [letter] = await rows('select error_group from cue.dead_letters limit 1')
    const executions = (query: string) => `/v1/executions?${filtered}&${query}`
    return {
      me: '/v1/auth/me',
      overview: '/v1/overview',
      usage: '/v1/usage',
      cues: `/v1/cues?summary=true&${filtered}`,
      'cues, deep': `/v1/cues?summary=true&${filtered}&cursor=${Date.now() - 360 * 86_400_000}000.cue_000000000000`,
      'cues, search': `/v1/cues?summary=true&${filtered}&search=no+such+text`,
      'cues by name': `/v1/cues?summary=true&${filtered}&sort=name`,
      'cues by failures': `/v1/cues?summary=true&${filtered}&sort=failures&cursor=500`,
      'cues by next run, paused': `/v1/cues?summary=true&${filtered}&sort=next_run&status=paused`,
      'cues, no match': `/v1/cues?summary=true&${filtered}&status=completed&tag=none`,
      cue: `/v1/cues/${cue!.id}`,
      'cue, history': `/v1/cues/${cue!.id}/history`,
      executions: executions(''),
      'executions, deep': executions(`cursor=${middle!.id}`),
      'executions of a cue': executions(`cue_id=${cue!.id}`),
      'executions, failed': executions('status=failed'),
      'executions, none missed': executions('status=missed'),
      'executions, no error': executions('error=no+such+text&status=failed'),
      'executions, no tag': executions('tag=none'),
      'executions, no tag, deep': executions(`tag=none&cursor=${middle!.id}`),
      'executions by duration': executions('sort=duration'),
      'failed executions by duration': executions('sort=duration&status=failed'),
      'executions, last hour': executions(`since=${new Date(Date.now() - 3_600_000).toISOString()}`),
      'dead letters': executions('dead=true'),
      'dead letters, no tag': executions('dead=true&tag=none'),
      'executions of an error': executions(`error_group=${letter!.error_group}`),
      inbox: '/v1/executions?limit=100&count_to=1000&outcome_state=verification_pending',
      approvals: '/v1/executions?limit=100&count_to=1000&held=approval',
      'approvals, counted': '/v1/executions?limit=1&count_to=100&held=approval',
      execution: `/v1/executions/${execution!.id}`,
      errors: '/v1/errors',
      destinations: '/v1/destinations',
      workers: '/v1/workers?limit=100',
      alerts: `/v1/alerts?${filtered}&acknowledged=false`,
      'alerts, none of a type': `/v1/alerts?${filtered}&alert_type=cue_paused`,
      operations: '/v1/operations?limit=50',
      calendars: '/v1/calendars?limit=20',
      keys: '/v1/auth/keys'
    }
  }
  const measureAll = async () => {
    const pages: Record<string, number> = {}
    for (const [name, path] of Object.entries(await paths())) {
      touched = 0
      measured = Promise.resolve()
      const since = performance.now()
      const { status, body } = await call('GET', path)
      t.equal(status, 200, `${name}: ${status === 200 ? '' : JSON.stringify(body)}`)
      const ms = Math.round(performance.now() - since)
      await measured
      measured = undefined
      pages[name] = touched
      t.comment(`${name}: ${touched} pages, ${ms} ms, ${body.total}`)
    }
    touched = 0
    await measure('select * from cue.read_operator()', [])
    pages.operator = touched
    return pages
  }
  const measureAmong = async (added: number) => {
    await addCues(added)
    await measureAll() // reads the catalog, too
    return measureAll()
  }
  const small = await measureAmong(300)
  const large = await measureAmong(scaled(2700))
  // A history reads 5,000 executions at most.
  const [{ id }] = (await rows('select id from cue.cues order by created_at desc limit 1')) as [{ id: string }]
  await rows(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                 created_at, updated_at)
     select cue.uuid_v7(at), $1, $2, 'webhook', 'success', 'schedule', at, '{}', 1, at, at, at, at
       from generate_series(now() - interval '12000 minutes', now(), interval '1 minute') at`,
    [account.id, id]
  )
  await rows('vacuum analyze')
  touched = 0
  measured = Promise.resolve()
  await call('GET', `/v1/cues/${id}/history`)
  await measured
  measured = undefined
  t.ok(touched <= 12_000, `history of 12,000 executions: ${touched} pages`)
  const isBounded = (name: string, pages: number) => pages <= Math.max(small[name]! * 2, most[name] ?? 1000)
  // A plan that autovacuum has outdated is made again, and reads the catalog.
  const again = Object.entries(large).every(([name, pages]) => isBounded(name, pages)) ? large : await measureAll()
  for (const [name, pages] of Object.entries(large))
    t.ok(isBounded(name, Math.min(pages, again[name]!)), `${name}: ${small[name]}, then ${pages} and ${again[name]}`)
})

/**
 * Where more is read than a page of a list. A search goes through 10,000 executions, cues or alerts, and so does another order of cues; errors through 5,000 dead letters, an overview and
 * destinations through 2,000 executions. What counts against the plan is read from an index, a page for more than a thousand cues.
 */
const most: Record<string, number> = {
  overview: 10_000,
  cues: 6000,
  'cues, deep': 6000,
  'cues, search': 40_000,
  'cues, no match': 60_000,
  usage: 3000,
  'cues by name': 60_000,
  'cues by failures': 60_000,
  'cues by next run, paused': 60_000,
  executions: 8000,
  'executions by duration': 16_000,
  'failed executions by duration': 60_000,
  'executions, deep': 8000,
  'executions, failed': 60_000,
  'executions, none missed': 60_000,
  'executions, no error': 60_000,
  'executions, no tag': 60_000,
  'executions, no tag, deep': 60_000,
  'executions, last hour': 60_000,
  'dead letters': 8000,
  'dead letters, no tag': 60_000,
  'executions of an error': 8000,
  inbox: 8000,
  alerts: 60_000,
  'alerts, none of a type': 60_000,
  errors: 30_000,
  destinations: 12_000,
  operator: 20_000
}
