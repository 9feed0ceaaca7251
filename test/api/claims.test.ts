/** Claims: their order, filters, releases, timeouts, removed workers and execution tokens. */
import pg from 'pg'
import t from 'tap'
import { createFunctions } from '../../src/database/functions.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { addWaiting, serviceAt } from '../support/service.ts'
import { error, invalid } from '../support/setup.ts'

const serve = serviceAt('2030-01-15T09:00:00Z')

t.test('claims the execution that has waited longest, whatever its task', async t => {
  const { call, post, cue, fire, clock } = await serve()
  const ids: string[] = []
  for (const task of ['b', 'c', 'a', undefined]) {
    ids.push(await fire(await cue({ payload: { task } })))
    clock.advance('1 second')
  }
  const claimed = []
  for (const _ of ids) claimed.push((await post('/v1/executions/claim', { worker_id: 'w' })).execution_id)
  t.strictSame(claimed, ids)
  exactly(t, await call('POST', '/v1/executions/claim'), error('nothing_claimable', 409))
})

t.test('a claim can name one task, several tasks, or a number of executions', async t => {
  const { call, post, cue, fire, clock } = await serve()
  const ids = new Map<string, string>()
  for (const task of ['a', 'b', 'c', 'd', 'e']) {
    ids.set(task, await fire(await cue({ payload: { task } })))
    clock.advance('1 second')
  }
  const claim = (body: object) => post('/v1/executions/claim', body)
  exactly(t, await claim({ task: 'c' }), { claimed: true, execution_id: ids.get('c'), claim_token: String, payload: { task: 'c' } })
  exactly(t, await claim({ tasks: ['e', 'b', 'x'] }), { execution_id: ids.get('b'), executions: undefined })
  const { executions, ...rest } = await claim({ limit: 10, tasks: ['e', 'a', 'a'] })
  exactly(t, executions, [{ execution_id: ids.get('a') }, { execution_id: ids.get('e') }])
  t.strictSame(rest, {})
  exactly(t, await claim({ limit: 1, worker_id: 'w' }), { executions: [{ execution_id: ids.get('d'), lease_seconds: 900 }] })
  exactly(t, await call('POST', '/v1/executions/claim', { limit: 3 }), error('nothing_claimable', 409))
})

t.test('rejects values out of range', async t => {
  const { call } = await serve()
  const bodies = [
    ...[0, 11, 1.5, '1', null].map(limit => ({ limit })),
    ...[-1, 30.5, 31, '5'].map(wait => ({ wait })),
    ...['', 'x'.repeat(256), 7, null].map(worker_id => ({ worker_id })),
    { tasks: [] },
    { tasks: 'a' },
    { task: '' },
    { task: 'a', tasks: ['b'] },
    { unknown: 1 }
  ]
  for (const body of bodies) {
    exactly(t, await call('POST', '/v1/executions/claim', body), invalid('body', String), JSON.stringify(body))
  }
  for (const body of [{ worker_id: 'w' }, { handlers: [] }, { worker_id: 'w', handlers: 'x' }, { worker_id: 'w', handlers: [1] }]) {
    exactly(t, await call('POST', '/v1/worker/heartbeat', body), { status: 422 }, JSON.stringify(body))
  }
})

t.test('a backlog of one task does not hide other tasks', async t => {
  const service = await serve()
  const { get, post, cue, fire, pool } = service
  await addWaiting(service, await cue(), 2000)
  const rare = await fire(await cue({ payload: { task: 'rare' } }))
  const plain = await fire(await cue({ payload: {} }))
  const { executions } = await get('/v1/executions/claimable?limit=5')
  const listed = executions.map(({ id }: { id: string }) => id)
  t.equal(listed.length, 5)
  t.ok(listed.includes(rare) && listed.includes(plain), 'both are listed')
  const { rows } = await pool.query('select id from cue.executions order by claimable_at, id limit 1')
  t.equal(listed[0], rows[0].id, 'the oldest is listed first')
  const claimed: string[] = []
  for (let n = 0; n < 2000 && !(claimed.includes(rare) && claimed.includes(plain)); n++) {
    claimed.push((await post('/v1/executions/claim')).execution_id)
  }
  t.ok(claimed.length < 2000, 'both are claimed before the backlog ends')
  const { executions: batch } = await post('/v1/executions/claim', { limit: 10 })
  t.equal(batch.length, 10)
})

t.test('among more tasks than are served in one turn, none starves', async t => {
  const service = await serve()
  const { get, post, cue } = service
  const cue_id = await cue()
  const ids = new Set<string>()
  for (let n = 0; n < 150; n++) {
    for (const id of await addWaiting(service, cue_id, 1, `task ${String(n).padStart(3, '0')}`)) ids.add(id)
    service.clock.advance('1 millisecond')
  }
  t.equal((await get('/v1/executions/claimable?limit=100')).executions.length, 100)
  for (let n = 0; n < 150; n++) ids.delete((await post('/v1/executions/claim')).execution_id)
  t.equal(ids.size, 0)
})

t.test('simultaneous claims each get executions they asked for', async t => {
  const service = await serve()
  const { cue, other, post, fn, account } = service
  const { account: second, calls } = await other()
  const mine = [await addWaiting(service, await cue(), 12), await addWaiting(service, await cue({ payload: { task: 'b' } }), 3, 'b')].flat()
  const theirs = await addWaiting(service, await cue({}, calls), 4)
  const asked = [
    ...Array.from({ length: 10 }, (_, n) => ({ by: post, own: mine, body: { worker_id: `w${n}` } })),
    ...Array.from({ length: 3 }, (_, n) => ({ by: post, own: mine, body: { worker_id: `b${n}`, task: 'b', limit: 2 } })),
    ...Array.from({ length: 6 }, (_, n) => ({ by: calls.post, own: theirs, body: { worker_id: `o${n}` } }))
  ]
  const answers = await Promise.all(
    asked.map(async ({ by, ...rest }) => ({ ...rest, answer: await by('/v1/executions/claim', rest.body) }))
  )
  const taken = new Set<string>()
  for (const { own, body, answer } of answers) {
    const claims: { execution_id: string; task: string }[] = answer.executions ?? (answer.claimed ? [answer] : [])
    for (const { execution_id, task } of claims) {
      t.ok(own.includes(execution_id) && !taken.has(execution_id), 'of its own account, and claimed by nobody else')
      if ('task' in body) t.equal(task, body.task)
      t.equal((await service.execution(execution_id)).claimed_by_worker, body.worker_id)
      taken.add(execution_id)
    }
    if (claims.length === 0) exactly(t, answer, { error: { code: 'nothing_claimable' } })
  }
  t.equal(theirs.filter(id => taken.has(id)).length, 4, 'all four of the other account are claimed by its six requests')

  // One statement, with fewer executions than requested.
  const left = mine.filter(id => !taken.has(id))
  const wanted = [1, 2, 10].map(limit => ({ account_id: account.id, worker_id: `last ${limit}`, limit }))
  const claims = await fn.claimNext({ claims: JSON.stringify([...wanted, { account_id: second.id, worker_id: 'x', limit: 1 }]) })
  t.strictSame(claims.map(({ execution_id }) => execution_id).sort(), left.sort())
  t.strictSame(
    claims.map(({ claim }) => claim).sort(),
    [1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3].slice(0, left.length),
    'who asked first is served first'
  )
})

t.test('an execution not claimed in time is missed', async t => {
  const { get, cue, fire, claim, call, clock, fn, run } = await serve()
  const soon = await cue({ delivery: { claim_timeout_seconds: 60 } })
  const usual = await cue()
  const ids = {
    soon: await fire(soon),
    usual: await fire(usual),
    deferred: await fire(usual, { send_at: '2030-01-15T10:00:00Z' }),
    held: await fire(usual)
  }
  const { claim_token } = await claim(ids.held)
  const missAt = async (at: string) => {
    clock.set(at)
    await fn.missUnclaimed({})
    const statuses = await Promise.all(Object.entries(ids).map(async ([name, id]) => [name, (await get(`/v1/executions/${id}`)).status]))
    return statuses.filter(([, status]) => status === 'missed').map(([name]) => name)
  }
  t.strictSame(await missAt('2030-01-15T09:00:59.999Z'), [])
  t.strictSame(await missAt('2030-01-15T09:01:00Z'), ['soon'])
  await call('POST', `/v1/executions/${ids.held}/release`, undefined, { 'x-claim-token': claim_token })
  t.strictSame(await missAt('2030-01-15T09:15:00Z'), ['soon', 'usual'])
  exactly(t, await get(`/v1/executions/${ids.usual}`), { error_message: 'not claimed in time', attempts: 0, started_at: null })
  t.strictSame(await missAt('2030-01-15T09:16:00Z'), ['soon', 'usual', 'held'], 'a minute after its release')
  t.strictSame(await missAt('2030-01-15T10:14:59.999Z'), ['soon', 'usual', 'held'])
  t.strictSame(await missAt('2030-01-15T10:15:00Z'), ['soon', 'usual', 'deferred', 'held'])
  exactly(t, await run(soon), { failed_deliveries: 1 })
})

t.test('lists workers with the time since their last heartbeat', async t => {
  const { call, post, get, clock, other } = await serve()
  const beat = (worker_id: string, handlers: string[] = [], by = post) => by('/v1/worker/heartbeat', { worker_id, handlers })
  t.strictSame(await beat('w1', ['a', 'b']), { acknowledged: true })
  clock.advance('1 second')
  await beat('w2')
  await beat('w3', [], (await other()).calls.post)
  const statuses = async () => (await get('/v1/workers')).workers.map((worker: { heartbeat_status: string }) => worker.heartbeat_status)
  t.strictSame(await get('/v1/workers'), {
    workers: [
      {
        worker_id: 'w2',
        seconds_since_heartbeat: 0,
        heartbeat_status: 'active',
        handlers: [],
        last_heartbeat: '2030-01-15T09:00:01.000Z',
        registered_since: '2030-01-15T09:00:01.000Z'
      },
      {
        worker_id: 'w1',
        seconds_since_heartbeat: 1,
        heartbeat_status: 'active',
        handlers: ['a', 'b'],
        last_heartbeat: '2030-01-15T09:00:00.000Z',
        registered_since: '2030-01-15T09:00:00.000Z'
      }
    ],
    total: 2
  })
  clock.set('2030-01-15T09:03:00Z')
  t.strictSame(await statuses(), ['active', 'stale'])
  clock.set('2030-01-15T09:15:00Z')
  t.strictSame(await statuses(), ['stale', 'dead'])
  await beat('w1', ['c'])
  exactly(t, await get('/v1/workers'), {
    workers: [
      { worker_id: 'w1', handlers: ['c'], registered_since: '2030-01-15T09:00:00.000Z', last_heartbeat: '2030-01-15T09:15:00.000Z' },
      {}
    ]
  })
  exactly(t, await call('DELETE', '/v1/workers/w3'), error('worker_not_found', 404))
})

t.test('removing a worker releases all its claims', async t => {
  const { call, post, get, cue, fire, claim, other } = await serve()
  const { calls } = await other()
  const name = 'host 1/ä'
  const path = `/v1/workers/${encodeURIComponent(name)}`
  for (const by of [post, calls.post]) await by('/v1/worker/heartbeat', { worker_id: name, handlers: [] })
  const cue_id = await cue({ retry: { max_attempts: 1 } })
  const mine = [await fire(cue_id), await fire(cue_id), await fire(await cue())]
  for (const id of mine) await claim(id, name)
  const kept = await fire(cue_id)
  await claim(kept, 'other')
  const foreign = await fire(await cue({}, calls), {}, calls)
  await claim(foreign, name, calls)
  exactly(t, await call('DELETE', path), { status: 204, body: '' })
  exactly(t, await call('DELETE', path), error('worker_not_found', 404))
  for (const id of mine) exactly(t, await get(`/v1/executions/${id}`), { status: 'pending', attempt_log: [{ error: 'worker removed' }] })
  exactly(t, await get(`/v1/executions/${kept}`), { status: 'delivering' })
  exactly(t, await calls.get(`/v1/executions/${foreign}`), { status: 'delivering' })
  exactly(t, await claim(mine[0]!, 'other'), { claimed: true, attempt: 2 }, 'claimable although its cue allows one attempt')
})

t.test('a heartbeat during lease recovery keeps the claim, and removing its worker waits for it', async t => {
  const { cue, fire, claim, clock, fn, url, execution, account, pool, post } = await serve()
  await post('/v1/worker/heartbeat', { worker_id: 'w1', handlers: [] })
  const id = await fire(await cue())
  await claim(id)
  clock.advance('15 minutes')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  await client.query('begin')
  await createFunctions(client, clock.now).heartbeatExecution({ account_id: account.id, execution_id: id, worker_id: 'w1' })
  t.equal(await fn.recoverLeases({}), 0, 'skips a locked execution')
  await client.query('commit')
  t.equal(await fn.recoverLeases({}), 0)
  exactly(t, await execution(id), { status: 'delivering', lease_expires_at: new Date('2030-01-15T09:30:00Z') })

  // The heartbeat locks the execution and then the worker, the removal the other way round: this must not deadlock.
  await client.query('begin')
  await client.query('select from cue.executions where id = $1 for update', [id])
  const removing = fn.deleteWorker({ account_id: account.id, worker_id: 'w1' })
  await eventually(
    async () => (await pool.query("select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")).rowCount
  )
  clock.advance('1 minute')
  await createFunctions(client, clock.now).heartbeatExecution({ account_id: account.id, execution_id: id, worker_id: 'w1' })
  await client.query('commit')
  await removing
  exactly(t, await execution(id), { status: 'pending' })
})
