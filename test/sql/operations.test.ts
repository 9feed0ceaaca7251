/** Batches of operations beside others that hold rows, on several connections, and interrupted. */
import t, { type Test } from 'tap'
import { exactly } from '../support/exactly.ts'
import { refused, stage } from '../support/stage.ts'

const setUp = async (t: Test) => {
  const s = await stage(t)
  const { fn, cue, take, settle, rows, row, account_id } = s
  /** Executions that failed, of a cue each. */
  const failures = async (count: number) => {
    const cues: string[] = []
    for (let n = 0; n < count; n++) cues.push(await cue({ retry_max_attempts: 1 }))
    const attempts = await take(cues)
    await settle(attempts, refused)
    return attempts.map(({ execution_id, cue_id }) => ({ id: execution_id, cue_id })).sort((a, b) => (a.id < b.id ? -1 : 1))
  }
  const create = (type: 'replay' | 'dismiss' | 'cancel' | 'pause', targets: string[]) =>
    fn.createOperation({ account_id, type, targets: JSON.stringify(targets) })
  const operation = (id: string) => row('select * from cue.operation_view where id = $1', [id])
  const left = async (id: string) =>
    (await rows('select targets from cue.operation_targets where operation_id = $1 order by place', [id])).flatMap(({ targets }) => targets)
  const replayed = async () =>
    (await rows(`select replayed_from as id from cue.executions where triggered_by = 'replay'`)).map(({ id }) => id).sort()
  /** Runs batches until the operation has ended. On a new connection, the first takes long and has few targets. */
  const finish = async (id: string, by = fn) => {
    for (let n = 0; n < 50; n++) {
      const answer = (await by.runOperation({ operation_id: id }))!
      if (answer.status !== 'running') return answer
    }
    throw new Error('the operation does not end')
  }
  return { ...s, failures, create, operation, left, replayed, finish }
}

t.test('a batch that is rolled back has done nothing, and the next one does it all once', async t => {
  const { failures, create, connect, fn, operation, left, replayed, finish } = await setUp(t)
  const ids = (await failures(3)).map(({ id }) => id)
  const { id } = await create('replay', ids)
  const { client, fn: other } = await connect()
  await client.query('begin')
  exactly(t, await finish(id, other), { status: 'completed' })
  exactly(t, await fn.runOperation({ operation_id: id }), { status: 'running', wait_ms: 50 }, 'another works on it')
  await client.query('rollback')
  t.same([await left(id), await replayed()], [ids, []])
  exactly(t, await finish(id), { status: 'completed', wait_ms: 0 })
  exactly(t, await fn.runOperation({ operation_id: id }), { status: 'completed' })
  t.same([await left(id), await replayed()], [[], ids])
  exactly(t, await operation(id), { status: 'completed', done: 3, succeeded: 3 })
  t.equal(await fn.runOperation({ operation_id: 'op_000000000000' }), undefined)
})

t.test('a held cue or execution delays only its own targets, and nobody waits', async t => {
  const { failures, create, connect, fn, operation, left, replayed, rows, finish } = await setUp(t)
  const all = await failures(25)
  const { id } = await create(
    'replay',
    all.map(({ id }) => id)
  )
  const { client } = await connect()
  await client.query('begin')
  await client.query('select from cue.cues where id = $1 for update', [all[1]!.cue_id])
  await client.query('select from cue.dead_letters where execution_id = $1 for update', [all[2]!.id])
  const started = performance.now()
  for (let n = 0; n < 50 && (await left(id)).length > 2; n++) await fn.runOperation({ operation_id: id })
  t.same((await left(id)).sort(), [all[1]!.id, all[2]!.id])
  t.ok(performance.now() - started < 5000)
  exactly(t, await fn.runOperation({ operation_id: id }), { status: 'running', wait_ms: 250 })
  exactly(t, await operation(id), { done: 23, succeeded: 23, failed: 0, skipped: 0 })
  await client.query('commit')
  exactly(t, await finish(id), { status: 'completed' })
  t.same(
    await replayed(),
    all.map(({ id }) => id)
  )
  t.same(await rows('select from cue.dead_letters'), [])
})

t.test('a held account stops its operation, and nobody waits', async t => {
  const { failures, create, connect, fn, left, account, cue } = await setUp(t)
  const [one] = await failures(1)
  const { id } = await create('dismiss', [one!.id])
  const other = await account()
  const theirs = await fn.createOperation({
    account_id: other,
    type: 'pause',
    targets: JSON.stringify([await cue({}, { account_id: other })])
  })
  const { client } = await connect()
  await client.query('begin')
  await client.query('select from cue.accounts where id = (select account_id from cue.operations where id = $1) for update', [id])
  const started = performance.now()
  exactly(t, await fn.runOperation({ operation_id: id }), { status: 'running', wait_ms: 50 })
  t.ok(performance.now() - started < 1000)
  t.same(await left(id), [one!.id])
  exactly(t, await fn.runOperation({ operation_id: theirs.id }), { status: 'completed' })
  await client.query('commit')
  exactly(t, await fn.runOperation({ operation_id: id }), { status: 'completed' })
})

t.test('an abort waits for the batch, after which nothing more happens', async t => {
  const { failures, create, connect, operation, account_id } = await setUp(t)
  const { id } = await create(
    'replay',
    (await failures(2)).map(({ id }) => id)
  )
  const [a, b] = [await connect(), await connect()]
  await a.client.query('begin')
  await a.fn.runOperation({ operation_id: id })
  const aborting = b.fn.abortOperation({ account_id, operation_id: id })
  await b.blocked()
  await a.client.query('rollback')
  exactly(t, await aborting, { status: 'aborted' })
  exactly(t, await a.fn.runOperation({ operation_id: id }), { status: 'aborted' })
  exactly(t, await operation(id), { done: 0, total: 2 })
})

t.test('two callers cannot start two operations of a type', async t => {
  const { failures, connect, account_id } = await setUp(t)
  const targets = JSON.stringify((await failures(1)).map(({ id }) => id))
  const [a, b] = [await connect(), await connect()]
  await a.client.query('begin')
  const first = await a.fn.createOperation({ account_id, type: 'replay', targets })
  const refused = t.rejects(b.fn.createOperation({ account_id, type: 'replay', targets }), { code: 'QU025', detail: first.id })
  await b.blocked()
  await a.client.query('commit')
  await refused
})

t.test('only the first hundred errors are kept', async t => {
  const { fn, account_id, row } = await setUp(t)
  const missing = Array.from({ length: 120 }, (_, n) => `missing ${n}`)
  const { id } = await fn.createOperation({ account_id, type: 'replay', targets: '[]', missing })
  const { errors, ...counts } = await row('select status, total, done, failed, errors from cue.operation_view where id = $1', [id])
  t.same(counts, { status: 'completed', total: 120, done: 120, failed: 120 })
  t.same(errors.at(-1), { target: 'missing 99', code: 'QU002', message: 'missing 99 not found' })
  t.equal(errors.length, 100)
})

t.test('ended operations are kept for 90 days', async t => {
  const { fn, failures, create, rows, clock } = await setUp(t)
  const { id } = await create(
    'dismiss',
    (await failures(1)).map(({ id }) => id)
  )
  await fn.runOperation({ operation_id: id })
  clock.advance('89 days')
  await fn.prune({})
  t.equal((await rows('select from cue.operations')).length, 1)
  clock.advance('2 days')
  await fn.prune({})
  t.equal((await rows('select from cue.operations')).length, 0)
})
