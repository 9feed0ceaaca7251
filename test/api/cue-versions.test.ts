/** Versions of cues, and changes that expect one. */
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { build, error, invalid } from '../support/setup.ts'
import { once, stage } from '../support/stage.ts'

const start = '2030-01-07T08:30:00Z'
const hourly = { name: 'Hourly', cron: '0 * * * *', callback_url: 'http://127.0.0.1:5555/hook' }
const byKey = '/v1/cues/by-key/k'
const match = (etag: string) => ({ 'if-match': etag })
const stale = (version: number) => ({
  status: 412,
  headers: { etag: `"${version}"` },
  body: { error: { code: 'version_conflict', version, status: 412 } }
})

t.test('responses have the version, which only changes of definition and status raise', async t => {
  const { call, post, get } = await build(t, start)
  const created = await call('PUT', byKey, hourly)
  const { id } = created.body
  const path = `/v1/cues/${id}`
  exactly(t, created, { headers: { etag: '"1"' }, body: { version: 1 } })
  for (const [method, url, body, version] of [
    ['PATCH', path, { name: 'Other' }, 2],
    ['PATCH', path, { name: 'Other' }, 2],
    ['PATCH', path, {}, 2],
    ['PATCH', path, { status: 'active' }, 2],
    ['PATCH', path, { status: 'paused' }, 3],
    ['PATCH', path, { status: 'active' }, 4],
    ['PATCH', path, { schedule: { cron: '0 * * * *', timezone: 'utc' } }, 4],
    ['PATCH', path, { schedule: { timezone: 'Europe/Berlin' } }, 5],
    ['PUT', byKey, hourly, 6],
    ['PUT', byKey, hourly, 6],
    ['GET', path, undefined, 6],
    ['GET', byKey, undefined, 6]
  ] as const) {
    exactly(
      t,
      await call(method, url, body),
      { status: 200, headers: { etag: `"${version}"` }, body: { version } },
      `${method} ${JSON.stringify(body)}`
    )
  }
  const { id: fired } = await post(`${path}/fire`)
  await post(`/v1/executions/${fired}/cancel`)
  await post(`/v1/executions/${fired}/replay`)
  exactly(t, await get(path), { version: 6, run_count: 2 })
  exactly(t, await get('/v1/cues'), { cues: [{ version: 6 }] })
  exactly(t, await call('POST', '/v1/cues', hourly), { status: 201, headers: { etag: '"1"' }, body: { version: 1 } })
})

t.test('running does not raise the version; pausing and finishing do', async t => {
  const { take, settle, begun, cue, run } = await stage(t)
  const id = await cue()
  await settle(await take([id]))
  exactly(t, await run(id), { version: 1, fired_count: 1 })
  const paused = await begun({ on_failure_pause: true, retry_max_attempts: 1 })
  await settle([paused], { http_status: 500, error: 'no' })
  exactly(t, await run(paused.cue_id), { version: 2, status: 'paused' })
  const done = await begun(once)
  await settle([done])
  exactly(t, await run(done.cue_id), { version: 2, status: 'completed' })
})

t.test('a change that expects another version is refused and changes nothing', async t => {
  const { call, patch, get } = await build(t, start)
  const { body: created } = await call('PUT', byKey, hourly)
  const path = `/v1/cues/${created.id}`
  const second = await patch(path, { name: 'Second' })
  for (const [method, url, body] of [
    ['PATCH', path, { name: 'x' }],
    ['PATCH', path, { status: 'paused' }],
    ['PATCH', path, {}],
    ['PUT', byKey, hourly],
    ['PUT', byKey, { ...hourly, name: 'Second' }],
    ['DELETE', path],
    ['DELETE', byKey]
  ] as const) {
    for (const etag of ['"1"', '"3"', '"1", "3"', 'W/"1"', '"999999999"'])
      exactly(t, await call(method, url, body, match(etag)), stale(2), `${method} ${etag}`)
    for (const etag of ['2', '""', '"2', 'x', '"2";"3"', '"-2"', '"2.0"', '*, "2"', '"99999999999"', ' ', `"2"${', "2"'.repeat(99)}`])
      exactly(t, await call(method, url, body, match(etag)), invalid('header', 'if-match'), `${method} ${etag}`)
  }
  t.same(await get('/v1/cues').then(({ cues }) => cues), [second])
  exactly(t, await call('PATCH', path, { name: 'Third' }, match('"2"')), { status: 200, body: { version: 3 } })
  exactly(t, await call('PUT', byKey, { ...hourly, name: 'Fourth' }, match('"1", "3"')), { status: 200, body: { version: 4 } })
  exactly(t, await call('PATCH', path, { name: 'Fifth' }, match('W/"4"')), { status: 200, body: { version: 5 } })
  exactly(t, await call('PUT', byKey, hourly, match('*')), { status: 200, body: { version: 6 } })
  exactly(t, await call('DELETE', byKey, undefined, match('"6"')), { status: 204 })
  exactly(t, await call('DELETE', path, undefined, match('"6"')), error('cue_not_found', 404))
  exactly(t, await call('PATCH', path, {}, match('*')), error('cue_not_found', 404))
  for (const etag of ['"1"', '*']) exactly(t, await call('PUT', byKey, hourly, match(etag)), error('version_conflict', 412))
  exactly(t, await get('/v1/cues'), { total: 0 })
})

t.test('one of many concurrent changes of a version succeeds', async t => {
  const { call, post, app, config, pool, as, account } = await build(t, start)
  const { build: again } = await import('../../src/app.ts')
  const other = await again({ config, pool, clock: app.now })
  t.teardown(() => other.close())
  const elsewhere = async (method: 'PATCH' | 'DELETE', url: string, payload?: object) => {
    const headers = { authorization: `Bearer ${account.api_key}`, ...match('"1"') }
    return { status: (await other.inject({ method, url, headers, ...(payload && { payload }) })).statusCode }
  }
  for (const withDelete of [false, true]) {
    const { id } = await post('/v1/cues', hourly)
    const path = `/v1/cues/${id}`
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        if (withDelete && n % 4 === 0) return elsewhere('DELETE', path)
        return n % 2 ? elsewhere('PATCH', path, { name: `n${n}` }) : as(account).call('PATCH', path, { name: `n${n}` }, match('"1"'))
      })
    )
    t.equal(answers.filter(({ status }) => status < 300).length, 1)
    t.same(
      answers.map(({ status }) => status).filter(status => ![200, 204, 404, 412].includes(status)),
      []
    )
    if (!withDelete) exactly(t, await call('GET', path), { body: { version: 2 } })
  }
})

t.test('a run between reading and changing a cue is no conflict, a change is', async t => {
  const { fn, account_id, account, cue, take, run } = await stage(t)
  const id = await cue()
  await take([id])
  const { next_run } = await run(id)
  t.equal(await fn.updateCue({ account_id, cue_id: id, version: 1, changes: { name: 'b' }, next_run }), true)
  await t.rejects(fn.deleteCue({ account_id, cue_id: id, version: 1 }), { code: 'QU014' })
  await t.rejects(fn.deleteCue({ account_id: await account(), cue_id: id, version: 2 }), { code: 'QU001' })
  await fn.deleteCue({ account_id, cue_id: id, version: 2 })
  await t.rejects(fn.deleteCue({ account_id, cue_id: id, version: 2 }), { code: 'QU001' })
})
