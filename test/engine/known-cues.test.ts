/** Repeated reads of a cue: what has not changed is not read again, and what has is. */
import t from 'tap'
import type { CueRun } from '../../src/accounts/admission.ts'
import { createKnownCues } from '../../src/cues/known-cues.ts'
import type { ReadTaggedCuesRow } from '../../src/database/functions.ts'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'

const daily = { name: 'report', cron: '0 9 * * *', worker: true, payload: { n: 1 } }

t.test('every change shows at once: by the API, by hand, and when a cue runs', async t => {
  const { get, post, patch, pool } = await build(t, '2030-01-15T10:00:00Z')
  const { id } = await post('/v1/cues', daily)
  const path = `/v1/cues/${id}`
  const shows = async (expected: object) => {
    for (const time of ['first', 'second']) exactly(t, await get(path), expected, time)
  }
  await shows({ id, name: 'report', version: 1, payload: { n: 1 }, next_run: '2030-01-16T09:00:00.000Z', run_count: 0, executions: [] })
  await patch(path, { name: 'renamed' })
  await shows({ name: 'renamed', version: 2 })
  await post(`${path}/pause`, { reason: 'holidays' })
  await shows({ status: 'paused', pause_reason: 'holidays', next_run: null, version: 3 })
  await post(`${path}/resume`, {})
  const { id: execution_id } = await post(`${path}/fire`)
  await shows({ status: 'active', version: 4, run_count: 1, executions: [{ id: execution_id, status: 'pending' }], execution_total: 1 })
  await pool.query(`update cue.cues set description = 'by hand', payload = '{"n": 2}' where id = $1`, [id])
  await shows({ name: 'renamed', description: 'by hand', payload: { n: 2 }, version: 4 })
  await pool.query("update cue.cue_runs set next_run = '2031-01-01T09:00:00Z', recomputed = 1 where cue_id = $1", [id])
  await shows({ next_run: '2031-01-01T09:00:00.000Z', next_slot: '2031-01-01T09:00:00.000Z', version: 3 })
})

t.test('a known cue is hidden from other accounts, and from everyone once it is deleted', async t => {
  const { get, post, call, as, register } = await build(t)
  const { id } = await post('/v1/cues', daily)
  const path = `/v1/cues/${id}`
  exactly(t, await get(path), { id })
  const other = as(await register())
  exactly(t, await other.call('GET', path), error('cue_not_found', 404))
  t.equal((await call('DELETE', path)).status, 204)
  exactly(t, await call('GET', path), error('cue_not_found', 404))
})

/** Cues that are read from a table in memory. */
const setUp = () => {
  const rows = new Map<string, ReadTaggedCuesRow>()
  const reads: string[] = []
  const complete = createKnownCues(async ({ id }) => {
    reads.push(id)
    return rows.get(id)
  })
  const write = (id: string, tag: string, payload = '{}') =>
    rows.set(id, { id, tag, name: `${id} ${tag}`, version: Number(tag), payload } as ReadTaggedCuesRow)
  const show = (id: string, tag: string, run: Partial<CueRun> = {}) => complete('account', id, { tag, executions: [], ...run } as CueRun)
  return { rows, reads, write, show }
}

t.test('a cue is read again only if its tag has changed, and its runs are those of the request', async t => {
  const { reads, write, show } = setUp()
  write('a', '1')
  exactly(t, await show('a', '1', { run_count: 1 }), { name: 'a 1', run_count: 1 })
  exactly(t, await show('a', '1', { run_count: 2 }), { name: 'a 1', run_count: 2 })
  t.same(reads, ['a'])
  write('a', '2')
  exactly(t, await show('a', '2'), { name: 'a 2' })
  exactly(t, await show('a', '2'), { name: 'a 2' })
  t.same(reads, ['a', 'a'])
})

t.test('a cue that changes between admission and reading is kept under the tag it was read with', async t => {
  const { reads, write, show } = setUp()
  write('a', '2')
  exactly(t, await show('a', '1', { version: 1 }), { name: 'a 2', version: 2 }, 'its name and version belong together')
  exactly(t, await show('a', '2', { version: 3 }), { name: 'a 2', version: 3 })
  t.same(reads, ['a'])
})

t.test('a cue that is deleted between admission and reading is not found', async t => {
  const { show } = setUp()
  await t.rejects(show('a', '1'), { code: 'cue_not_found' })
})

t.test('large cues are not kept', async t => {
  const { reads, write, show } = setUp()
  write('large', '1', JSON.stringify('x'.repeat(9000)))
  await show('large', '1')
  await show('large', '1')
  t.same(reads, ['large', 'large'])
})

t.test('of many cues, those used last are kept', async t => {
  const { reads, write, show } = setUp()
  const ids = Array.from({ length: 2000 }, (_, n) => `cue ${n}`)
  for (const id of ids) {
    write(id, '1', JSON.stringify('x'.repeat(4000)))
    await show(id, '1')
    await show(ids[0]!, '1')
  }
  t.equal(reads.length, ids.length, 'the one in use stays')
  await show(ids[1]!, '1')
  t.equal(reads.length, ids.length + 1, 'another one had to go')
})
