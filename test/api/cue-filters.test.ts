/** Filters of lists of cues. */
import t from 'tap'
import { build } from '../support/setup.ts'

const hourly = { cron: '0 * * * *', callback_url: 'http://127.0.0.1:5555/hook' }

t.test('lists cues by the beginning of their key, part of their name, transport, set, cause of their pause and calendar', async t => {
  const { post, get, call, pool, as, register } = await build(t)
  const add = async (name: string, more: object = {}) => (await post('/v1/cues', { name, ...hourly, ...more })).id as string
  await add('Nightly Report', { key: 'billing/report' })
  await add('report_100%', { key: 'billing_' })
  const worker = await add('third', { key: 'Billing', callback_url: null, worker: true })
  await post(`/v1/cues/${worker}/pause`)
  await post('/v1/cues/apply', { set: 'Ops', cues: [{ key: 'x', name: 'applied', ...hourly }] })
  const planned = await add('fifth')
  await pool.query(`update cue.cues set status = 'paused', paused_by = 'plan' where id = $1`, [planned])
  await as(await register()).post('/v1/cues', { name: 'report', key: 'billing/other', ...hourly })
  const found = async (query: string) => {
    const { cues, total } = await get(`/v1/cues?${query}`)
    t.equal(total, cues.length)
    return cues.map(({ name }: { name: string }) => name).sort()
  }
  t.same(await found('key_prefix=billing'), ['Nightly Report', 'report_100%'])
  t.same(await found('key_prefix=billing%2F'), ['Nightly Report'])
  t.same(await found(`key_prefix=${encodeURIComponent('billing_')}`), ['report_100%'])
  t.same(await found('name=REPORT'), ['Nightly Report', 'report_100%'])
  t.same(await found(`name=${encodeURIComponent('_100%')}`), ['report_100%'])
  t.same(await found('transport=worker'), ['third'])
  t.same(await found('set=Ops'), ['applied'])
  t.same(await found('status=paused'), ['fifth', 'third'])
  t.same(await found('paused_by=user'), ['third'])
  t.same(await found('paused_by=plan'), ['fifth'])
  t.same(await found('paused_by=failures'), [])
  await call('PUT', '/v1/calendars/days%2Foff', { dates: ['12-25'] })
  await add('calendar', { cron: undefined, schedule: { cron: '0 * * * *', exclude_calendars: ['days/off'] } })
  t.same(await found('calendar=days%2Foff'), ['calendar'])
  t.same(await found('calendar=days'), [])
  t.same(await found('key_prefix=billing&name=nightly&transport=webhook&status=active'), ['Nightly Report'])
})
