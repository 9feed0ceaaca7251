/** missed_window alerts: when a success was due, and the cost of checking. */
import { pino } from 'pino'
import t from 'tap'
import { createFiring } from '../../src/firing/fire-others.ts'
import { createAhead } from '../../src/firing/look-ahead.ts'
import { createWindowSweep } from '../../src/firing/missed-windows.ts'
import { exactly } from '../support/exactly.ts'
import { prepared } from '../support/firing-stage.ts'
import { scaled, spelled } from '../support/scale.ts'
import { serviceAt } from '../support/service.ts'

const start = '2030-01-15T08:00:00Z'
const service = serviceAt(start)
const daily = { cron: '0 9 * * *' }

/** The service, and the engine's firing and its sweep of windows, on demand. */
const serve = async (at = service) => {
  const built = await at()
  const { fn, clock, get, claim, call, run, rows, jobs, patch } = built
  await patch('/v1/auth/me', { alert_webhook_url: 'http://127.0.0.1/alerts' })
  const now = () => clock.now().getTime()
  // An engine whose clock is slightly ahead, so that worker cues are certainly due.
  const ahead = createAhead({ fn, now: () => now() + 2, pollIntervalMs: 5000 })
  const firing = createFiring({ fn, ahead, missedAfter: '100 years', log: pino({ level: 'silent' }) })
  await fn.beatEngine({ engine_id: crypto.randomUUID(), version: 'test', lateness_ms: null, open_deliveries: 0, missed_after: '100 years' })
  /** Fires the cues due at this instant, and returns the id of the latest execution. */
  const fireAt = async (at: string): Promise<string> => {
    clock.set(at)
    ahead.reset()
    await ahead.look()
    await prepared()
    await firing.workers()
    await firing.tracked()
    return (await rows('select id from cue.executions order by id desc limit 1'))[0]?.id
  }
  return {
    ...built,
    fireAt,
    report: async (id: string, success = true) => {
      await claim(id)
      await call('POST', `/v1/executions/${id}/outcome`, { success })
    },
    sweep: createWindowSweep({ fn, now }),
    /** Sweeps at this instant, and returns the number of alerts raised. */
    sweepAt: (at: string) => {
      clock.set(at)
      return createWindowSweep({ fn, now })()
    },
    dueAt: async (cue_id: string): Promise<string | undefined> => (await run(cue_id)).success_due_at?.toISOString(),
    alerts: async () => (await get('/v1/alerts?alert_type=missed_window')).alerts,
    /** The ids of alerts queued for the alert webhook, oldest first. */
    queued: async () => (await jobs('alerts')).map(({ data }) => data.alert_id).sort()
  }
}

t.test('firing opens a window of N slots, and one without a success raises an alert and moves on', async t => {
  const { cue, fireAt, sweepAt, dueAt, alerts, queued } = await serve()
  const cue_id = await cue({ ...daily, name: 'backup' })
  t.equal(await dueAt(cue_id), undefined)
  await fireAt('2030-01-15T09:00:00Z')
  t.equal(await dueAt(cue_id), '2030-01-17T09:00:15.000Z')
  await fireAt('2030-01-16T09:00:00Z')
  t.equal(await dueAt(cue_id), '2030-01-17T09:00:15.000Z', 'a window that is open stays')
  await fireAt('2030-01-17T09:00:00Z')
  t.equal(await sweepAt('2030-01-17T09:00:14.999Z'), 0)
  t.equal(await sweepAt('2030-01-17T09:00:15Z'), 1)
  const [alert] = await alerts()
  exactly(t, alert, {
    cue_id,
    execution_id: null,
    severity: 'high',
    message: 'backup had no success in its expected window',
    metadata: { window_ended_at: '2030-01-17T09:00:15.000Z' },
    created_at: '2030-01-17T09:00:15.000Z'
  })
  t.equal(await dueAt(cue_id), '2030-01-19T09:00:15.000Z')
  t.equal(await sweepAt('2030-01-19T09:00:15Z'), 0, 'one is open')
  exactly(t, await alerts(), [{ id: alert.id, metadata: { window_ended_at: '2030-01-19T09:00:15.000Z' } }])
  t.same(await queued(), [alert.id], 'announced once')
})

t.test('a success moves the window, once passed, to the N-th slot after it', async t => {
  const { cue, fireAt, report, claim, call, sweepAt, dueAt, alerts, row } = await serve()
  const cue_id = await cue(daily)
  const xmin = () => row('select xmin::text, success_due_at from cue.cue_runs where cue_id = $1', [cue_id])
  const first = await fireAt('2030-01-15T09:00:00Z')
  await claim(first)
  const before = await xmin()
  await call('POST', `/v1/executions/${first}/outcome`, { success: true })
  t.strictSame(await xmin(), before, 'the success itself writes nothing to the cue')
  await report(await fireAt('2030-01-16T09:00:00Z'))
  await fireAt('2030-01-17T09:00:00Z')
  t.equal(await sweepAt('2030-01-17T09:00:15Z'), 0)
  t.equal(await dueAt(cue_id), '2030-01-18T09:00:15.000Z', 'two slots after the last one')
  t.equal(await sweepAt('2030-01-18T09:00:15Z'), 1)
  t.equal((await alerts()).length, 1)
})

t.test('uses the time a success ended, not when its execution was created', async t => {
  const { cue, fireAt, report, claim, call, sweepAt, dueAt, clock } = await serve()
  const cue_id = await cue({ cron: '0 * * * *' })
  const long = await fireAt('2030-01-15T09:00:00Z')
  await claim(long)
  await report(await fireAt('2030-01-15T10:00:00Z'))
  clock.set('2030-01-15T10:30:00Z')
  await call('POST', `/v1/executions/${long}/outcome`, { success: true })
  t.equal(await sweepAt('2030-01-15T11:00:15Z'), 0)
  t.equal(await dueAt(cue_id), '2030-01-15T12:00:15.000Z')
})

t.test('a delivery whose handler reports a failure is not a success', async t => {
  const { cue, fireAt, report, sweepAt } = await serve()
  await cue(daily)
  await report(await fireAt('2030-01-15T09:00:00Z'), false)
  await fireAt('2030-01-16T09:00:00Z')
  t.equal(await sweepAt('2030-01-17T09:00:15Z'), 1)
})

t.test("uses the cue's own slots, so longer days and weekends are not misses", async t => {
  // A service of its own, which creates the partitions of November; the others can't be emptied after that.
  const { cue, fireAt, report, sweepAt, dueAt, clock } = await serve(serviceAt('2030-11-01T00:00:00Z'))
  clock.set(start)
  const strict = { alerts: { missed_window_multiplier: 1 } }
  // In New York, 3 November 2030 has 25 hours.
  const long = await cue({ ...strict, cron: '0 9 * * *', timezone: 'America/New_York' })
  await report(await fireAt('2030-01-15T14:00:00Z'))
  t.equal(await dueAt(long), '2030-01-16T14:00:15.000Z')
  await report(await fireAt('2030-01-16T14:00:00Z'))
  await sweepAt('2030-01-16T14:00:15Z')
  await report(await fireAt('2030-11-02T13:00:00Z'))
  await sweepAt('2030-11-02T13:00:15Z')
  t.equal(await dueAt(long), '2030-11-03T14:00:15.000Z')
  t.equal(await sweepAt('2030-11-03T13:00:15Z'), 0)

  clock.set('2030-11-08T08:00:00Z') // a Friday
  const weekdays = await cue({ ...strict, cron: '0 9 * * 1-5' })
  await report(await fireAt('2030-11-08T09:00:00Z'))
  t.equal(await dueAt(weekdays), '2030-11-11T09:00:15.000Z')
})

t.test('paused cues, changed schedules or windows, and one-time cues have no window', async t => {
  const { cue, patch, fireAt, sweepAt, dueAt, alerts } = await serve()
  const changes: [string, object, string | undefined][] = [
    ['another name', { name: 'other' }, '2030-01-17T09:00:15.000Z'],
    ['the same alerts', { alerts: { consecutive_failures: 3 } }, '2030-01-17T09:00:15.000Z'],
    ['a pause', { status: 'paused' }, undefined],
    ['another schedule', { schedule: { cron: '0 10 * * *' } }, undefined],
    ['another number of slots', { alerts: { missed_window_multiplier: 3 } }, undefined]
  ]
  const ids: string[] = []
  for (const _ of changes) ids.push(await cue({ ...daily, alerts: { missed_window_multiplier: 2 } }))
  const once = await cue({ cron: undefined, at: '2030-01-15T09:00:00Z' })
  await fireAt('2030-01-15T09:00:00Z')
  t.equal(await dueAt(once), undefined)
  for (const [n, [what, body, expected]] of changes.entries()) {
    await patch(`/v1/cues/${ids[n]}`, body)
    t.equal(await dueAt(ids[n]!), expected, what)
  }
  await patch(`/v1/cues/${ids[2]}`, { status: 'active' })
  t.equal(await dueAt(ids[2]!), undefined, 'not when it is resumed, but')
  await fireAt('2030-01-16T09:00:00Z')
  t.equal(await dueAt(ids[2]!), '2030-01-18T09:00:15.000Z', 'when it fires')
  t.equal(await dueAt(ids[4]!), '2030-01-19T09:00:15.000Z')
  t.equal(await sweepAt('2030-01-17T09:00:15Z'), 2)
  t.equal((await alerts()).length, 2)
})

t.test('simultaneous engines raise one alert', async t => {
  const { cue, fireAt, sweep, clock, alerts, queued } = await serve()
  for (let n = 0; n < 5; n++) await cue(daily)
  await fireAt('2030-01-15T09:00:00Z')
  clock.set('2030-01-17T09:00:15Z')
  const raised = await Promise.all([sweep(), sweep(), sweep(), sweep()])
  t.equal(
    raised.reduce((sum, n) => sum + n, 0),
    5
  )
  const found = (await alerts()).map(({ id }: { id: string }) => id)
  t.equal(found.length, 5)
  t.same(await queued(), found.sort())
})

t.test('finds an old success behind failures, within a limit', async t => {
  const { cue, fireAt, report, sweepAt, dueAt, pool, clock, fn } = await serve()
  const cue_id = await cue({ cron: '* * * * *', alerts: { missed_window_multiplier: 10 } })
  await report(await fireAt('2030-01-15T09:00:00Z'))
  const fail = (count: number) =>
    pool.query(
      `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, ended_at, created_at, updated_at)
       select cue.uuid_v7($2), account_id, id, 'worker', 'failed', 'replay', $2, '{}', $2, $2, $2 from cue.cues cross join generate_series(1, $3) where id = $1`,
      [cue_id, clock.now(), count]
    )
  clock.set('2030-01-15T09:05:00Z')
  await fail(500)
  t.equal(await sweepAt('2030-01-15T09:10:15Z'), 1, 'ten slots are over')
  await report(await fireAt('2030-01-15T09:11:00Z'))
  await fail(500)
  t.equal(await sweepAt('2030-01-15T09:20:15Z'), 0)
  t.equal(await dueAt(cue_id), '2030-01-15T09:21:15.000Z')
  await fail(3000)
  await pool.query('vacuum analyze cue.executions')
  const read = async () => {
    const { rows } = await pool.query('explain (analyze, buffers, timing off, format json) select * from cue.passed_windows(p_now => $1)', [
      '2030-01-15T10:00:00Z'
    ])
    return rows[0]['QUERY PLAN'][0].Plan['Shared Hit Blocks'] + rows[0]['QUERY PLAN'][0].Plan['Shared Read Blocks']
  }
  await read()
  t.ok((await read()) < 1500, `${await read()} buffers for 4000 failures`)
  exactly(t, await fn.passedWindows({}), [], 'none has passed yet')
})

t.test('a window passes whether or not its cue has fired by then', async t => {
  const { cue, fireAt, sweepAt, rows, pool } = await serve()
  const cue_id = await cue(daily)
  await fireAt('2030-01-15T09:00:00Z')
  const set = (columns: string) => pool.query(`update cue.cue_runs set ${columns} where cue_id = $1`, [cue_id])
  const passed = async () => (await rows('select success_due_at from cue.passed_windows(p_now => $1)', ['2030-01-20T12:00:00Z'])).length
  for (const [columns, count] of [
    ["next_run = '2030-01-21', success_due_at = '2030-01-20T12:00:00Z'", 1],
    ["next_run = '2030-01-21', success_due_at = '2030-01-20T12:00:01Z'", 0],
    ["next_run = '2030-01-20', success_due_at = '2030-01-19'", 1],
    ["next_run = '2030-01-20', success_due_at = '2030-01-20'", 1],
    ["next_run = '2030-01-19', success_due_at = '2030-01-20'", 1],
    ["next_run = '2030-01-20T12:00:00Z', success_due_at = '2030-01-20T12:00:00Z'", 1],
    ["next_run = '2030-01-20T12:00:00Z', success_due_at = '2030-01-20T12:00:01Z'", 0],
    ["next_run = '2030-01-20T12:00:01Z', success_due_at = '2030-01-20T12:00:01Z'", 0],
    ["next_run = null, success_due_at = '2030-01-20'", 1],
    ['success_due_at = null', 0]
  ] as const) {
    await set(columns)
    t.equal(await passed(), count, columns)
  }
  await set("next_run = '2030-01-16T09:00:00Z', success_due_at = '2030-01-17T09:00:15Z'")
  t.equal(await sweepAt('2030-01-17T09:00:15Z'), 1, 'nothing fired it')
})

t.test('a sweep ends although as many cues as it reads at once are locked', async t => {
  const { cue, sweepAt, pool, rows, dueAt } = await serve()
  const cueIds = await Promise.all(Array.from({ length: 200 }, (_, n) => cue({ ...daily, name: `locked ${n}` })))
  const passed = '2030-01-17T09:00:15.000Z'
  await pool.query('update cue.cue_runs set success_due_at = $1', [passed])
  const psql = await pool.connect()
  await psql.query('begin; select from cue.cue_runs for update')
  t.equal(await sweepAt('2030-01-17T09:00:20Z'), 0)
  t.equal(await dueAt(cueIds[0]!), passed)
  await psql.query('rollback')
  psql.release()
  t.equal(await sweepAt('2030-01-17T09:00:30Z'), 200)
  t.same(await rows('select count(*)::int as count from cue.cue_runs where success_due_at > $1', [passed]), [{ count: 200 }])
})

t.test(`${spelled(20_000)} healthy cues do not increase what the sweeps read`, { timeout: 300_000 }, async t => {
  const { cue, fireAt, pool, rows, clock, account, dueAt } = await serve()
  await cue(daily)
  await fireAt('2030-01-15T09:00:00Z')
  const sweeps = ['passed_windows', 'recover_leases', 'miss_unclaimed', 'expire_outcomes']
  const reads = async () => {
    const found: Record<string, number> = {}
    for (const name of sweeps) {
      found[name] = Infinity
      // The least, since planning reads, too, and a statistic that has changed elsewhere makes the server plan again.
      for (let n = 0; n < 7; n++) {
        const { rows } = await pool.query(`explain (analyze, buffers, timing off, format json) select * from cue.${name}(p_now => $1)`, [
          clock.now()
        ])
        const { Plan } = rows[0]['QUERY PLAN'][0]
        if (Plan['Actual Rows'] > 1) throw new Error(`${name} found something`)
        found[name] = Math.min(found[name], Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'])
      }
    }
    return found
  }
  const before = await reads()
  const client = await pool.connect()
  await client.query("set statement_timeout = 0; set session_replication_role = 'replica'") // which spares the foreign keys' checks
  const batch = 20_000 // which is inserted before the pool's query_timeout, however busy the machine is
  const insert = `
    with made as (
      insert into cue.cues (id, account_id, name, transport, schedule_type, cron, payload)
      select 'cue_' || lpad(g::text, 12, '0'), $1, 'healthy', 'worker', 'recurring', '0 9 * * *', '{}'
        from generate_series($3::int + 1, $3::int + ${batch}) g
      returning id, account_id),
    runs as (
      insert into cue.cue_runs (cue_id, account_id, transport, next_run, last_slot, success_due_at)
      select id, account_id, 'worker', $2::timestamptz + interval '1 day', $2, 
             date_trunc('milliseconds', $2::timestamptz + interval '1 day' + random() * interval '1 day') from made)
    insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, started_at, ended_at, outcome_state,
                                outcome_success, outcome_recorded_at, created_at, updated_at)
    select cue.uuid_v7($2), account_id, id, 'worker', 'success', 'schedule', $2, '{}', $2, $2, 'reported_success', true, $2, $2, $2 from made`
  for (let made = 0; made < scaled(20_000); made += batch) await client.query(insert, [account.id, clock.now().toISOString(), made])
  client.release(true)
  await pool.query('vacuum analyze cue.cue_runs, cue.executions, cue.cues')
  const after = await reads()
  for (const name of sweeps) t.ok(after[name]! <= before[name]! * 1.2 + 10, `${name}: ${before[name]} buffers, then ${after[name]}`)

  // Only one window has passed: only that cue is read.
  const due = clock.now().toISOString()
  await pool.query("update cue.cue_runs set success_due_at = $1 where cue_id = 'cue_000000001234'", [due])
  const one = await reads()
  t.ok(one.passed_windows! <= after.passed_windows! + 100, `${one.passed_windows} for one`)
  t.equal(await dueAt('cue_000000001234'), due)

  // 20,000 cues are due a millisecond after each other, all others later. Two windows have passed.
  await pool.query(
    `update cue.cue_runs r set next_run = d.at, success_due_at = case when d.n in (10000, 10001) then d.at end
       from (select n, 'cue_' || lpad(n::text, 12, '0') as cue_id, $1::timestamptz + interval '23 hours' + n * interval '1 ms' as at
               from generate_series(1, 20000) as n) d
      where r.cue_id = d.cue_id`,
    [due]
  )
  const passed = await rows("select cue_id from cue.passed_windows(p_now => $1::timestamptz + interval '1 day')", [clock.now()])
  t.same(passed, [{ cue_id: 'cue_000000010000' }], 'of the due cues, the oldest 10,000 are read')
})
