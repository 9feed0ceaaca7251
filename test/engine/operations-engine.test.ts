/** Operations worked on by engines, in real time. */
import t from 'tap'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, eventually, receiver } from '../support/setup.ts'
import { stage } from '../support/stage.ts'

t.test('two engines replay a hundred executions, and deliver each once', async t => {
  const hook = await receiver(t)
  const { post, get, pool, config, account } = await build(t)
  const { id: cue_id } = await post('/v1/cues', { name: 'a', cron: '@yearly', callback_url: hook.url, retry: { max_attempts: 1 } })
  await pool.query(
    `with e as (
       insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, ended_at, created_at, updated_at)
       select cue.uuid_v7(now() - n * interval '1 minute'), $1, $2, 'webhook', 'failed', 'schedule', now(), '{}', now(), now(), now() from generate_series(1, 100) n
       returning id, account_id, cue_id)
     insert into cue.dead_letters select *, gen_random_uuid() from e`,
    [account.id, cue_id]
  )
  await startEngine(t, config)
  await startEngine(t, config)
  const { id } = await post('/v1/operations', { type: 'replay', filter: { dead: true } })
  const done = await eventually(async () => {
    const operation = await get(`/v1/operations/${id}`)
    return operation.status === 'completed' ? operation : undefined
  })
  exactly(t, done, { total: 100, done: 100, succeeded: 100, errors: [] })
  t.equal((await hook.received(100)).length, 100)
  const replayed = await pool.query(`select distinct replayed_from from cue.executions where triggered_by = 'replay'`)
  t.equal(replayed.rows.length, 100)
  t.equal(new Set(hook.requests.map(({ headers }) => headers['x-service-execution-id'])).size, hook.requests.length)
  exactly(t, await get('/v1/executions?dead=true'), { total: 0 })
})

t.test('a lost job is added again, once', async t => {
  const { fn, account_id, rows, clock, jobs, cue } = await stage(t)
  const cues = [await cue(), await cue()]
  const { id } = await fn.createOperation({ account_id, type: 'pause', targets: JSON.stringify(cues), rate_per_minute: 1 })
  exactly(t, await jobs('operations'), [{ data: { operation_id: id, account_id } }])
  await fn.queueOperation({ operation_id: id })
  t.equal((await jobs('operations')).length, 1)
  await rows('delete from pgboss.job')
  t.equal(await fn.requeueOperations({}), 0, 'not immediately')
  clock.advance('21 seconds')
  t.equal(await fn.requeueOperations({}), 1)
  t.equal(await fn.requeueOperations({}), 1)
  t.equal((await jobs('operations')).length, 1)
  await rows('delete from pgboss.job')
  await fn.runOperation({ operation_id: id })
  clock.advance('1 minute')
  t.equal(await fn.requeueOperations({}), 0, 'it was to wait for so long')
  clock.advance('21 seconds')
  t.equal(await fn.requeueOperations({}), 1)
  await fn.runOperation({ operation_id: id })
  clock.advance('1 hour')
  t.equal(await fn.requeueOperations({}), 0, 'it has ended')
})
