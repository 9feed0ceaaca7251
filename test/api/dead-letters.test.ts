/** Dead letters, and the filters that find failed executions. */
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { once, service, start, webhook, worker } from '../support/executions-stage.ts'
import { error } from '../support/setup.ts'
import { refused } from '../support/stage.ts'

const failing = { ...webhook, retry: { max_attempts: 1 } }
const ids = (list: { executions: { id: string }[] }) => list.executions.map(({ id }) => id)

t.test('the view of dead letters has the columns of the view of executions', async t => {
  const { pool } = await service()
  const columnsOf = async (view: string) =>
    (await pool.query('select column_name, data_type from information_schema.columns where table_name = $1 order by 1', [view])).rows
  t.same(await columnsOf('dead_execution_view'), await columnsOf('execution_view'))
})

t.test('executions that failed, were missed or timed out are dead letters, until they are replayed or dismissed', async t => {
  const { get, call, post, cue, ran, fire, fn, clock, pool } = await service()
  const dead = async (more = '') => ids(await get(`/v1/executions?dead=true${more}`))
  const failed = await ran(await cue(failing), refused)
  const missed = await fire(await cue({ ...worker, delivery: { claim_timeout_seconds: 60 } }))
  const timedOut = await ran(await cue({ ...webhook, delivery: { await_outcome: true, outcome_deadline_seconds: 60 } }))
  await ran(await cue())
  const reported = await fire(await cue(worker))
  const claim = await post(`/v1/executions/${reported}/claim`, { worker_id: 'w' })
  t.same(await dead(), [failed], 'not while they wait or run')
  await call('POST', `/v1/executions/${reported}/outcome`, { success: false }, { 'x-claim-token': claim.claim_token })
  clock.advance('2 minutes')
  await fn.missUnclaimed({})
  await fn.expireOutcomes({})
  const all = [reported, timedOut, missed, failed].sort().reverse()
  t.same(await dead(), all)
  exactly(t, await get('/v1/executions?dead=true&limit=2&offset=1'), {
    total: 4,
    has_more: true,
    executions: all.slice(1, 3).map(id => ({ id }))
  })
  t.same(await dead('&status=missed'), [missed])
  t.equal((await get('/v1/executions?dead=false')).total, 1)
  t.equal((await get('/v1/executions')).total, 5)
  const { cue_id } = await get(`/v1/executions/${failed}`)
  t.same(await dead(`&cue_id=${cue_id}`), [failed])

  const replayed = await call('POST', `/v1/executions/${failed}/replay`)
  exactly(t, replayed, { status: 200 })
  t.same(await dead(`&cue_id=${cue_id}`), [])
  exactly(t, await call('POST', `/v1/executions/${missed}/dismiss`), { status: 200, body: { id: missed, status: 'missed', dead: false } })
  t.same(await dead(), [reported, timedOut].sort().reverse())
  for (const id of [missed, failed]) exactly(t, await call('POST', `/v1/executions/${id}/dismiss`), { status: 200 }, 'repeated')
  exactly(t, await get(`/v1/executions/${missed}`), { status: 'missed', error_message: 'not claimed in time' })
  await call('DELETE', `/v1/cues/${(await get(`/v1/executions/${reported}`)).cue_id}`)
  t.same(await dead(), [timedOut])
  const count = async () =>
    (await pool.query('select count(*)::int as n from cue.dead_letters where execution_id = any ($1)', [all])).rows[0].n
  t.equal(await count(), 2)
  for (const { data } of (await pool.query(`select data from pgboss.job where name = 'purges'`)).rows)
    while ((await fn.purgeCue(data)) > 0);
  t.equal(await count(), 1)
})

t.test('what was cancelled, succeeded or is running is not a dead letter, and only failures can be dismissed', async t => {
  const { get, call, cue, fire, ran } = await service()
  const cancelled = await fire(await cue())
  await call('POST', `/v1/executions/${cancelled}/cancel`)
  exactly(t, await get('/v1/executions?dead=true'), { executions: [], total: 0 })
  exactly(t, await call('POST', `/v1/executions/${cancelled}/dismiss`), { status: 200 })
  for (const id of [await ran(await cue()), await fire(await cue(worker))])
    exactly(t, await call('POST', `/v1/executions/${id}/dismiss`), error('invalid_state', 409))
  const failed = await ran(await cue(failing), refused)
  exactly(t, await get('/v1/executions?dead=true'), { executions: [{ id: failed }], total: 1 })
})

t.test('a slot above the limit and one lost in an outage are dead letters', async t => {
  const { get, cue, pool, fn, account, clock } = await service()
  const over = await cue()
  const [run] = (await pool.query('select * from cue.cue_runs where cue_id = $1', [over])).rows
  await pool.query(`update cue.accounts set limit_reached_at = '2030-01-01T00:00:00Z' where id = $1`, [account.id])
  clock.advance('2 minutes')
  const args = { cue_ids: [over], versions: [run.version], expected: [run.next_run], next: [new Date('2030-01-15T10:00:00Z')] }
  t.equal(await fn.refuseDueCues(args), 1)
  const late = await cue({ ...once, catch_up: 'skip_missed' })
  clock.set('2030-02-01T00:00:01Z')
  const cues = [{ cue_id: late, version: 1, expected: '2030-02-01T00:00:00Z', next_run: null, slots: [], dropped: null }]
  t.equal(await fn.catchUpCues({ cues: JSON.stringify(cues) }), 1)
  exactly(t, await get('/v1/executions?dead=true'), {
    executions: [
      { cue_id: late, status: 'missed' },
      { cue_id: over, status: 'failed', error_message: /^execution_limit_exceeded/ }
    ]
  })
})

t.test('finds executions by their error, and by from and to', async t => {
  const { get, call, post, cue, ran, fire, clock } = await service()
  const first = await ran(await cue(failing), { ...refused, error: 'Connection REFUSED: 100%_sure' })
  clock.advance('1 hour')
  const second = await fire(await cue(worker))
  const { claim_token } = await post(`/v1/executions/${second}/claim`, { worker_id: 'w' })
  await call('POST', `/v1/executions/${second}/outcome`, { success: false, error: 'no such file' }, { 'x-claim-token': claim_token })
  await ran(await cue())
  const found = async (query: string) => ids(await get(`/v1/executions?${query}`))
  t.same(await found('error=refused'), [first])
  t.same(await found(`error=${encodeURIComponent('100%_')}`), [first])
  t.same(await found('error=SUCH'), [second])
  t.same(await found(`error=${encodeURIComponent('%')}&dead=true`), [first])
  t.same(await found('error=nothing'), [])
  t.same(await found(`to=${clock.now().toISOString()}`), [first])
  t.same(await found(`from=${clock.now().toISOString()}&error=no`), [second])
  t.same(
    await found(`from=${start}&since=${clock.now().toISOString()}&to=2031-01-01T00:00:00Z&error=no`),
    [second],
    'the narrower one applies'
  )
  t.same(await found(`until=${clock.now().toISOString()}&to=2031-01-01T00:00:00Z`), [first])
})

t.test('executions removed by retention leave no dead letters', async t => {
  const { pool, fn, cue, ran, account } = await service()
  const failed = await ran(await cue(failing), refused)
  const before = '20300101-0000-7000-8000-000000000000'.replace('20300101-0000', '01000000-0000')
  await pool.query('insert into cue.dead_letters values ($1, $2, $3, gen_random_uuid())', [before, account.id, 'cue_000000000000'])
  t.equal(await fn.pruneDeadLetters({ batch: 1 }), 1)
  t.equal(await fn.pruneDeadLetters({}), 0)
  const left = await pool.query('select execution_id as id from cue.dead_letters where account_id = $1', [account.id])
  t.same(left.rows, [{ id: failed }])
})
