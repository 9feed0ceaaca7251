import t from 'tap'
import { build as buildApp } from '../../src/app.ts'
import { exactly } from '../support/exactly.ts'
import { eventually } from '../support/setup.ts'
import { isAlive, workerStage } from '../support/worker-stage.ts'

/** A handler that ends once a file exists. */
const patient = (dir: { path: (name: string) => string }) => `job=until [ -e ${dir.path('go')} ]; do sleep 0.05; done; echo done`

t.test('a worker runs the command of a task and reports its output', async t => {
  const { client, dir, execution, start } = await workerStage(t)
  const script = `cat > ${dir.path('stdin')}; cp "$SERVICE_PAYLOAD_FILE" ${dir.path('file')}; env > ${dir.path('env')}; echo warned >&2; echo done`
  const id = await execution({ payload: { task: 'job', n: 12345678901234567890n.toString() } })
  const worker = start(['--handler', `job=${script}`, '--worker-id', 'w1'])
  await worker.event('reported')
  const shown = await client.executions.get(id)
  exactly(t, shown, { status: 'success', outcome_success: true, outcome: { result: 'done' }, claimed_by_worker: 'w1', attempts: 1 })
  const env = Object.fromEntries(
    dir
      .read('env')
      .split('\n')
      .map(line => /^(\w+)=(.*)$/.exec(line)?.slice(1) ?? ['', ''])
  )
  exactly(t, env, {
    SERVICE_EXECUTION_ID: id,
    SERVICE_CUE_ID: shown.cue_id,
    SERVICE_CUE_NAME: 'a job',
    SERVICE_WORKER_ID: 'w1',
    SERVICE_SCHEDULED_FOR: shown.scheduled_for,
    SERVICE_ATTEMPT: '1',
    SERVICE_BASE_URL: client.baseUrl,
    SERVICE_API_KEY: /^svc_sk_x_/,
    SERVICE_OUTCOME_FILE: /outcome\.json$/,
    SERVICE_PAYLOAD_FILE: /payload\.json$/
  })
  t.equal(env.PGCUE_API_KEY, undefined, "the account's key stays with the worker")
  for (const text of [dir.read('stdin'), dir.read('file'), env.SERVICE_PAYLOAD!]) {
    t.same(JSON.parse(text), { task: 'job', n: '12345678901234567890' })
  }
  exactly(t, await client.workers.list(), { workers: [{ worker_id: 'w1', handlers: ['job'], heartbeat_status: 'active' }] })
  worker.kill('SIGTERM')
  exactly(t, await worker.exited, { code: 0 })
  exactly(t, await client.workers.list(), { total: 0 }, 'and it signs off')
})

t.test('a killed worker leads to a second claim and one accepted outcome', async t => {
  const { client, dir, execution, fn, pool, start } = await workerStage(t)
  const id = await execution()
  const first = start(['--handler', patient(dir), '--worker-id', 'w1', '--state-dir', dir.path('other')])
  await first.event('claimed')
  const claim = await eventually(async () => (await pool.query('select claim_token from cue.executions where id = $1', [id])).rows[0])
  first.kill('SIGKILL')
  await first.exited
  const second = start(['--handler', patient(dir), '--worker-id', 'w2'])
  await second.event('ready')
  await pool.query(
    `update cue.executions set lease_expires_at = now() - interval '1 second', last_heartbeat_at = now() - interval '1 hour'`
  )
  await pool.query(`update cue.workers set last_heartbeat = now() - interval '1 hour' where worker_id = 'w1'`)
  await fn.recoverLeases({})
  await second.event('claimed')
  dir.write('go', '')
  await second.event('reported')
  await t.rejects(client.executions.reportOutcome(id, { success: false }, { claimToken: claim.claim_token }), { code: 'claim_lost' })
  await t.rejects(client.executions.reportOutcome(id, { success: false }), { code: 'outcome_already_reported' })
  exactly(t, await client.executions.get(id), {
    status: 'success',
    outcome: { success: true },
    claimed_by_worker: 'w2',
    attempts: 2,
    attempt_log: [
      { attempt: 1, result: 'lost', worker_id: 'w1' },
      { attempt: 2, result: 'success', worker_id: 'w2' }
    ]
  })
})

t.test('a worker restarted after a kill ends the leftover handler and releases its execution', async t => {
  const { client, dir, execution, start } = await workerStage(t)
  const id = await execution()
  const first = start(['--handler', patient(dir), '--worker-id', 'w1'])
  const orphan = (await first.event('started')).pid as number
  first.kill('SIGKILL')
  await first.exited
  t.ok(isAlive(orphan), 'a kill does not reach the handler')
  const again = start(['--handler', patient(dir), '--worker-id', 'w1'])
  exactly(t, await again.event('released leftover claims'), { execution_id: id, answer: 'released', handler_killed: true })
  t.notOk(isAlive(orphan))
  await again.event('claimed')
  dir.write('go', '')
  await again.event('reported')
  exactly(t, await client.executions.get(id), { status: 'success', attempts: 2, attempt_log: [{ result: 'lost' }, { result: 'success' }] })
})

t.test('an undelivered report survives the worker and arrives later', async t => {
  const { app, baseUrl, client, config, dir, execution, pool, start } = await workerStage(t)
  const id = await execution()
  const worker = start(['--handler', patient(dir), '--worker-id', 'w1'])
  await worker.event('claimed')
  await app.close()
  dir.write('go', '')
  await worker.event('report delayed')
  worker.kill('SIGTERM')
  exactly(t, await worker.event('stopped'), { unreported: 1 })
  exactly(t, await worker.exited, { code: 0 })

  const again = start(['--handler', patient(dir), '--worker-id', 'w1'])
  await again.event('registration failed')
  const back = await buildApp({ config, pool })
  t.teardown(() => back.close())
  await back.listen({ host: '127.0.0.1', port: Number(new URL(baseUrl).port) })
  exactly(t, await again.event('reported'), { execution_id: id, success: true })
  exactly(t, await client.executions.get(id), { status: 'success', outcome: { result: 'done' }, attempts: 1 })
})

t.test('on SIGTERM, claims nothing more and lets handlers finish', async t => {
  const { client, dir, execution, start } = await workerStage(t)
  const id = await execution()
  const worker = start(['--handler', patient(dir), '--concurrency', '2'])
  await worker.event('claimed')
  worker.kill('SIGTERM')
  await worker.event('stopping')
  const later = await execution()
  dir.write('go', '')
  exactly(t, await worker.exited, { code: 0 })
  exactly(t, await client.executions.get(id), { status: 'success' })
  exactly(t, await client.executions.get(later), { status: 'pending' })
  t.equal(worker.events.filter(({ event }) => event === 'claimed').length, 1)
})

t.test('on SIGTERM, ends handlers that take too long, and releases their claims without using up an attempt', async t => {
  const { client, dir, execution, start, pool } = await workerStage(t)
  const id = await execution()
  const worker = start(['--handler', patient(dir), '--drain', '0'])
  const handler = (await worker.event('started')).pid as number
  worker.kill('SIGTERM')
  exactly(t, await worker.event('released'), { execution_id: id, answer: 'released' })
  exactly(t, await worker.exited, { code: 0 })
  t.notOk(isAlive(handler))
  exactly(t, await client.executions.get(id), { status: 'pending', outcome: null })
  exactly(t, (await pool.query('select lost_attempts, attempts from cue.executions')).rows, [{ attempts: 1, lost_attempts: 1 }])
})

t.test('an invalid or insufficient key ends the worker with code 2', async t => {
  const { client, start } = await workerStage(t)
  const bad = start(['--handler', 'job=true'], { PGCUE_API_KEY: 'svc_sk_wrong' })
  exactly(t, await bad.exited, { code: 2, stderr: /invalid_api_key/ })
  const { api_key } = await client.keys.create({ label: 'reads', scopes: ['read'] })
  exactly(t, await start(['--handler', 'job=true'], { PGCUE_API_KEY: api_key }).exited, { code: 2, stderr: /insufficient_scope/ })
  exactly(t, await start(['--handler', 'job=true'], { PGCUE_API_KEY: '' }).exited, { code: 2, stderr: /no_key/ })
})

t.test('a revoked key ends the worker but not its running handlers', async t => {
  const { client, dir, execution, start } = await workerStage(t)
  const { id: key, api_key } = await client.keys.create({ label: 'worker', scopes: ['worker'] })
  const id = await execution()
  const worker = start(['--handler', patient(dir), '--concurrency', '3'], { PGCUE_API_KEY: api_key })
  await worker.event('claimed')
  await client.keys.revoke(key)
  await execution() // ends the wait where that began before, and the next request, for the third slot, is refused
  await worker.event('stopping')
  dir.write('go', '')
  exactly(t, await worker.exited, { code: 2 })
  await eventually(async () => (await client.executions.get(id)).status === 'success')
})

t.test('rejects a second worker of the same name, and numbers unnamed ones', async t => {
  const { start } = await workerStage(t)
  const first = start(['--handler', 'job=true', '--worker-id', 'w1'])
  await first.event('ready')
  exactly(t, await start(['--handler', 'job=true', '--worker-id', 'w1']).exited, {
    code: 2,
    stderr: /w1 is already running on this machine/
  })
  const [one, two] = [start(['--handler', 'job=true']), start(['--handler', 'job=true'])]
  t.not((await one.event('ready')).worker_id, (await two.event('ready')).worker_id)
})

t.test(
  'a worker that cannot keep its state exits with a message',
  { skip: process.platform !== 'linux' && 'there is no /proc' },
  async t => {
    const { start } = await workerStage(t)
    const worker = start(['--handler', 'job=true', '--state-dir', '/proc/x/workers'])
    const timer = setTimeout(() => worker.kill('SIGKILL'), 10_000)
    exactly(t, await worker.exited, { code: 1, stderr: /Cannot write the worker's state directory: ENOENT.*\/proc\/x/ })
    clearTimeout(timer)
  }
)
