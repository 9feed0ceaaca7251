/** Pauses: by whom, why, until when; and cues that resume by themselves. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createPauseSweep, resumedRun } from '../../src/firing/ended-pauses.ts'
import { startEngine } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { setLockTimeout } from '../support/patient.ts'
import { below, cases, chance, pick } from '../support/seed.ts'
import { serviceAt } from '../support/service.ts'
import { build, error, invalid } from '../support/setup.ts'
import { once, stage } from '../support/stage.ts'

const start = '2030-01-15T08:30:00.000Z'
const service = serviceAt(start)
const none = { paused_at: null, paused_by: null, pause_reason: null, paused_until: null }
const at = (time: string) => `2030-01-15T${time}.000Z`

t.test('pauses with a reason and an end, and resumes', async t => {
  const { cue, call, post, get, clock } = await service()
  const id = await cue()
  const path = `/v1/cues/${id}`
  exactly(t, await get(path), { status: 'active', ...none, version: 1 })
  const user = { status: 'paused', paused_at: start, paused_by: 'user', next_run: null }
  exactly(t, await call('POST', `${path}/pause`), {
    status: 200,
    headers: { etag: '"2"' },
    body: { ...user, pause_reason: null, paused_until: null }
  })
  clock.advance('1 minute')
  for (const [body, shown, version] of [
    [{}, { pause_reason: null, paused_until: null }, 2],
    [{ reason: 'repair', until: '2030-01-15T12:00:00+01:00' }, { pause_reason: 'repair', paused_until: at('11:00:00') }, 3],
    [{ reason: 'repair', until: at('11:00:00') }, { pause_reason: 'repair', paused_until: at('11:00:00') }, 3],
    [{ until: at('11:00:00') }, { pause_reason: null, paused_until: at('11:00:00') }, 4],
    [{ reason: 'x'.repeat(500), until: null }, { pause_reason: 'x'.repeat(500), paused_until: null }, 5],
    [{ reason: '' }, { pause_reason: '', paused_until: null }, 6]
  ] as const) {
    exactly(t, await post(`${path}/pause`, body), { ...user, ...shown, version }, JSON.stringify(body))
    exactly(t, await get(path), { ...user, ...shown, version })
    exactly(t, await get('/v1/cues'), { cues: [{ ...user, ...shown, version }] })
  }
  exactly(t, await call('POST', `${path}/resume`, {}), {
    status: 200,
    headers: { etag: '"7"' },
    body: { status: 'active', ...none, next_run: at('09:00:00') }
  })
  exactly(t, await post(`${path}/resume`), { status: 'active', version: 7 }, 'resuming an active cue changes nothing')
})

t.test('PATCH of status pauses and resumes as before', async t => {
  const { cue, post, patch, call } = await service()
  const path = `/v1/cues/${await cue({ key: 'k' })}`
  const user = { status: 'paused', paused_at: start, paused_by: 'user', pause_reason: null, paused_until: null }
  exactly(t, await patch(path, { status: 'paused' }), { ...user, version: 2 })
  const until = { pause_reason: 'r', paused_until: at('09:00:00') }
  await post(`${path}/pause`, { reason: 'r', until: at('09:00:00') })
  exactly(t, await patch(path, { status: 'paused', name: 'n' }), { ...user, ...until, version: 4 }, 'of a paused cue, it changes nothing')
  exactly(t, await call('PUT', '/v1/cues/by-key/k', { name: 'p', cron: '@daily', worker: true }), {
    body: { ...user, ...until, version: 5 }
  })
  exactly(t, await patch(path, { status: 'active' }), { status: 'active', ...none, version: 6 })
  exactly(t, await patch(path, { paused_until: at('09:00:00') }), { detail: [{ loc: ['body', 'paused_until'] }] })
})

t.test('refuses bad pauses, naming the field, and changes nothing', async t => {
  const { cue, call, get, other } = await service()
  const id = await cue()
  const path = `/v1/cues/${id}`
  const before = await get(path)
  for (const [field, value] of [
    ['reason', 'x'.repeat(501)],
    ['reason', 7],
    ['reason', ['r']],
    ['until', start],
    ['until', '2020-01-01T00:00:00Z'],
    ['until', '2030-01-15T09:00:00'],
    ['until', 'tomorrow'],
    ['until', 1_900_000_000],
    ['until', {}],
    ['until', '99999-01-01T00:00:00Z'],
    ['until', '9999-12-31T23:59:59-23:00'],
    ['status', 'paused'],
    ['paused_by', 'plan']
  ] as const) {
    const { status, body } = await call('POST', `${path}/pause`, { [field]: value })
    exactly(t, { status, body }, invalid('body', field), `${field} ${JSON.stringify(value)}`)
  }
  exactly(t, await call('POST', `${path}/pause`, { reason: 'a\u0000b' }), { status: 400 })
  for (const body of ['[]', '"x"', '7', '{'] as const) t.equal((await call('POST', `${path}/pause`, body)).status >= 400, true, body)
  exactly(t, await call('POST', `${path}/resume`, { until: null }), { status: 422 })
  for (const verb of ['pause', 'resume']) {
    exactly(t, await (await other()).calls.call('POST', `${path}/${verb}`), error('cue_not_found', 404))
    exactly(t, await call('POST', `/v1/cues/cue_000000000000/${verb}`), error('cue_not_found', 404))
    exactly(t, await call('POST', `/v1/cues/x/${verb}`), error('cue_not_found', 404))
    for (const etag of ['"2"', 'W/"9", "8"'])
      exactly(t, await call('POST', `${path}/${verb}`, {}, { 'if-match': etag }), {
        status: 412,
        body: { error: { code: 'version_conflict', version: 1 } }
      })
    exactly(t, await call('POST', `${path}/${verb}`, {}, { 'if-match': 'x' }), { status: 422 })
  }
  t.same(await get(path), before)
  exactly(t, await call('POST', `${path}/pause`, {}, { 'if-match': '"1"' }), { status: 200, body: { version: 2 } })
  exactly(t, await call('POST', `${path}/resume`, {}, { 'if-match': '"2"' }), { status: 200, body: { version: 3 } })
})

t.test('a one-time cue is paused until its slot at the latest, and not at all once it has ended', async t => {
  const { call, post, cue, rows } = await service()
  const id = await cue({ cron: undefined, at: at('10:00:00') })
  const path = `/v1/cues/${id}`
  exactly(t, await call('POST', `${path}/pause`, { until: at('10:00:01') }), { status: 422, body: { detail: [{ msg: /never run/ }] } })
  exactly(t, await post(`${path}/pause`, { until: at('10:00:00') }), { status: 'paused' })
  await rows("update cue.cues set status = 'completed', paused_at = null, paused_by = null, paused_until = null where id = $1", [id])
  for (const verb of ['pause', 'resume']) exactly(t, await call('POST', `${path}/${verb}`), error('invalid_state', 409))
})

t.test('the schedule that counts is the one at the end of the pause', async t => {
  const { fn, cue, post, patch, get, clock } = await service()
  const id = await cue()
  await post(`/v1/cues/${id}/pause`, { until: at('09:10:00') })
  await patch(`/v1/cues/${id}`, { schedule: { cron: '20 * * * *' } })
  clock.set('2030-01-17T00:00:00Z')
  t.equal(await createPauseSweep({ fn })(), 1)
  exactly(t, await get(`/v1/cues/${id}`), { status: 'active', next_run: at('09:20:00') })
})

t.test('a cue stays paused if its plan has no room for it, or it would never run', async t => {
  const { fn, cue, post, patch, get, clock, config, account, rows } = await service()
  const sweep = createPauseSweep({ fn })
  const rested = await cue()
  const single = await cue({ cron: undefined, at: at('12:00:00') })
  for (const id of [rested, single]) await post(`/v1/cues/${id}/pause`, { reason: 'r', until: at('09:00:00') })
  await rows('update cue.cues set at = $1 where id = $2', [at('08:45:00'), single])
  await cue()
  await fn.setPlans({ plans: { ...config.plans, free: { ...config.plans.free, cues: 1 } } })
  clock.set(at('09:00:00'))
  t.equal(await sweep(), 2)
  t.equal(await sweep(), 0)
  const stays = { status: 'paused', pause_reason: 'r', paused_until: null, next_run: null, version: 3 }
  exactly(t, await get(`/v1/cues/${rested}`), { ...stays, paused_by: 'plan' })
  exactly(t, await get(`/v1/cues/${single}`), { ...stays, paused_by: 'user' })
  exactly(
    t,
    await patch(`/v1/cues/${single}`, { status: 'active', schedule: { at: at('12:00:00') } }),
    error('cue_limit_exceeded', 403).body
  )
  t.ok(account.id)
})

t.test('the end of a pause leaves deleted, edited and locked cues alone', async t => {
  const { fn, cue, account_id, rows, row, clock, connect } = await stage(t)
  const pause = (cue_id: string, version = 1) =>
    fn.updateCue({ account_id, cue_id, version, changes: { status: 'paused', paused_until: clock.now() } })
  const [gone, edited, locked, ended] = [await cue(), await cue(), await cue(), await cue(once)]
  for (const id of [gone, edited, locked, ended]) await pause(id)
  await fn.deleteCue({ account_id, cue_id: gone })
  const found = await fn.endedPauses({})
  t.same(found.map(({ cue_id }) => cue_id).sort(), [edited, locked, ended].sort())
  await fn.updateCue({ account_id, cue_id: edited, version: 2, changes: { pause_reason: 'still broken', paused_until: null } })
  const { client } = await connect()
  await client.query('begin')
  await client.query('select from cue.cues where id = $1 for update', [locked])
  const resume = () =>
    fn.resumeCues({
      cue_ids: found.map(c => c.cue_id),
      versions: found.map(c => c.version),
      next_runs: found.map(one => resumedRun(one)?.due ?? null)
    })
  t.equal(await resume(), 1)
  await client.query('rollback')
  await client.query('begin')
  await client.query('select from cue.accounts where id = $1 for update', [account_id])
  t.equal(await resume(), 0)
  await client.query('rollback')
  t.equal(await resume(), 1)
  const status = async (id: string) => await row('select status, paused_by, pause_reason from cue.cues where id = $1', [id])
  t.same(await status(edited), { status: 'paused', paused_by: 'user', pause_reason: 'still broken' })
  t.same(await status(locked), { status: 'active', paused_by: null, pause_reason: null })
  t.same(await rows('select id from cue.cues where paused_until is not null and deleted_at is null'), [])
})

t.test('a paused one-time cue that ends has no pause any more', async t => {
  const { begun, settle, fn, account_id, row } = await stage(t)
  const attempt = await begun(once)
  await fn.updateCue({ account_id, cue_id: attempt.cue_id, version: 1, changes: { status: 'paused', pause_reason: 'r' } })
  await settle([attempt])
  t.same(await row('select status, paused_at, paused_by, pause_reason, paused_until from cue.cues where id = $1', [attempt.cue_id]), {
    status: 'completed',
    ...none
  })
})

t.test(`pauses, edits and sweeps in any order agree with a model (${cases(150)} steps)`, async t => {
  const { fn, cue, account_id, run, row, clock, connect, rows } = await stage(t, start)
  await setLockTimeout(rows, 'short', '10s')
  const others = [fn, (await connect()).fn, (await connect()).fn]
  const id = await cue({ cron: '@hourly' }, { next_run: new Date(at('09:00:00')) })
  let model = { status: 'active', until: null as number | null, version: 1 }
  const now = () => clock.now().getTime()
  const change = async (changes: object, apply: () => void) => {
    const { version } = await run(id)
    const changed = await fn.updateCue({
      account_id,
      cue_id: id,
      version,
      changes,
      next_run: new Date(Math.ceil((now() + 1) / 3_600_000) * 3_600_000)
    })
    const before = JSON.stringify(model)
    apply()
    if (JSON.stringify(model) !== before) model.version++
    t.equal(changed, JSON.stringify(model) !== before)
  }
  for (let n = 0; n < cases(150); n++) {
    if (chance(0.4)) clock.set(new Date(now() + pick([1, 60_000, 1_800_000, 5_000_000])))
    const until = chance(0.7) ? now() + 1 + below(4_000_000) : null
    const operation = below(4)
    if (operation === 0)
      await change({ status: 'paused', pause_reason: null, paused_until: until && new Date(until) }, () => {
        model = { ...model, status: 'paused', until }
      })
    else if (operation === 1)
      await change({ status: 'active' }, () => {
        model = { ...model, status: 'active', until: null }
      })
    else {
      const isDue = model.until !== null && model.until <= now()
      const ended = await Promise.all(others.map(other => createPauseSweep({ fn: other })()))
      t.equal(
        ended.reduce((sum, n) => sum + n),
        isDue ? 1 : 0
      )
      if (isDue) {
        const { next_run } = await run(id)
        t.equal(+next_run, Math.ceil(model.until! / 3_600_000) * 3_600_000)
        model = { status: 'active', until: null, version: model.version + 1 }
      }
    }
    const { paused_until } = await row('select paused_until from cue.cues where id = $1', [id])
    const { status, version, next_run } = await run(id)
    const seen = { status, until: paused_until && +paused_until, version }
    if (JSON.stringify(seen) !== JSON.stringify(model)) return t.same(seen, model, `step ${n}`)
    t.equal(next_run === null, status === 'paused')
  }
})

t.test('two engines resume a cue once, within seconds, also after a restart', async t => {
  const { config, post, get, pool } = await build(t)
  const rows = async (text: string, values: unknown[]) => (await pool.query(text, values)).rows
  const engines = [await startEngine(t, config), await startEngine(t, config)]
  const { id } = await post('/v1/cues', { name: 'n', cron: '* * * * * *', worker: true })
  await post(`/v1/cues/${id}/pause`)
  const resumedAfter = async () => {
    const until = new Date(Date.now() + 1500)
    const { version, fired_count } = await post(`/v1/cues/${id}/pause`, { until })
    return async () => {
      const cue = await eventually(async () => {
        const seen = await get(`/v1/cues/${id}`)
        return seen.status === 'active' && seen.fired_count > fired_count ? seen : undefined
      })
      t.ok(Date.now() - +until < 5000)
      t.equal(cue.version, version + 1)
      await post(`/v1/cues/${id}/pause`)
      const slots = await rows('select scheduled_for from cue.executions where cue_id = $1 and scheduled_for >= $2 order by 1', [id, until])
      t.equal(+slots[0].scheduled_for, Math.ceil(+until / 1000) * 1000, 'the first slot after the end of the pause runs')
      t.equal(new Set(slots.map((slot: { scheduled_for: Date }) => +slot.scheduled_for)).size, slots.length)
    }
  }
  await (await resumedAfter())()
  const check = await resumedAfter()
  for (const engine of engines) await engine.stop()
  await sleep(2000)
  await startEngine(t, config)
  await check()
})
