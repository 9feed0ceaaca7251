// Overlap over HTTP; and with an engine, real requests and real time.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { build, error, eventually } from '../support/setup.ts'

const service = serviceAt('2030-01-15T08:30:00.000Z')
const skipped = error('overlap_skipped', 409)

t.test('a fire and a replay take overlap', async t => {
  const { cue, fire, call, post, get, claim } = await service()
  const id = await cue({ overlap: 'skip' })
  const first = await fire(id)
  exactly(t, await call('POST', `/v1/cues/${id}/fire`, { overlap: 'skip' }), skipped)
  const queued = await fire(id, { overlap: 'queue_one' })
  exactly(t, await get(`/v1/executions/${queued}`), { status: 'pending', next_retry: null, started_at: null })
  exactly(t, await call('POST', `/v1/executions/${queued}/claim`, { worker_id: 'w' }), error('already_claimed', 409))
  const { claim_token } = await claim(first)
  await post(`/v1/executions/${first}/outcome`, { success: true }, { 'x-claim-token': claim_token })
  exactly(t, await claim(queued), { claimed: true })
  exactly(t, await call('POST', `/v1/executions/${first}/replay`, { overlap: 'skip' }), skipped)
  exactly(t, await call('POST', `/v1/executions/${first}/replay`, { overlap: 'cancel_previous' }), {
    status: 200,
    body: { status: 'pending' }
  })
  exactly(t, await get(`/v1/executions/${queued}`), {
    status: 'failed',
    error_message: 'superseded by the next run',
    attempt_log: [{ attempt: 1, result: 'failed', error: 'superseded by the next run', worker_id: 'w1' }]
  })
  exactly(t, await call('POST', `/v1/executions/${queued}/outcome`, { success: true }), error('claim_lost', 409))
  exactly(t, await call('POST', `/v1/executions/${first}/replay`), { status: 200 })
  exactly(t, await call('POST', `/v1/executions/${first}/replay`, null), { status: 200 })
})

t.test('refuses bad overlaps, naming the field, and changes nothing', async t => {
  const { cue, fire, call, rows } = await service()
  const id = await cue()
  const execution = await fire(id)
  await call('POST', `/v1/executions/${execution}/cancel`)
  const before = await rows('select * from cue.executions')
  for (const overlap of ['never', 'SKIP', '', 7, true, [], ['skip'], {}, 'skip\u0000', 'x'.repeat(10_000)]) {
    for (const path of [`/v1/cues/${id}/fire`, `/v1/executions/${execution}/replay`]) {
      const { status, body } = await call('POST', path, { overlap })
      t.equal(status, typeof overlap === 'string' && overlap.includes('\u0000') ? 400 : 422, JSON.stringify(overlap).slice(0, 50))
      if (status === 422) t.same([body.error.code, body.detail[0].loc], ['validation_error', ['body', 'overlap']])
    }
  }
  exactly(t, await call('POST', `/v1/executions/${execution}/replay`, { overlaps: 'skip' }), {
    status: 422,
    body: { detail: [{ type: 'extra_forbidden', loc: ['body', 'overlaps'] }] }
  })
  t.same(await rows('select * from cue.executions'), before)
})

t.test('the same idempotency key with another overlap is a different request', async t => {
  const { cue, fire, call } = await service()
  const id = await cue()
  const first = await fire(id, { idempotency_key: 'k', overlap: 'skip' })
  t.equal(await fire(id, { idempotency_key: 'k', overlap: 'skip' }), first, 'the same one again, although it is running')
  exactly(t, await call('POST', `/v1/cues/${id}/fire`, { idempotency_key: 'k' }), error('idempotency_key_conflict', 409))
  const header = { 'idempotency-key': 'h' }
  exactly(t, await call('POST', `/v1/cues/${id}/fire`, { overlap: 'skip' }, header), skipped)
  await call('POST', `/v1/executions/${first}/cancel`)
  exactly(t, await call('POST', `/v1/cues/${id}/fire`, { overlap: 'skip' }, header), { status: 200 })
})

/** Counts requests that are open, and those that the sender has aborted. */
const counting = async (t: Test, answerMs: number) => {
  const seen = { open: 0, most: 0, aborted: 0, requests: 0 }
  const server = createServer((_, response) => {
    seen.requests++
    seen.most = Math.max(seen.most, ++seen.open)
    const timer = setTimeout(() => response.end('{}'), answerMs)
    response.on('close', () => {
      clearTimeout(timer)
      seen.open--
      if (!response.writableEnded) seen.aborted++
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

const everySecond = { name: 'c', cron: '* * * * * *' }

t.test('cancel_previous aborts the request that is open, and the next slot is sent', async t => {
  const { post, get, url } = await build(t)
  const hook = await counting(t, 5000)
  await startEngine(t, testConfig(url))
  const { id } = await post('/v1/cues', { ...everySecond, callback_url: hook.url, overlap: 'cancel_previous' })
  await eventually(() => hook.seen.aborted > 0 && hook.seen.requests > 1)
  await post(`/v1/cues/${id}/pause`)
  const { executions } = await get(`/v1/executions?cue_id=${id}`)
  // On a busy machine, earlier ones may have been superseded before they were sent.
  const aborted = executions.findLast(({ attempts }: { attempts: number }) => attempts > 0)
  exactly(t, aborted, { status: 'failed', error_message: 'superseded by the next run', attempts: 1, http_status: null })
})

t.test('with two engines, a receiver never gets two requests of a cue at once, and every slot is accounted for', async t => {
  const { post, get, url, pool } = await build(t)
  const hooks = await Promise.all(['skip', 'queue_one', 'queue_all'].map(() => counting(t, 1500)))
  for (let n = 0; n < 2; n++) await startEngine(t, testConfig(url))
  const ids: string[] = []
  for (const [n, overlap] of ['skip', 'queue_one', 'queue_all'].entries())
    ids.push((await post('/v1/cues', { ...everySecond, callback_url: hooks[n]!.url, overlap })).id)
  await eventually(() => hooks.every(({ seen }) => seen.requests > 3))
  for (const id of ids) await post(`/v1/cues/${id}/pause`)
  for (const [n, id] of ids.entries()) {
    t.equal(hooks[n]!.seen.most, 1)
    const { missed, execution_total, fired_count } = await get(`/v1/cues/${id}`)
    t.equal(execution_total, fired_count)
    const dropped = missed.reduce((sum: number, { count }: { count: number }) => sum + count, 0)
    const { rows } = await pool.query(
      `select (extract(epoch from r.last_slot - min(e.scheduled_for)) + 1)::int as slots
         from cue.cue_runs r join cue.executions e using (cue_id) where cue_id = $1 group by r.last_slot`,
      [id]
    )
    t.equal(execution_total + dropped, rows[0].slots)
    t.equal(dropped > 0, n < 2)
  }
})
