/** Backfills: slots of a cue that did not run are run later. */
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { once, webhook, worker } from '../support/executions-stage.ts'
import { operationsStage } from '../support/operations-stage.ts'
import { error, invalid } from '../support/setup.ts'

const hourly = { ...webhook, cron: '0 * * * *' }
const from = '2030-01-15T03:00:00Z'
const to = '2030-01-15T08:00:00Z'
const hours = (...list: number[]) => list.map(hour => `2030-01-15T0${hour}:00:00.000Z`)

t.test('runs the slots of a period that have no execution, oldest first, with their nominal time, and each once', async t => {
  const { start, operate, cue, get, pool, account, clock, begin } = await operationsStage()
  const cue_id = await cue({ ...hourly, payload: { task: 'x' } })
  const scheduled = `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, started_at, ended_at, created_at, updated_at)
    values (cue.uuid_v7($3), $1, $2, 'webhook', 'success', $5, $4, '{}', $3, $3, $3, $3)`
  const [, four = '', five = '', six = ''] = hours(3, 4, 5, 6)
  await pool.query(scheduled, [account.id, cue_id, '2030-01-15T04:00:00.2Z', four, 'schedule'])
  await pool.query(scheduled, [account.id, cue_id, '2030-01-15T05:00:00Z', five, 'manual_fire'])
  await pool.query(`insert into cue.outages values ('2030-01-15T05:30:00Z', '2030-01-17T05:30:00Z')`)
  await pool.query(scheduled, [account.id, cue_id, '2030-01-17T05:30:01Z', six, 'schedule'])
  const body = { type: 'backfill', cue_id, from, to, name: 'January' }
  t.same((await start({ ...body, dry_run: true })).body, {
    total: 3,
    sample: hours(3, 5, 7).map(scheduled_for => ({ scheduled_for }))
  })
  clock.advance('20 minutes')
  exactly(t, await operate(body), { type: 'backfill', total: 3, succeeded: 3, status: 'completed' })
  const { executions } = await get(`/v1/executions?cue_id=${cue_id}&triggered_by=backfill`)
  t.same(
    executions.map(({ scheduled_for, status }: { scheduled_for: string; status: string }) => [scheduled_for, status]).reverse(),
    hours(3, 5, 7).map(slot => [slot, 'pending'])
  )
  clock.advance('1 second')
  const attempts = await begin()
  t.same(
    attempts.filter(one => one.cue_id === cue_id).map(one => [one.scheduled_for.toISOString(), one.payload]),
    hours(3, 5, 7).map(slot => [slot, '{"task": "x"}'])
  )
  exactly(t, await get(`/v1/cues/${cue_id}`), { run_count: 3, fired_count: 0, next_run: '2030-01-15T10:00:00.000Z' })
  exactly(t, await operate(body), { total: 0, status: 'completed' }, 'again')
  exactly(t, await start({ ...body, from: '2030-01-15T02:00:00Z', dry_run: true }), { body: { total: 1 } })
  await pool.query('delete from cue.outages')
})

t.test('leaves out slots that are still to come, and what the schedule excludes', async t => {
  const { start, cue, call, clock } = await operationsStage()
  const cue_id = await cue({
    ...webhook,
    schedule: { every: '1h', anchor: '2030-01-15T00:30:00Z', starts_at: '2030-01-15T05:00:00Z' },
    cron: null
  })
  clock.set('2030-01-15T12:10:00Z')
  const total = async (until: string) => (await start({ type: 'backfill', cue_id, from, to: until, dry_run: true })).body.total
  t.equal(await total('2030-01-15T09:30:00Z'), 4, 'from is inclusive, to is not')
  t.equal(await total('2030-01-15T12:00:00Z'), 4, 'the next run is due at 09:30')
  await call('POST', `/v1/cues/${cue_id}/pause`)
  t.equal(await total('2030-01-15T12:00:00Z'), 7)
})

t.test('with overlap, slots wait for each other', async t => {
  const { operate, start, batch, cue, get, call, clock } = await operationsStage()
  const cue_id = await cue({ ...worker, cron: '* * * * *' })
  const body = { type: 'backfill', cue_id, from: '2030-01-15T05:00:00Z', to: '2030-01-15T06:50:00Z', overlap: 'queue_all' }
  const { body: created } = await start(body)
  exactly(t, created, { total: 110 })
  const isStuck = async () => {
    for (let n = 0; n < 100; n++) if ((await batch(created.id))!.wait_ms === 250) return true
    return false
  }
  t.ok(await isStuck())
  exactly(t, await get(`/v1/operations/${created.id}`), { status: 'running', done: 101, succeeded: 101, errors: [] })
  const claimed: string[] = []
  for (let n = 0; n < 3; n++) {
    clock.advance('1 second')
    const claim = await call('POST', '/v1/executions/claim', { worker_id: 'w' })
    claimed.push(claim.body.scheduled_for)
    await call('POST', `/v1/executions/${claim.body.execution_id}/outcome`, { success: true }, { 'x-claim-token': claim.body.claim_token })
  }
  t.same(claimed, ['2030-01-15T05:00:00.000Z', '2030-01-15T05:01:00.000Z', '2030-01-15T05:02:00.000Z'])
  t.ok(await isStuck())
  exactly(t, await get(`/v1/operations/${created.id}`), { done: 104 })
  await call('POST', `/v1/operations/${created.id}/abort`)
  exactly(t, await operate({ ...body, overlap: 'skip' }), {
    total: 6,
    succeeded: 0,
    failed: 6,
    errors: Array(6).fill({ code: 'overlap_skipped' })
  })
})

t.test('refuses what is not a backfill, and names the field', async t => {
  const { start, cue, as, register } = await operationsStage()
  const cue_id = await cue({ ...webhook, cron: '* * * * *' })
  const body = { type: 'backfill', cue_id, from, to }
  const cases: [object, string][] = [
    [{ cue_id: null }, 'cue_id'],
    [{ from: null }, 'from'],
    [{ to: undefined }, 'to'],
    [{ to: from }, 'to'],
    [{ to: '2030-01-16T00:00:00Z' }, 'to'],
    [{ from: '2030-01-14T12:00:00Z' }, 'to'],
    [{ from: '0001-01-01T00:00:00Z' }, 'to'],
    [{ from: 'then' }, 'from'],
    [{ cue_id: await cue(once) }, 'cue_id'],
    [{ filter: { name: 'x' } }, 'filter'],
    [{ ids: [cue_id] }, 'ids'],
    [{ overlap: 'never' }, 'overlap'],
    [{ type: 'replay', filter: { status: 'failed' } }, 'cue_id'],
    [{ type: 'pause', filter: { name: 'x' }, cue_id: null, from: null, to: null, overlap: 'skip' }, 'overlap']
  ]
  for (const [change, field] of cases) exactly(t, await start({ ...body, ...change }), invalid('body', field), JSON.stringify(change))
  exactly(t, await start({ ...body, from: '2030-01-14T12:00:00Z' }), {
    body: { error: { message: /leaves 1200 slots; a backfill has at most 1000/ } }
  })
  exactly(t, await start({ ...body, cue_id: 'cue_000000000000' }), error('cue_not_found', 404))
  exactly(t, await start({ ...body, cue_id: 'x' }), { status: 404 })
  exactly(t, await as(await register()).call('POST', '/v1/operations', body), { status: 404 })
})
