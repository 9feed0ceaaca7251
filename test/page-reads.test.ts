/**
 * What the dashboard's pages read, in pages touched by PostgreSQL, for one account among few and many rows. 30,000 executions stand for many;
 * SCALE=350 makes a million cues with ten million executions, on a disk with 20 GB.
 */
import pg from 'pg'
import t from 'tap'
import { scaled, spelled } from './scale.ts'
import { build } from './setup.ts'
import { forOneCell } from './two-cells.ts'

t.setTimeout(7_200_000)
t.test(`pages read a bounded number of pages among ${spelled(30_000)} executions`, { skip: forOneCell }, async t => {
  const { pool, url, account, call, fn } = await build(t, undefined, { env: { PLANS: '{"free": {"cues": 10000000}}' } })
  await fn.maintainPartitions({})
  const loader = new pg.Client({ connectionString: url })
  await loader.connect()
  t.teardown(() => loader.end())
  const rows = async (text: string, values: unknown[] = []) => (await loader.query(text, values)).rows
  await rows('set session_replication_role = replica; set jit = off; set search_path = pg_catalog; set synchronous_commit = on')

  /** Cues with ten executions of the last hours each, of which one failed in one of three ways; one execution in a hundred waits for a person. */
  const addCues = async (count: number) => {
    for (let done = 0; done < count; done += 20_000)
      await rows(
        `with c as (
           insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload, created_at)
           select 'cue_' || left(md5(random()::text), 12), $1, 'cue ' || g, 'webhook', 'recurring', '0 * * * *',
                  'http://127.0.0.1:' || 9000 + g % 20 || '/', '{}', now() - interval '1 year' + ($3 + g) * interval '10 seconds'
             from generate_series(1, $2::int) g
           returning id, account_id),
         r as (insert into cue.cue_runs (cue_id, account_id, transport, next_run)
               select id, account_id, 'webhook', date_trunc('hour', now()) + interval '1 hour' from c),
         e as (
           insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                       created_at, updated_at, error_message, http_status, outcome_state, outcome_success, outcome_recorded_at)
           select cue.uuid_v7(at), $1, id, 'webhook', case when n = 1 then 'failed' else 'success' end::cue.execution_status, 'schedule', at, '{}',
                  1, at, at, at, at, case when n = 1 then 'answered ' || s || ' after ' || n || ' ms' end, s,
                  case when w then 'verification_pending'::cue.outcome_state end, case when w then true end, case when w then at end
             from c cross join generate_series(1, 10) n
            cross join lateral (select now() - n * interval '10 minutes' * (0.5 + random()) as at, 500 + floor(random() * 3)::int as s,
                                       n > 1 and random() < 0.01 as w where id <> '') x -- for each execution, as it names the cue
           returning *),
         a as (
           insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, http_status)
           select id, 1, account_id, case when status = 'failed' then 'failed' else 'success' end::cue.attempt_result, started_at, ended_at, 20,
                  case when status = 'failed' then http_status else 200 end from e)
         insert into cue.dead_letters (execution_id, account_id, cue_id, error_group)
         select id, account_id, cue_id, cue.error_group((select f from cue.executions f where f.id = e.id)) from e where status = 'failed'`,
        [account.id, Math.min(20_000, count - done), loaded + done]
      )
    loaded += count
    while ((await fn.groupDeadLetters({ batch: 50_000 })) > 0);
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
      'cues, no match': `/v1/cues?summary=true&${filtered}&status=completed&tag=none`,
      cue: `/v1/cues/${cue!.id}`,
      executions: executions(''),
      'executions, deep': executions(`cursor=${middle!.id}`),
      'executions of a cue': executions(`cue_id=${cue!.id}`),
      'executions, failed': executions('status=failed'),
      'executions, none missed': executions('status=missed'),
      'executions, no error': executions('error=no+such+text&status=failed'),
      'executions, no tag': executions('tag=none'),
      'executions, no tag, deep': executions(`tag=none&cursor=${middle!.id}`),
      'executions, last hour': executions(`since=${new Date(Date.now() - 3_600_000).toISOString()}`),
      'dead letters': executions('dead=true'),
      'dead letters, no tag': executions('dead=true&tag=none'),
      'executions of an error': executions(`error_group=${letter!.error_group}`),
      inbox: '/v1/executions?limit=100&count_to=1000&outcome_state=verification_pending',
      execution: `/v1/executions/${execution!.id}`,
      errors: '/v1/errors',
      destinations: '/v1/destinations',
      workers: '/v1/workers?limit=100',
      alerts: '/v1/alerts?limit=100',
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
  await addCues(300)
  await measureAll() // reads the catalog, too
  const small = await measureAll()
  await addCues(scaled(2700))
  const large = await measureAll()
  for (const [name, pages] of Object.entries(large))
    t.ok(pages <= Math.max(small[name]! * 2, most[name] ?? 1000), `${name}: ${small[name]}, then ${pages}`)
})

/**
 * Where more is read than a page of a list. A search goes through 10,000 executions or cues, errors through 5,000 dead letters, an overview and
 * destinations through 2,000 executions. What counts against the plan counts all cues of the account.
 */
const most: Record<string, number> = {
  me: scaled(1000),
  usage: scaled(1000),
  overview: 14_000,
  cues: 6000,
  'cues, deep': 6000,
  'cues, search': 40_000,
  'cues, no match': 60_000,
  cue: 2000,
  executions: 8000,
  'executions, deep': 8000,
  'executions, failed': 60_000,
  'executions, none missed': 60_000,
  'executions, no error': 60_000,
  'executions, no tag': 60_000,
  'executions, no tag, deep': 60_000,
  'executions, last hour': 60_000,
  'dead letters': 8000,
  'dead letters, no tag': 120_000,
  'executions of an error': 8000,
  inbox: 8000,
  errors: 40_000,
  destinations: 20_000,
  operator: 20_000
}
