import { rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { openState } from '../../src/cli/worker/state.ts'
import { exactly } from '../support/exactly.ts'
import { eventually } from '../support/setup.ts'
import { directory, isAlive, workerStage } from '../support/worker-stage.ts'

const patient = (dir: { path: (name: string) => string }) => `job=until [ -e ${dir.path('go')} ]; do sleep 0.05; done; echo done`
const lapse = `update cue.executions set lease_expires_at = now() - interval '1 second', last_heartbeat_at = now() - interval '1 hour'`

t.test('extends a claim as long as its handler runs', async t => {
  const { dir, execution, pool, run } = await workerStage(t)
  await execution()
  const worker = run({ handler: [patient(dir)] }, { leaseMs: 50 })
  await worker.event('started')
  await pool.query(lapse)
  await eventually(async () => (await pool.query('select lease_expires_at > now() as extended from cue.executions')).rows[0].extended)
  dir.write('go', '')
  await worker.event('reported')
})

t.test('a worker that loses its claim kills the handler and reports nothing', async t => {
  const { client, dir, execution, fn, pool, run } = await workerStage(t)
  const id = await execution()
  const worker = run({ handler: [patient(dir)], 'worker-id': 'w1' }, { leaseMs: 300 })
  const { pid } = await worker.event('started')
  const other = await eventually(async () => {
    await pool.query(`${lapse}; update cue.workers set last_heartbeat = now() - interval '1 hour'`)
    await fn.recoverLeases({}) // unless a heartbeat came between
    return (await client.executions.claimNext({ worker_id: 'w2' }))[0]
  })
  exactly(t, other, { execution_id: id, attempt: 2 })
  await worker.event('claim lost')
  await eventually(() => !isAlive(pid as number))
  await client.executions.reportOutcome(id, { success: true, result: 'the other' }, { claimToken: other.claim_token })
  worker.stop()
  await worker.done
  exactly(t, await client.executions.get(id), { status: 'success', outcome: { result: 'the other' } })
  t.notOk(worker.events.some(({ event }) => event === 'reported'))
})

t.test('the outcome reported by the handler itself counts', async t => {
  const { client, execution, run } = await workerStage(t)
  const id = await execution()
  const report = `fetch(process.env.SERVICE_BASE_URL + '/v1/executions/' + process.env.SERVICE_EXECUTION_ID + '/outcome', {
    method: 'POST', body: JSON.stringify({ success: true, result: 'by itself' }),
    headers: { authorization: 'Bearer ' + process.env.SERVICE_API_KEY, 'content-type': 'application/json' } })`
  const worker = run({ handler: [`job="${process.execPath}" -e "${report}"; exit 1`] })
  exactly(t, await worker.event('not reported'), { code: 'outcome_already_reported' })
  exactly(t, await client.executions.get(id), { status: 'success', outcome: { result: 'by itself' } })
})

t.test('runs at most as many handlers at once as configured', async t => {
  const { dir, execution, run, client } = await workerStage(t)
  const cues = [1, 2, 3, 4, 5].map(n => execution({ name: `job ${n}` }))
  const ids = await Promise.all(cues)
  const worker = run({ handler: [patient(dir)], concurrency: '2' })
  await worker.event('started', 2)
  t.equal((await client.executions.claimable()).length, 3)
  dir.write('go', '')
  await worker.event('reported', 5)
  for (const id of ids) exactly(t, await client.executions.get(id), { status: 'success', attempts: 1 })
})

t.test('the handler * runs all other tasks, and executions without a task', async t => {
  const { client, execution, run } = await workerStage(t)
  const ids = [await execution(), await execution({ payload: { task: 'odd' } }), await execution({ payload: [1] })]
  await run({ handler: ['job=echo its own', '*=echo any other'] }).event('reported', 3)
  const results = await Promise.all(ids.map(async id => (await client.executions.get(id)).outcome?.result))
  t.same(results, ['its own', 'any other', 'any other'])
})

t.test('without *, leaves other tasks to other workers', async t => {
  const { client, execution, run } = await workerStage(t)
  const other = await execution({ payload: { task: 'odd' } })
  await execution()
  await run({ handler: ['job=true'] }).event('reported')
  exactly(t, await client.executions.get(other), { status: 'pending' })
})

t.test('recovers a claim whose response was lost', async t => {
  const { client, execution, run } = await workerStage(t)
  const id = await execution()
  let lost = 0
  const lossy: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    if (!String(input).endsWith('/executions/claim') || lost++ > 0) return answer
    await answer.text() // the service knows nothing of the loss
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) })
  }
  const worker = run({ handler: ['job=true'], 'worker-id': 'w1' }, { fetch: lossy })
  await worker.event('reported')
  exactly(t, await client.executions.get(id), { status: 'success', attempts: 2, attempt_log: [{ result: 'lost' }, { result: 'success' }] })
})

t.test('recovers a claim whose response was lost while handlers overlap', async t => {
  const { client, dir, execution, run } = await workerStage(t)
  const until = (name: string) => `until [ -e ${dir.path(name)} ]; do sleep 0.05; done`
  let claimed = 0
  const lossy: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    if (!String(input).endsWith('/executions/claim') || !answer.ok || ++claimed !== 2) return answer
    await answer.text()
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) })
  }
  await execution({ payload: { task: 'a' } })
  const worker = run({ handler: [`a=${until('a')}`, 'b=true', `c=${until('c')}`], concurrency: '2' }, { fetch: lossy })
  await worker.event('started')
  const id = await execution({ payload: { task: 'b' } })
  await worker.event('claim failed')
  await execution({ payload: { task: 'c' } })
  await delay(1500) // longer than its pause: c would run beside a, and go on after it
  dir.write('a', '')
  await worker.event('reported', 2)
  exactly(t, await client.executions.get(id), { status: 'success', attempts: 2 })
  dir.write('c', '')
  await worker.event('reported', 3)
})

t.test('waits out rate limits and errors from proxies', async t => {
  const { client, execution, run } = await workerStage(t)
  const id = await execution()
  const trouble: Record<string, number> = {}
  const busy: typeof fetch = async (input, init) => {
    const path = new URL(String(input)).pathname.split('/').pop()!
    trouble[path] = (trouble[path] ?? 0) + 1
    if (trouble[path] === 1)
      return new Response('{"error": {"code": "rate_limit_exceeded"}}', { status: 429, headers: { 'retry-after': '0' } })
    if (trouble[path] === 2) return new Response('<html>', { status: 502 })
    return fetch(input, init)
  }
  await run({ handler: ['job=true'] }, { fetch: busy }).event('reported')
  exactly(t, await client.executions.get(id), { status: 'success' })
  t.equal(trouble.outcome, 3)
  t.ok(trouble.claim! >= 3)
})

t.test('keeps a claim of a killed worker whose report is waiting', async t => {
  const { client, dir, execution, baseUrl, run } = await workerStage(t)
  const id = await execution()
  const claim = await client.executions.claim(id, { worker_id: 'w1' })
  const left = openState(dir.path('state'), baseUrl, 'w1')
  left.claims.put(claim, claim)
  left.reports.put(claim, { held: claim, report: { success: true, result: 'from the disk' } })
  left.close()
  const worker = run({ handler: ['job=true'], 'worker-id': 'w1' })
  await worker.event('reported')
  exactly(t, await client.executions.get(id), { status: 'success', outcome: { result: 'from the disk' }, attempts: 1 })
  t.same(worker.state.claims.all(), [])
})

t.test('a worker that cannot write to disk releases its claims and exits', async t => {
  const { client, dir, execution, run } = await workerStage(t)
  const worker = run({ handler: ['job=true'], 'worker-id': 'w1' })
  await worker.event('ready')
  rmSync(dir.path('state'), { recursive: true })
  const id = await execution()
  await t.rejects(worker.done, { code: 'ENOENT' })
  exactly(t, worker.events.map(({ event }) => event).slice(1), ['claimed', 'run failed', 'released', 'stopping', 'stopped'])
  exactly(t, await client.executions.get(id), { status: 'pending' })
})

t.test('a worker sends heartbeats', async t => {
  const { client, pool, run } = await workerStage(t)
  const worker = run({ handler: ['job=true'], 'worker-id': 'w1' }, { beatMs: 50 })
  await worker.event('ready')
  await pool.query(`update cue.workers set last_heartbeat = now() - interval '1 hour'`)
  await eventually(async () => (await client.workers.list()).workers[0]?.heartbeat_status === 'active')
})

t.test('a worker takes over the state of workers that are gone', async t => {
  const dir = directory(t)
  const held = { execution_id: 'e1', claim_token: 'c', execution_token: 't', attempt: 1 }
  const url = 'http://127.0.0.1:8080'
  const first = openState(dir.path('state'), url, 'w/1 ../é')
  first.reports.put(held, { held, report: { success: true } })
  first.claims.put({ ...held, execution_id: 'e2' }, { ...held, execution_id: 'e2' })
  t.throws(() => openState(dir.path('state'), url, 'w/1 ../é'), { exitCode: 2, message: /is already running on this machine/ })
  first.close()
  const other = openState(dir.path('state'), 'http://127.0.0.1:9090', 'w2')
  t.same([other.reports.all(), other.claims.all()], [[], []], 'another service has nothing to do with it')
  const next = openState(dir.path('state'), url, 'w2')
  exactly(t, [next.reports.all(), next.claims.all()], [[{ held }], [{ execution_id: 'e2' }]])
  next.claims.put({ ...held, execution_id: 'e3' }, { ...held, execution_id: 'e3' })
  const third = openState(dir.path('state'), url, 'x'.repeat(255))
  exactly(t, third.claims.all(), [{ execution_id: 'e2' }], 'but a running one is not robbed')
})
