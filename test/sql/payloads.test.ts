// Payloads: stored once per cue, referenced by executions, and kept as long as they are referenced; those over 2 KB in rows of their own.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { stage as bareStage, type Row } from '../support/stage.ts'

const mebibyte = 1024 * 1024
/** Incompressible canonical JSON of the given size. */
const random = (bytes: number) =>
  `"${randomBytes(bytes)
    .toString('base64')
    .slice(0, bytes - 2)}"`

const stage = async (t: Test, start?: string) => {
  const s = await bareStage(t, start)
  const stored = async (): Promise<Row[]> => s.rows('select * from cue.payloads order by id')
  /** Where each execution's payload is stored, oldest first. */
  const carried = () => s.rows('select payload, payload_id from cue.executions order by id')
  const shown = async (id: string) => (await s.row('select payload from cue.execution_detail_view where id = $1', [id])).payload
  const shownCue = async (id: string) => (await s.row('select payload from cue.cue_view where id = $1', [id])).payload
  const version = async (cue_id: string) => (await s.row('select version from cue.cue_runs where cue_id = $1', [cue_id])).version
  const edit = async (cue_id: string, payload: string) =>
    s.fn.updateCue({ account_id: s.account_id, cue_id, version: await version(cue_id), changes: { payload, task: null } })
  const fire = (cue_id: string, request: { payload?: string; send_at?: Date } = {}) =>
    s.fn.fireCue({ account_id: s.account_id, cue_id, ...request })
  /** Ends all waiting executions. */
  const end = () =>
    s.rows(`update cue.executions set status = 'failed', ended_at = created_at, attempt_due_at = null, claimable_at = null, claim_deadline_at = null,
              flight_id = null where ended_at is null`)
  return { ...s, stored, carried, shown, shownCue, edit, fire, end }
}

t.test('keeps a payload of 2,048 bytes in the row of its cue', async t => {
  const { cue, take, stored, carried, shown, shownCue, row } = await stage(t)
  const payload = random(2048)
  const id = await cue({ payload })
  const [attempt] = await take([id])
  t.equal(attempt!.payload, payload)
  const { payload_ref, ...kept } = await row('select payload, payload_id, payload_ref from cue.cues where id = $1', [id])
  t.same(kept, { payload, payload_id: null })
  t.same(await carried(), [{ payload: null, payload_id: payload_ref }])
  t.equal(await shown(attempt!.execution_id), payload)
  t.equal(await shownCue(id), payload)
  t.same(await stored(), [])
})

t.test('stores a payload of 2,049 bytes once, referenced by the cue and every execution', async t => {
  const { cue, take, stored, carried, shown, shownCue, run, clock, row, fire, fn } = await stage(t)
  const payload = random(2049)
  const id = await cue({ payload })
  const [{ id: payload_id, ...kept }, ...others] = await stored()
  t.same(others, [])
  exactly(t, kept, { cue_id: id, body: payload, since_run: 0, last_used_at: null })
  t.same(await row('select payload, payload_id from cue.cues where id = $1', [id]), { payload: null, payload_id })
  t.equal(await shownCue(id), payload)
  for (let n = 0; n < 3; n++) {
    const [attempt] = await take([id], { next: new Date((await run(id)).next_run.getTime() + 60_000) })
    t.equal(attempt!.payload, payload)
    t.equal(await shown(attempt!.execution_id), payload)
    clock.advance('1 minute')
  }
  await fire(id)
  const [begun] = await beginWaiting(fn, { limit: 10 })
  t.equal(begun!.payload, payload)
  t.same(await carried(), Array(4).fill({ payload: null, payload_id }))
  t.equal((await stored()).length, 1)
})

t.test('caught-up, missed and refused slots also reference the payload', async t => {
  const { cue, fn, clock, carried, rows } = await stage(t)
  const [caught, missed, over] = await Promise.all([1, 2, 3].map(() => cue({ payload: random(3000) })))
  const due = { version: 1, expected: clock.now(), next_run: new Date(clock.now().getTime() + 60_000), dropped: null }
  await fn.catchUpCues({ cues: JSON.stringify([{ cue_id: caught, slots: [clock.now()], ...due }]) })
  await rows("update cue.cues set schedule_type = 'once', cron = null, at = now() where id = $1", [missed])
  await fn.catchUpCues({ cues: JSON.stringify([{ cue_id: missed, slots: [], ...due, next_run: null }]) })
  await rows("update cue.accounts set limit_reached_at = '2030-01-14T08:00:00Z'")
  await fn.refuseDueCues({ cue_ids: [over!], versions: [1], expected: [new Date(+clock.now())], next: [due.next_run] })
  const ids = await rows('select id from cue.payloads order by array_position($1, cue_id)', [[caught, missed, over]])
  t.same(new Set((await carried()).map(row => row.payload_id)), new Set(ids.map(row => row.id)))
  t.same(
    (await carried()).map(row => row.payload),
    [null, null, null]
  )
})

t.test('a hundred executions of 1 MiB take the space of one', async t => {
  const { cue, rows, row, clock, connect } = await stage(t)
  const size = async () =>
    Number((await row(`select sum(pg_total_relation_size(relid)) as bytes from pg_partition_tree('cue.executions')`)).bytes) +
    Number((await row(`select pg_total_relation_size('cue.payloads') as bytes`)).bytes)
  await rows('vacuum full cue.payloads')
  const before = await size()
  const id = await cue({ payload: random(mebibyte), transport: 'worker', callback_url: null })
  const { fn } = await connect()
  for (let n = 0; n < 100; n++) {
    const at = new Date(+clock.now())
    clock.advance('1 second')
    await fn.takeDueCues({ cue_ids: [id], versions: [1], expected: [at], next: [new Date(+clock.now())], missed_after: '100 years' })
  }
  t.same(await rows('select count(*)::int as n, max(pg_column_size(e.*)) < 1000 as narrow from cue.executions e'), [
    { n: 100, narrow: true }
  ])
  const grown = (await size()) - before
  t.ok(grown < 1.5 * mebibyte, `${grown} bytes`)
})

// Versions ------------------------------------------------------------------------------------------------------------------------------

t.test("history shows the payload sent, after the cue's payload has changed", async t => {
  const { cue, fire, edit, shown, shownCue, stored } = await stage(t)
  const [first, second] = [random(4000), random(5000)]
  const id = await cue({ payload: first }, { next_run: null })
  const sent = []
  for (const payload of [second, '{"small": 1}', first]) {
    sent.push((await fire(id)).id)
    await edit(id, payload)
    t.equal(await shownCue(id), payload)
  }
  t.same(await Promise.all(sent.map(shown)), [first, second, '{"small": 1}'])
  t.same(
    (await stored()).map(row => [row.body, row.last_used_at === null]),
    [
      [first, true],
      [second, false],
      ['{"small": 1}', false]
    ],
    'setting an earlier payload again reuses its row'
  )
})

t.test('a small payload that is replaced is kept for its executions, and reused when it returns', async t => {
  const { cue, fire, fn, edit, end, account_id, shown, stored, carried, clock } = await stage(t)
  const [a, b] = ['{"a": 1}', '{"b": 1}']
  const id = await cue({ payload: a }, { next_run: null })
  const sent: { id: string }[] = []
  for (const next of [b, a, b, a]) {
    sent.push(await fire(id))
    await edit(id, next)
  }
  t.same(await Promise.all(sent.map(one => shown(one.id))), [a, b, a, b])
  const rows = await stored()
  t.same(
    rows.map(row => [row.body, row.last_used_at]),
    [
      [a, null],
      [b, clock.now()]
    ]
  )
  t.same(
    (await carried()).map(row => [row.payload, row.payload_id]).sort(),
    [0, 0, 1, 1].map(n => [null, rows[n]!.id])
  )
  await edit(id, '{"c": 1}')
  t.equal((await stored())[0]!.last_used_at?.getTime(), clock.now().getTime(), 'retired again')
  t.same(
    (await beginWaiting(fn, { limit: 10 })).map(attempt => attempt.payload).sort(),
    [a, a, b, b],
    'an attempt that waited sends the payload of its time'
  )
  await end()
  clock.advance('1 hour')
  const replayed = await fn.replayExecution({ account_id, execution_id: sent[1]!.id })
  t.equal(await shown(replayed.id), b)
})

t.test('payloads changed by hand are kept, too, and an unused small one is not', async t => {
  const { cue, fire, edit, shown, stored, rows } = await stage(t)
  const id = await cue({ payload: '{"a": 1}' }, { next_run: null })
  for (let n = 0; n < 3; n++) await edit(id, `{"n": ${n}}`)
  t.same(await stored(), [])
  const { id: execution_id } = await fire(id)
  await rows(`update cue.cues set payload = '{"hand": 1}' where id = $1`, [id])
  t.equal(await shown(execution_id), '{"n": 2}')
  await rows(`update cue.cues set payload = '{"hand": 2}' where id = $1`, [id])
  t.equal((await stored()).length, 1)
})

t.test('removes an unused payload when it is replaced', async t => {
  const { cue, edit, stored } = await stage(t)
  const id = await cue({ payload: random(3000) }, { next_run: null })
  for (let n = 0; n < 5; n++) await edit(id, random(3000))
  t.equal((await stored()).length, 1)
  await edit(id, '{}')
  t.same(await stored(), [])
})

t.test('stores an override once however often it is fired, and a replay references it', async t => {
  const { cue, fire, fn, stored, carried, end, account_id, clock } = await stage(t)
  const [own, override] = [random(3000), random(3000)]
  const id = await cue({ payload: own }, { next_run: null })
  const { id: execution_id } = await fire(id, { payload: override })
  await fire(id, { payload: override })
  await fire(id, { payload: own })
  await fire(id, { payload: '{}' })
  await end()
  clock.advance('1 hour')
  await fn.replayExecution({ account_id, execution_id })
  const rows = await stored()
  t.same(
    rows.map(row => [row.body, row.last_used_at]),
    [
      [own, null],
      [override, clock.now()]
    ]
  )
  const [{ id: a }, { id: b }] = rows as [Row, Row]
  t.same((await carried()).map(row => row.payload_id ?? row.payload).sort(), [a, b, b, b, '{}'].sort())
})

t.test('simultaneous creations and fires with the same large payload store it once', async t => {
  const { cue, connect, account_id, stored, carried } = await stage(t)
  const body = random(3000)
  const ids = await Promise.all([1, 2, 3].map(() => cue({ payload: body }, { next_run: null })))
  t.equal((await stored()).length, 3, 'one for each cue')
  const connections = await Promise.all([1, 2, 3, 4].map(() => connect()))
  const override = random(3000)
  await Promise.all(connections.map(({ fn }) => fn.fireCue({ account_id, cue_id: ids[0]!, payload: override })))
  t.equal((await stored()).length, 4)
  t.equal(new Set((await carried()).map(row => row.payload_id)).size, 1)
})

// Removal --------------------------------------------------------------------------------------------------------------------------------

t.test('deleting a cue removes its payloads with its history, in batches', async t => {
  const { cue, fire, fn, account_id, stored, rows } = await stage(t)
  const [id, other] = await Promise.all([1, 2].map(() => cue({ payload: random(3000) }, { next_run: null })))
  for (let n = 0; n < 3; n++) await fire(id!, { payload: random(3000) })
  await fn.deleteCue({ account_id, cue_id: id! })
  t.equal(await fn.purgeCue({ cue_id: id!, batch: 10 }), 3)
  t.equal(await fn.purgeCue({ cue_id: id!, batch: 10 }), 2)
  t.equal(await fn.purgeCue({ cue_id: id!, batch: 10 }), 2)
  t.equal(await fn.purgeCue({ cue_id: id!, batch: 10 }), 0)
  t.same(
    (await stored()).map(row => row.cue_id),
    [other]
  )
  t.same(await rows('select from cue.cues where id = $1', [id]), [])
})

t.test('prunes exactly the payloads that no execution references', async t => {
  const { cue, fire, edit, end, fn, clock, stored, rows, shown } = await stage(t, '2030-01-31T23:59:00Z')
  await fn.maintainPartitions({ months: 6 })
  const [current, retired, override, waiting] = [random(3000), random(3000), random(3000), random(3000)]
  const id = await cue({ payload: retired }, { next_run: null })
  await fire(id)
  await edit(id, current)
  await fire(id, { payload: override })
  await end()
  const { id: deferred } = await fire(id, { payload: waiting, send_at: new Date('2030-12-01T00:00:00Z') })
  const bodies = async () => new Set((await stored()).map(row => row.body))
  clock.set('2030-05-20T00:00:00Z')
  const before = new Date('2030-02-15T00:00:00Z')
  t.equal(await fn.prunePayloads({ before: new Date('2030-01-31T23:59:59Z') }), 0, 'that month is kept')
  t.equal(await fn.prunePayloads({ before, batch: 2 }), 2)
  t.equal(await fn.prunePayloads({ before, batch: 2 }), 1)
  t.equal(await fn.prunePayloads({ before }), 0, 'payloads still referenced are not checked again')
  t.same(await bodies(), new Set([current, retired, override, waiting]), 'history is there')

  await rows(`update cue.payloads set last_used_at = '2030-01-31T23:59:00Z' where last_used_at is not null`)
  while ((await fn.deleteOldExecutions({ before })) > 0);
  t.equal(await fn.prunePayloads({ before }), 3)
  t.same(await bodies(), new Set([current, waiting]))
  t.equal(await shown(deferred), waiting)
})

t.test('a replay in progress protects its payload from pruning', async t => {
  const { cue, fire, end, fn, connect, clock, account_id, stored, rows, shown } = await stage(t, '2030-01-15T00:00:00Z')
  await fn.maintainPartitions({ months: 6 })
  const body = random(3000)
  const { id: execution_id } = await fire(await cue({}, { next_run: null }), { payload: body })
  await end()
  clock.set('2030-05-20T00:00:00Z')
  const before = new Date('2030-02-15T00:00:00Z')
  const replaying = await connect()
  await replaying.client.query('begin')
  const { id: replayed } = await replaying.fn.replayExecution({ account_id, execution_id })
  await rows('delete from cue.executions where id = $1', [execution_id])
  t.equal(await fn.prunePayloads({ before }), 0)
  await replaying.client.query('commit')
  t.equal(await fn.prunePayloads({ before }), 0)
  t.equal((await stored()).length, 1)
  t.equal(await shown(replayed), body)
})

t.test('a replay whose payload is being pruned does not find the execution', async t => {
  const { cue, fire, end, connect, clock, account_id, fn, rows } = await stage(t, '2030-01-15T00:00:00Z')
  await fn.maintainPartitions({ months: 6 })
  const { id: execution_id } = await fire(await cue({}, { next_run: null }), { payload: random(3000) })
  await end()
  clock.set('2030-05-20T00:00:00Z')
  const [retention, replaying] = [await connect(), await connect()]
  await retention.client.query('begin')
  await retention.client.query('delete from cue.executions where id = $1', [execution_id])
  t.equal(await retention.fn.prunePayloads({ before: new Date('2030-02-15T00:00:00Z') }), 1)
  const refused = t.rejects(replaying.fn.replayExecution({ account_id, execution_id }), { code: 'QU002' })
  await replaying.blocked()
  await retention.client.query('commit')
  await refused
  t.same(await rows('select from cue.executions'), [])
})
