/** Alerts: raising, updating and acknowledging. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { isLockTimeout } from '../../src/errors.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { error } from '../support/setup.ts'
import { type Result, refused, resultsOf } from '../support/stage.ts'

const service = serviceAt('2030-01-15T09:00:00Z')
const callback = { url: 'http://127.0.0.1/hook' }
const awaiting = { callback, delivery: { outcome_deadline_seconds: 60 } }

const serve = async () => {
  const built = await service()
  const { fn, fire, claim, clock, call, get, row } = built
  /** What an execution can come to, a second after it was asked for. */
  const ends = {
    delivered: (cue_id: string) => ends.sent(cue_id),
    exhausted: (cue_id: string) => ends.sent(cue_id, { ...refused, gone: true }),
    sent: async (cue_id: string, result: Result = {}) => {
      const id = await fire(cue_id)
      clock.advance('1 second')
      await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 1 }), result, clock.now()))
      return id
    },
    silent: async (cue_id: string) => {
      const id = await ends.delivered(cue_id)
      clock.advance('60 seconds')
      await fn.expireOutcomes({})
      return id
    },
    answered: async (cue_id: string, success: boolean) => {
      const id = await ends.delivered(cue_id)
      await call('POST', `/v1/executions/${id}/outcome`, { success })
      return id
    },
    worked: async (cue_id: string, success: boolean) => {
      const id = await fire(cue_id)
      clock.advance('1 second')
      await claim(id)
      await call('POST', `/v1/executions/${id}/outcome`, { success })
      return id
    },
    unclaimed: async (cue_id: string) => {
      const id = await fire(cue_id)
      clock.advance('15 minutes')
      await fn.missUnclaimed({})
      return id
    },
    abandoned: async (cue_id: string) => {
      const id = await fire(cue_id)
      for (let n = 0; n < 3; n++) {
        await claim(id)
        clock.advance('15 minutes')
        await fn.recoverLeases({})
      }
      return id
    },
    cancelled: async (cue_id: string) => {
      const id = await fire(cue_id)
      await call('POST', `/v1/executions/${id}/cancel`)
      return id
    }
  }
  const alerts = async (query = '') => (await get(`/v1/alerts${query}`)).alerts
  const counts = async (cue_id: string) => {
    const { failed_deliveries, failed_outcomes } = await row('select * from cue.cue_runs where cue_id = $1', [cue_id])
    return [failed_deliveries, failed_outcomes]
  }
  return { ...built, ends, alerts, counts, acknowledge: (id: string, by = call) => by('POST', `/v1/alerts/${id}/acknowledge`) }
}

t.test('raises an alert at the third consecutive failure and updates it with each further one', async t => {
  const { ends, alerts, cue } = await serve()
  const cue_id = await cue({ callback, name: 'backup' })
  await ends.exhausted(cue_id)
  await ends.exhausted(cue_id)
  t.strictSame(await alerts(), [])
  const third = await ends.exhausted(cue_id)
  const [alert] = await alerts()
  t.strictSame(alert, {
    id: alert.id,
    cue_id,
    execution_id: third,
    alert_type: 'consecutive_failure',
    severity: 'high',
    message: 'backup failed 3 times in a row',
    metadata: { failure_count: 3, first_failure_at: '2030-01-15T09:00:01.000Z' },
    acknowledged: false,
    acknowledged_at: null,
    resolved_at: null,
    resolution: null,
    snoozed_until: null,
    notices: [],
    created_at: '2030-01-15T09:00:03.000Z'
  })
  await ends.exhausted(cue_id)
  t.strictSame(await alerts(), [{ ...alert, message: 'backup failed 4 times in a row', metadata: { ...alert.metadata, failure_count: 4 } }])
})

t.test('a success resolves what it ends, and acknowledges nothing', async t => {
  const { ends, alerts, cue, acknowledge } = await serve()
  const cue_id = await cue({ callback, alerts: { consecutive_failures: 2 } })
  await ends.answered(cue_id, true)
  await ends.exhausted(cue_id)
  for (let n = 0; n < 2; n++) await ends.answered(cue_id, false)
  await ends.delivered(cue_id)
  exactly(t, await alerts(), [{ resolved_at: null, resolution: null }], 'a delivery does not end a row of bad outcomes')
  await ends.answered(cue_id, true)
  const resolved_at = '2030-01-15T09:00:06.000Z'
  const [resolved] = await alerts()
  exactly(t, resolved, { acknowledged: false, resolved_at, resolution: { after_seconds: 2, failed: 3, missed: 0 } })
  await ends.answered(cue_id, true)
  await ends.exhausted(cue_id)
  t.strictSame(await alerts(), [resolved], 'neither further successes nor a failure below the threshold change that')
  await ends.exhausted(cue_id)
  exactly(t, await alerts(), [{ id: resolved.id, resolved_at: null, resolution: null }], 'it is raised again')
  await acknowledge(resolved.id)
  await ends.answered(cue_id, true)
  exactly(t, await alerts(), [{ acknowledged: true, resolution: { after_seconds: 6, failed: 5, missed: 0 } }], 'acknowledged ones, too')
})

t.test('successes of workers, of a batch and after a missed window resolve alerts', async t => {
  const { ends, alerts, cue, fn, fire, clock, pool, row } = await serve()
  const strict = { alerts: { consecutive_failures: 1 } }
  const worker = await cue(strict)
  await ends.unclaimed(worker)
  await ends.worked(worker, true)
  exactly(t, await alerts(), [{ cue_id: worker, resolution: { after_seconds: 1, failed: 0, missed: 1 } }])
  const ids = [await cue({ callback, ...strict }), await cue({ callback })]
  await ends.exhausted(ids[0]!)
  await pool.query("select cue.raise_alert(c, 'missed_window', 'high', 'none', '{}', null, $2) from cue.cues c where id = $1", [
    ids[1],
    clock.now()
  ])
  for (const id of [...ids, ids[0]!]) await fire(id)
  clock.advance('1 second')
  const finish = async () => {
    const begun = await beginWaiting(fn, { limit: 10 })
    await fn.finishAttempts({
      execution_ids: begun.map(attempt => attempt.execution_id),
      attempts: begun.map(attempt => attempt.attempt),
      cue_ids: begun.map(attempt => attempt.cue_id),
      started_at: begun.map(() => clock.now()),
      duration_ms: begun.map(() => 5),
      http_status: begun.map(() => 200),
      bodies: begun.map(() => null)
    })
  }
  await finish()
  exactly(t, await alerts('?alert_type=missed_window'), [{ cue_id: ids[1], resolution: { after_seconds: 1, failed: 0, missed: 0 } }])
  exactly(t, await alerts(`?cue_id=${ids[0]}`), [{ resolution: { after_seconds: 1, failed: 1, missed: 0 } }])
  t.equal((await row('select count(*)::int as n from cue.cue_runs where alerted')).n, 0)
})

t.test('counts exhausted deliveries, misses, timeouts and reported failures, but not cancellations or releases', async t => {
  const { ends, counts, cue, post, claim, fire } = await serve()
  const hook = () => cue(awaiting)
  const worker = () => cue()
  const cases: [string, () => Promise<string>, (id: string) => Promise<unknown>, number[]][] = [
    ['an exhausted delivery', hook, ends.exhausted, [1, 0]],
    ['a timeout', hook, ends.silent, [0, 1]],
    ['a reported failure', hook, id => ends.answered(id, false), [0, 1]],
    ["a worker's failure", worker, id => ends.worked(id, false), [0, 1]],
    ['an unclaimed execution', worker, ends.unclaimed, [1, 0]],
    ['an abandoned one', worker, ends.abandoned, [1, 0]],
    ['a cancelled one', worker, ends.cancelled, [0, 0]],
    ['a success', hook, id => ends.answered(id, true), [0, 0]]
  ]
  for (const [what, make, end, expected] of cases) {
    const cue_id = await make()
    await end(cue_id)
    t.strictSame(await counts(cue_id), expected, what)
  }
  const cue_id = await worker()
  const id = await fire(cue_id)
  const { claim_token } = await claim(id)
  await post(`/v1/executions/${id}/release`, undefined, { 'x-claim-token': claim_token })
  t.strictSame(await counts(cue_id), [0, 0])
})

t.test('counts deliveries and outcomes separately; the larger count raises the alert', async t => {
  const { ends, counts, alerts, cue } = await serve()
  const cue_id = await cue(awaiting)
  await ends.answered(cue_id, false)
  await ends.exhausted(cue_id)
  await ends.exhausted(cue_id)
  t.strictSame(await counts(cue_id), [2, 1])
  await ends.answered(cue_id, false)
  t.strictSame(await counts(cue_id), [0, 2], 'a 2xx ends the row of deliveries')
  t.strictSame(await alerts(), [])
  await ends.exhausted(cue_id)
  await ends.silent(cue_id)
  t.strictSame(await counts(cue_id), [0, 3])
  exactly(t, await alerts('?alert_type=consecutive_failure'), [
    { metadata: { failure_count: 3, first_failure_at: '2030-01-15T09:00:01.000Z' } }
  ])
  await ends.exhausted(cue_id)
  await ends.answered(cue_id, true)
  t.strictSame(await counts(cue_id), [0, 0], 'and a reported success that of outcomes')
})

t.test("a worker's success resets both counts", async t => {
  const { ends, counts, alerts, cue } = await serve()
  const cue_id = await cue()
  await ends.unclaimed(cue_id)
  await ends.unclaimed(cue_id)
  await ends.worked(cue_id, false)
  t.strictSame(await counts(cue_id), [2, 1])
  await ends.worked(cue_id, true)
  t.strictSame(await counts(cue_id), [0, 0])
  await ends.unclaimed(cue_id)
  t.strictSame(await alerts(), [])
})

t.test('acknowledges an alert once; a further failure raises a new one that mentions the acknowledgement', async t => {
  const { ends, alerts, acknowledge, cue, clock } = await serve()
  const cue_id = await cue({ callback, alerts: { consecutive_failures: 2 } })
  await ends.exhausted(cue_id)
  await ends.exhausted(cue_id)
  const [first] = await alerts()
  clock.set('2030-01-15T10:00:00.123Z')
  const acknowledged = { ...first, acknowledged: true, acknowledged_at: '2030-01-15T10:00:00.123Z' }
  t.strictSame((await acknowledge(first.id)).body, acknowledged)
  clock.advance('1 minute')
  t.strictSame(
    await acknowledge(first.id.toUpperCase()).then(answer => [answer.status, answer.body]),
    [200, acknowledged],
    'the same again'
  )
  t.strictSame(await alerts('?acknowledged=false'), [])
  t.strictSame(await alerts('?acknowledged=true'), [acknowledged])
  await ends.exhausted(cue_id)
  const [second] = await alerts('?acknowledged=false')
  exactly(t, second, {
    metadata: { failure_count: 3, first_failure_at: '2030-01-15T09:00:01.000Z', previous_acknowledged_at: '2030-01-15T10:00:00.123Z' }
  })
  t.not(second.id, first.id)
  await ends.exhausted(cue_id)
  exactly(t, await alerts('?acknowledged=false'), [
    { id: second.id, metadata: { failure_count: 4, previous_acknowledged_at: '2030-01-15T10:00:00.123Z' } }
  ])
  t.strictSame(await alerts('?acknowledged=true'), [acknowledged], 'the former one is left as it was')
})

t.test('keeps at most one alert of each type open per cue', async t => {
  const { ends, alerts, cue, acknowledge, pool } = await serve()
  const cue_id = await cue(awaiting)
  const id = await ends.silent(cue_id)
  await ends.silent(cue_id)
  const [alert] = await alerts()
  exactly(t, alert, { alert_type: 'outcome_timeout', severity: 'warning', execution_id: id, metadata: { deadline_seconds: 60 } })
  const again = 'insert into cue.alerts select (jsonb_populate_record(a, $1)).* from cue.alerts a where a.id = $2'
  await t.rejects(pool.query(again, [{ id: randomUUID() }, alert.id]), { code: '23505' })
  await acknowledge(alert.id)
  await ends.silent(cue_id)
  const [second, ...rest] = await alerts('?alert_type=outcome_timeout')
  exactly(t, second, { acknowledged: false, metadata: { previous_acknowledged_at: String } })
  exactly(t, rest, [{ id: alert.id, acknowledged: true }])
  exactly(t, await alerts('?alert_type=consecutive_failure'), [{ acknowledged: false }], 'one of another type is another')
})

t.test('counts all of several simultaneous failures and raises one alert', async t => {
  const { cue, fire, fn, clock, counts, alerts } = await serve()
  const cue_id = await cue({ callback })
  for (let n = 0; n < 8; n++) await fire(cue_id)
  const attempts = await beginWaiting(fn, { limit: 8 })
  clock.advance('1 second')
  const settle = async (attempt: (typeof attempts)[number]): Promise<unknown> =>
    fn.settleAttempts(resultsOf([attempt], { ...refused, gone: true }, clock.now())).catch(error => {
      // As an engine does: the statement waits only briefly for the cue's lock.
      if (!isLockTimeout(error)) throw error
      return settle(attempt)
    })
  await Promise.all(attempts.map(settle))
  t.strictSame(await counts(cue_id), [8, 0])
  exactly(t, await alerts(), [{ metadata: { failure_count: 8 } }])
  t.equal((await alerts()).length, 1)
})

t.test("lists an account's alerts newest first, filtered by type, cue and acknowledgement, in pages", async t => {
  const { ends, alerts, acknowledge, get, del, cue, other, clock } = await serve()
  const strict = { alerts: { consecutive_failures: 1 } }
  const cues = [await cue({ ...awaiting, ...strict }), await cue({ callback, ...strict })] as const
  t.strictSame(await get('/v1/alerts'), {
    alerts: [],
    total: 0,
    total_exact: true,
    next_cursor: null,
    limit: 50,
    offset: 0,
    has_more: false
  })
  await ends.silent(cues[0])
  clock.advance('1 second')
  await ends.exhausted(cues[1])
  const all = await alerts()
  t.strictSame(pluck(all, 'cue_id', 'alert_type'), [
    [cues[1], 'consecutive_failure'],
    ...all.slice(1).map(({ alert_type }: { alert_type: string }) => [cues[0], alert_type])
  ])
  const ids = async (query: string) => (await alerts(query)).map((alert: { id: string }) => alert.id)
  const timeout = all.find((alert: { alert_type: string }) => alert.alert_type === 'outcome_timeout')
  await acknowledge(timeout.id)
  t.strictSame(await ids('?alert_type=outcome_timeout'), [timeout.id])
  t.strictSame(await ids('?alert_type=missed_window'), [])
  t.strictSame(await ids(`?cue_id=${cues[1]}`), [all[0].id])
  t.strictSame(await ids('?cue_id=cue_000000000000'), [])
  t.strictSame(await ids('?acknowledged=true'), [timeout.id])
  t.equal((await ids('?acknowledged=false')).length, 2)
  t.strictSame(await ids(`?acknowledged=false&cue_id=${cues[0]}&alert_type=outcome_timeout`), [])
  exactly(t, await get('/v1/alerts?limit=2&count_to=2'), { total: 2, total_exact: false, next_cursor: all[1].id, has_more: true })
  exactly(t, await get(`/v1/alerts?cursor=${all[1].id}`), { alerts: [{ id: all[2].id }], total: 3, total_exact: true, next_cursor: null })
  const { calls } = await other()
  exactly(t, await calls.get('/v1/alerts'), { alerts: [], total: 0 })
  await del(`/v1/cues/${cues[1]}`)
  t.equal((await alerts()).length, 2, "a deleted cue's are gone")
  exactly(t, await acknowledge(all[0].id), error('alert_not_found', 404))
})
