/** Parts of an execution's request that stay as they were, whatever becomes of its cue. */

import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { refused, stage } from '../support/stage.ts'

t.test('an execution is sent to its fixed callback in every attempt, another one to that of the cue', async t => {
  const { account_id, clock, cue, fn, rows, settle } = await stage(t)
  const id = await cue({ callback_headers: { 'X-Part': 'a' } }, { next_run: null })
  const [fixed, plain] = [(await fn.fireCue({ account_id, cue_id: id })).id, (await fn.fireCue({ account_id, cue_id: id })).id]
  await rows('select cue.fix_callback(c, $2) from cue.cues c where id = $1', [id, fixed])
  const changes = { callback_url: 'http://127.0.0.1/other', callback_method: 'PUT', callback_headers: {} }
  await fn.updateCue({ account_id, cue_id: id, version: 1, changes: JSON.stringify(changes), next_run: null })
  for (let attempt = 1; attempt < 3; attempt++) {
    const begun = await fn.beginAttempts({ execution_ids: [fixed, plain] })
    const requests = begun.map(({ execution_id, callback_url, callback_method, callback_headers }) => [
      execution_id === fixed,
      callback_url,
      callback_method,
      callback_headers
    ])
    t.same(requests.sort(), [
      [false, 'http://127.0.0.1/other', 'PUT', {}],
      [true, 'http://127.0.0.1/hook', 'POST', { 'X-Part': 'a' }]
    ])
    await settle(begun, refused)
    clock.advance('5 minutes')
  }
})

t.test('a fixed request goes with its execution: by month, in batches, and with its cue', async t => {
  const { account_id, clock, cue, fn, rows } = await stage(t, '2070-01-15T00:00:00Z')
  const requests = async () => (await rows('select execution_id as id from cue.fixed_requests order by 1')).map(row => row.id)
  const fire = async (cue_id: string) => {
    const [{ id }] = await rows('select id from cue.fire_cue($1, $2, p_now => $3)', [account_id, cue_id, clock.now()])
    await rows('select cue.fix_callback(c, $2) from cue.cues c where id = $1', [cue_id, id])
    return id as string
  }
  const [month, batch, last] = [await cue(), await cue(), await cue()]
  const first = await fire(month)
  await fn.cancelExecution({ account_id, execution_id: first })
  clock.set('2070-02-02T00:00:00Z')
  await fn.maintainPartitions({ months: 2 })
  const [ended, open] = [await fire(batch), await fire(last)]
  await fn.cancelExecution({ account_id, execution_id: ended })
  t.same(await requests(), [first, ended, open].sort())
  clock.set('2070-08-01T00:00:00Z')
  exactly(
    t,
    (await fn.dropOldExecutions({ before: new Date('2070-05-01T00:00:00Z') })).filter(name => name >= '2070'),
    ['2070_01', '2070_03', '2070_04']
  )
  t.same(await requests(), [ended, open].sort())
  t.equal(await fn.deleteOldExecutions({ before: new Date('2070-05-01T00:00:00Z') }), 1)
  exactly(t, await requests(), [open])
  await fn.deleteCue({ account_id, cue_id: last })
  t.equal(await fn.purgeCue({ cue_id: last }), 1)
  exactly(t, await requests(), [])
})
