/** on_failure.pause_after: cues that are paused after failed runs in a row. */
import t, { type Test } from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { mailServer, sendMails } from '../support/mailbox.ts'
import { below, cases, chance, pick } from '../support/seed.ts'
import { build, invalid } from '../support/setup.ts'
import { awaiting, once, type Result, type Row, refused, stage } from '../support/stage.ts'

const final = { retry_max_attempts: 1, on_failure_email: true }

/** A stage, and what a cue's runs lead to. */
const setUp = async (t: Test) => {
  const base = await stage(t)
  const { fn, take, settle, finish, clock, row, rows, run, jobs, account_id } = base
  const runs = async (cue_id: string) => (await run(cue_id)).failed_runs as number
  return {
    ...base,
    runs,
    /** Takes the cue's slot. */
    slot: async (cue_id: string) => {
      clock.advance('1 minute')
      await rows('update cue.cue_runs set next_run = $2 where cue_id = $1', [cue_id, clock.now().toISOString()])
      return (await take([cue_id]))[0]!
    },
    end: (attempt: Parameters<typeof settle>[0][number], result: Result) =>
      result.error || !attempt.plain ? settle([attempt], result) : finish([attempt]),
    begin: async () => (await beginWaiting(fn, { limit: 1 }))[0]!,
    resume: async (cue_id: string) =>
      fn.updateCue({
        account_id,
        cue_id,
        version: (await run(cue_id)).version,
        changes: { status: 'active' },
        next_run: new Date(clock.now().getTime() + 60_000)
      }),
    shown: (cue_id: string): Promise<Row> =>
      row('select status, paused_by, pause_reason, paused_until from cue.cues where id = $1', [cue_id]),
    mails: async () => (await jobs('mails')).map(({ data }) => data.kind),
    alerts: () => rows("select alert_type, severity, message, metadata from cue.alerts where alert_type = 'cue_paused'")
  }
}

t.test('pauses at the third failed run in a row, with one alert and one mail', async t => {
  const { cue, slot, end, runs, shown, mails, alerts, jobs, run, resume } = await setUp(t)
  const id = await cue({ ...final, on_failure_email: false, on_failure_pause_after: 3 })
  for (const [result, count] of [
    [refused, 1],
    [refused, 2],
    [{}, 0],
    [refused, 1],
    [refused, 2]
  ] as const) {
    await end(await slot(id), result)
    t.equal(await runs(id), count)
  }
  exactly(t, await shown(id), { status: 'active' })
  const late = await slot(id)
  const last = await slot(id)
  await end(last, { ...refused, error: `the callback answered ${'x'.repeat(600)}` })
  exactly(t, await shown(id), {
    status: 'paused',
    paused_by: 'failures',
    pause_reason: /^Failed 3 times in a row. Last error: the callback answered x+$/
  })
  t.equal((await shown(id)).pause_reason.length, 500)
  exactly(t, await run(id), { next_run: null, version: 2 })
  await end(late, refused)
  exactly(t, await alerts(), [
    { severity: 'high', message: 'a cue was paused: it failed 3 times in a row', metadata: { failure_count: 3 } }
  ])
  t.same(await mails(), ['cue_paused'], 'whatever on_failure.email says')
  exactly(t, await jobs('mails'), [{ data: { execution_id: last.execution_id, failures: 3 } }])
  await resume(id)
  t.equal(await runs(id), 0)
  await end(await slot(id), refused)
  exactly(t, await shown(id), { status: 'active', pause_reason: null })
})

t.test('the mail about the pause replaces the one about the failure', async t => {
  const { cue, slot, end, mails } = await setUp(t)
  const id = await cue({ ...final, on_failure_pause_after: 2 })
  for (let n = 0; n < 2; n++) await end(await slot(id), refused)
  t.same((await mails()).sort(), ['cue_failed', 'cue_paused'])
})

t.test('retries count once, when they are used up', async t => {
  const { cue, slot, end, begin, clock, runs, shown } = await setUp(t)
  const id = await cue({ retry_max_attempts: 2, retry_backoff_minutes: [1], on_failure_pause_after: 1 })
  await end(await slot(id), refused)
  t.equal(await runs(id), 0)
  clock.advance('2 minutes')
  await end(await begin(), refused)
  exactly(t, await shown(id), { status: 'paused', pause_reason: `Failed once. Last error: ${refused.error}` })
})

t.test('counts reported failures, misses and timeouts, whatever transports the cue', async t => {
  const { cue, slot, end, fn, clock, account_id, rows, shown } = await setUp(t)
  const reports = { ...awaiting, on_failure_pause_after: 1 }
  const awaited = await cue(reports)
  const attempt = await slot(awaited)
  await end(attempt, {})
  exactly(t, await shown(awaited), { status: 'active' })
  await fn.reportOutcome({ account_id, execution_id: attempt.execution_id, success: false, error: 'no invoice' })
  exactly(t, await shown(awaited), { status: 'paused', pause_reason: /Last error: no invoice$/ })

  const silent = await cue(reports)
  await end(await slot(silent), {})
  clock.advance('1 hour')
  await fn.expireOutcomes({})
  exactly(t, await shown(silent), {
    status: 'paused',
    pause_reason: /^Failed once. Last error: delivered, but no outcome was reported in time$/
  })

  const worker = { transport: 'worker', callback_url: null, on_failure_pause_after: 2 }
  const idle = await cue(worker)
  for (let n = 0; n < 2; n++) {
    await slot(idle)
    clock.advance('1 hour')
    await fn.missUnclaimed({})
  }
  exactly(t, await shown(idle), { status: 'paused', paused_by: 'failures' })

  const busy = await cue(worker)
  for (const success of [false, true, false, false]) {
    exactly(t, await shown(busy), { status: 'active' })
    await slot(busy)
    const [{ id }] = await rows('select id from cue.executions where cue_id = $1 and claimable_at is not null', [busy])
    await fn.claimExecutions({ account_id, execution_id: id, worker_id: 'w' })
    await fn.reportOutcome({ account_id, execution_id: id, success })
  }
  exactly(t, await shown(busy), { status: 'paused', pause_reason: /Failed 2 times in a row. Last error: the worker reported a failure$/ })
})

t.test('one-time cues, cancelled executions and cues without the setting are not counted', async t => {
  const { cue, begun, slot, end, settle, fn, account_id, runs, shown, rows } = await setUp(t)
  const attempt = await begun({ ...once, ...final, on_failure_pause_after: 1 })
  await settle([attempt], refused)
  exactly(t, await shown(attempt.cue_id), { status: 'failed' })
  const plain = await cue(final)
  for (let n = 0; n < 4; n++) await end(await slot(plain), refused)
  t.equal(await runs(plain), 0)
  const cancelled = await cue({ transport: 'worker', callback_url: null, on_failure_pause_after: 1 })
  await slot(cancelled)
  const [{ id }] = await rows('select id from cue.executions where cue_id = $1', [cancelled])
  await fn.cancelExecution({ account_id, execution_id: id })
  exactly(t, await shown(cancelled), { status: 'active' })
})

t.test('removing the setting forgets the count', async t => {
  const { cue, slot, end, fn, run, account_id, runs } = await setUp(t)
  const id = await cue({ ...final, on_failure_pause_after: 5 })
  await end(await slot(id), refused)
  for (const [on_failure_pause_after, count] of [
    [3, 1],
    [null, 0],
    [3, 0]
  ]) {
    const { version, next_run } = await run(id)
    await fn.updateCue({ account_id, cue_id: id, version, changes: { on_failure_pause_after }, next_run })
    t.equal(await runs(id), count)
  }
})

t.test(`runs, fires and replays in any order agree with a model (${cases(300)} steps)`, async t => {
  const { cue, slot, end, begin, fn, rows, account_id, runs, shown, resume, alerts } = await setUp(t)
  const limit = 2 + below(4)
  const ids = [await cue({ ...final, on_failure_pause_after: limit }), await cue({ ...final, ...awaiting, on_failure_pause_after: limit })]
  const counts = new Map(ids.map(id => [id, 0]))
  let pauses = 0
  for (let n = 0; n < cases(300); n++) {
    const id = pick(ids)
    const failed = chance(0.6)
    const isScheduled = chance(0.6)
    let attempt = isScheduled ? await slot(id) : undefined
    if (!attempt) {
      await rows('delete from cue.fires')
      const ended = await rows('select id from cue.executions where cue_id = $1 and ended_at is not null', [id])
      if (ended.length > 0 && chance(0.5)) await fn.replayExecution({ account_id, execution_id: pick(ended).id })
      else await fn.fireCue({ account_id, cue_id: id })
      attempt = await begin()
    }
    await end(attempt, failed ? refused : {})
    if (!failed && !attempt.plain) await fn.reportOutcome({ account_id, execution_id: attempt.execution_id, success: true })
    // Results may arrive twice.
    if (chance(0.2)) await end(attempt, failed ? refused : {})
    if (isScheduled) counts.set(id, failed ? counts.get(id)! + 1 : 0)
    const isPaused = counts.get(id) === limit
    const seen = { count: await runs(id), status: (await shown(id)).status }
    const expected = { count: counts.get(id), status: isPaused ? 'paused' : 'active' }
    if (JSON.stringify(seen) !== JSON.stringify(expected)) return t.same(seen, expected, `step ${n}, limit ${limit}`)
    if (isPaused) {
      pauses++
      await resume(id)
      counts.set(id, 0)
    }
  }
  t.ok(pauses > 0)
  t.equal((await alerts()).length, 2, 'an open alert is updated')
})

t.test('is set, changed and refused over the API, and mails the reason', async t => {
  const server = await mailServer(t)
  const service = await build(t, '2030-01-15T12:00:00Z', { env: { SMTP_URL: server.url, BASE_URL: 'https://pgcue.example' } })
  const { post, patch, call, get, pool } = service
  const hourly = { name: 'nightly report', cron: '@hourly', worker: true }
  const plain = await post('/v1/cues', hourly)
  t.same(plain.on_failure, { email: true, webhook: null, pause: false }, 'absent unless set')
  const { id, on_failure } = await post('/v1/cues', { ...hourly, on_failure: { pause_after: 3 } })
  t.same(on_failure, { ...plain.on_failure, pause_after: 3 })
  const path = `/v1/cues/${id}`
  for (const [given, pause_after] of [
    [{ pause_after: 1000 }, 1000],
    [{ email: false }, 1000],
    [{ pause_after: 1 }, 1],
    [{ pause_after: null }, undefined],
    [{ pause_after: 7 }, 7],
    [null, undefined]
  ] as const) {
    t.equal((await patch(path, { on_failure: given })).on_failure.pause_after, pause_after)
    t.equal((await get(path)).on_failure.pause_after, pause_after)
  }
  for (const pause_after of [0, -1, 1001, 1.5, '3', true, [], {}, 1e300])
    exactly(t, await call('PATCH', path, { on_failure: { pause_after } }), invalid('body', 'on_failure', 'pause_after'))

  const { id: execution_id } = await post(`${path}/fire`)
  await pool.query(
    `update cue.executions set status = 'failed', error_message = 'no disk', ended_at = now(), claimable_at = null, claim_deadline_at = null where id = $1`,
    [execution_id]
  )
  await service.fn.addJob({ queue: 'mails', data: { kind: 'cue_paused', account_id: service.account.id, execution_id, failures: 3 } })
  await sendMails(service)
  const mail = server.mails.find(({ subject }) => subject === 'A cue was paused')
  t.ok(mail?.text.includes('it failed 3 times in a row'))
  t.ok(mail?.text.includes('no disk'))
})
