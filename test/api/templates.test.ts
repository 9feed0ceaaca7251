/** Templates through the API: what is refused, what is sent, and previews. */
import t, { type Test } from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, eventually, invalid, receiver } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const callback = { url: 'http://127.0.0.1:5555/hook?day={{scheduled_date}}', headers: { 'X-Name': '{{cue.name}}' } }
const base = {
  name: 'Zürich',
  cron: '0 9 * * *',
  timezone: 'Asia/Tokyo',
  template: true,
  payload: { id: '{{execution_id}}', deep: ['{{previous.outcome.metadata.n}}'] },
  callback
}

t.test('a template is created, read, changed, replaced and applied', async t => {
  const { post, get, patch, call } = await build(t, start)
  const put = async (path: string, body: object) => (await call('PUT', path, body)).body
  const cue = await post('/v1/cues', { ...base, key: 'etl' })
  exactly(t, cue, { template: true, payload: base.payload, callback: { url: callback.url } })
  exactly(t, await patch(`/v1/cues/${cue.id}`, { template: false }), { template: false, version: 2 })
  exactly(t, await patch(`/v1/cues/${cue.id}`, { template: true }), { template: true, version: 3 })
  exactly(t, await patch(`/v1/cues/${cue.id}`, { template: null }), { template: false })
  exactly(t, await put('/v1/cues/by-key/etl', base), { template: true, changed: true })
  exactly(t, await put('/v1/cues/by-key/etl', { ...base, callback: { ...callback, headers: { 'X-Name': '********' } } }), {
    changed: false
  })
  exactly(t, await put('/v1/cues/by-key/etl', { ...base, template: undefined }), { template: false })
  const applied = await call('POST', '/v1/cues/apply', { set: 's', cues: [{ ...base, key: 'etl' }], take_over: true })
  exactly(t, applied.body, { updated: [{ key: 'etl', changes: { template: { from: false, to: true } } }] })
  exactly(t, await get(`/v1/cues/${cue.id}`), { template: true })
  exactly(t, await post('/v1/cues', { ...base, template: undefined, payload: '{{x}}' }), { template: false, payload: '{{x}}' })
})

t.test('unknown names and placeholders in other places are refused, with the member, and nothing is stored', async t => {
  const { call, post, get } = await build(t, start)
  const { id, version } = await post('/v1/cues', base)
  const plain = await post('/v1/cues', {
    ...base,
    template: false,
    payload: '{{y}}',
    callback: { ...callback, headers: { 'X-A': '{{x}}' } }
  })
  const cases: [object, string[]][] = [
    [{ payload: { a: ['{{x}}'] } }, ['payload']],
    [{ payload: '{{parents.a.execution_id}}' }, ['payload']],
    [{ approval: { message: 'Send {{x}}?' } }, ['approval', 'message']],
    [{ callback: { ...callback, headers: { 'X-A': '{{x}}' } } }, ['callback', 'headers', 'X-A']],
    [{ callback: { url: 'http://127.0.0.1:5555/hook?a={{x}}' } }, ['callback', 'url']],
    [{ callback: { url: 'http://127.0.0.1:5555/{{cue.key}}' } }, ['callback', 'url']],
    [{ payload: Array(101).fill('{{cue.id}}') }, ['template']]
  ]
  for (const [change, loc] of cases) {
    exactly(t, await call('POST', '/v1/cues', { ...base, ...change }), invalid('body', ...loc))
    exactly(t, await call('PUT', '/v1/cues/by-key/new', { ...base, ...change }), invalid('body', ...loc))
    exactly(t, await call('POST', '/v1/cues/preview-payload', { ...base, ...change }), invalid('body', ...loc))
    exactly(t, await call('PATCH', `/v1/cues/${id}`, change), invalid('body', ...loc))
    exactly(
      t,
      await call('POST', '/v1/cues/apply', { set: 's', cues: [{ ...base, ...change, key: 'new' }] }),
      invalid('body', 'cues', 'new', ...loc)
    )
  }
  const refused = await call('POST', '/v1/cues', { ...base, payload: '{{x}}' })
  t.match(
    refused.body.error.message,
    /^payload: Value error, \{\{x\}\} is not a known name\. Known: execution_id, .*, parents\.KEY\..*\. For the text \{\{, write \{\{\{\{$/
  )
  exactly(
    t,
    await call('POST', '/v1/cues', { ...base, callback: { ...callback, headers: { 'X-{{cue.id}}': 'a' } } }),
    invalid('body', 'callback', 'headers', 'X-{{cue.id}}')
  )
  exactly(t, await call('PATCH', `/v1/cues/${plain.id}`, { template: true }), invalid('body', 'payload'))
  exactly(t, await call('PATCH', `/v1/cues/${plain.id}`, { template: true, payload: {} }), invalid('body', 'callback', 'headers'))
  const fire = { payload_override: { a: '{{x}}' } }
  for (const merge_strategy of ['merge', 'replace'])
    exactly(t, await call('POST', `/v1/cues/${id}/fire`, { ...fire, merge_strategy }), invalid('body', 'payload_override'))
  exactly(t, await call('POST', '/v1/cues/test', { cue_id: id, payload: '{{x}}' }), invalid('body', 'payload'))
  t.equal((await post(`/v1/cues/${plain.id}/fire`, fire)).status, 'pending')
  exactly(t, await get('/v1/cues'), { total: 2 })
  exactly(t, await get(`/v1/cues/${id}`), { version, executions: [] })
  exactly(t, await get(`/v1/cues/${plain.id}`), { version: 1 })
})

t.test('an execution shows the payload that is sent, and an override has names of its own', async t => {
  const { post, get, fn, clock } = await build(t, start)
  const { id } = await post('/v1/cues', {
    ...base,
    transport: 'worker',
    callback: undefined,
    payload: { task: 'go', id: '{{execution_id}}', due: '{{due_at}}' }
  })
  const fired = await post(`/v1/cues/${id}/fire`, { payload_override: { day: '{{scheduled_date}}', by: 'by {{triggered_by}}' } })
  const payload = { task: 'go', id: fired.id, due: new Date(start).toISOString(), day: '2030-01-07', by: 'by manual_fire' }
  exactly(t, await get(`/v1/executions/${fired.id}`), { payload, template_truncated: false })
  exactly(t, await get('/v1/executions/claimable'), { executions: [{ payload }] })
  exactly(t, await post('/v1/executions/claim', { worker_id: 'w' }), { execution_id: fired.id, payload })
  await post(`/v1/executions/${fired.id}/outcome`, { success: true, metadata: { n: 1 } })
  const replay = await post(`/v1/executions/${fired.id}/replay`)
  const [other] = [replay.id ?? replay.execution_id]
  exactly(t, await post(`/v1/executions/${other}/claim`, { worker_id: 'w' }), { execution_id: other, payload })
  clock.advance('1 minute')
  t.same(await beginWaiting(fn, { limit: 10 }), [])
})

t.test('a webhook gets the values in body, header and query, and every attempt is the same', async t => {
  const hook = await receiver(t, (_, n) => (n === 0 ? { status: 500 } : { body: { success: true, result: 'é\n2', metadata: { n: 12 } } }))
  const { post, get, url, patch } = await build(t)
  await startEngine(t, testConfig(url, { POLL_INTERVAL_MS: '500' }))
  const { id } = await post('/v1/cues', {
    ...base,
    cron: '@yearly',
    timezone: 'UTC',
    retry: { max_attempts: 2, backoff_minutes: [0] },
    delivery: { await_outcome: true },
    payload: { id: '{{execution_id}}', n: '{{previous.outcome.metadata.n}}', text: '{{previous.outcome.result}}!' },
    callback: { url: `${hook.url}a?r={{previous.outcome.result}}&b=1`, headers: { 'X-Name': '{{cue.name}} {{previous.outcome.result}}' } }
  })
  const fire = async (count: number) => {
    const fired = await post(`/v1/cues/${id}/fire`)
    await eventually(async () => (await get(`/v1/executions/${fired.id}`)).status === 'success', 20_000)
    t.equal(hook.requests.length, count)
    return fired.id
  }
  const first = await fire(2)
  const second = await fire(3)
  const seen = hook.requests.map(({ path, headers, body }) => [path, headers['x-name'], JSON.parse(String(body))])
  const attempt = ['/a?r=&b=1', 'Z%C3%BCrich', { id: first, n: null, text: '!' }]
  t.same(seen, [attempt, attempt, ['/a?r=%C3%A9%0A2&b=1', 'Z%C3%BCrich %C3%A9%0A2', { id: second, n: 12, text: 'é\n2!' }]])
  exactly(t, await get(`/v1/executions/${second}`), { payload: { id: second, n: 12, text: 'é\n2!' } })
  await patch(`/v1/cues/${id}`, { delivery: { await_outcome: false } })
  const tried = await post('/v1/cues/test', { cue_id: id })
  exactly(t, tried.request, { url: `${hook.url}a?r=%C3%A9%0A2&b=1` })
  exactly(t, JSON.parse(tried.request.body), { n: 12, id: tried.request.headers['X-Service-Execution-Id'] })
})

const preview = async (t: Test) => {
  const s = await build(t, start)
  return { ...s, preview: (body: object) => s.call('POST', '/v1/cues/preview-payload', body) }
}

t.test('a preview has the values of the next run, and examples for runs that there have not been', async t => {
  const { preview: show, post, get, fn } = await preview(t)
  const shown = await show(base)
  exactly(t, shown, {
    status: 200,
    body: {
      payload: { id: /^[0-9a-f-]{36}$/, deep: ['value'] },
      url: 'http://127.0.0.1:5555/hook?day=2030-01-08',
      headers: { 'X-Name': 'Z%C3%BCrich' }
    }
  })
  exactly(t, (await show({ ...base, payload: ['{{previous.success_at}}', '{{previous.outcome.result_url}}', '{{cue.key}}'] })).body, {
    payload: ['2030-01-07T00:00:00.000Z', 'https://example.com/result', null]
  })
  exactly(t, (await show({ ...base, template: false })).body, { payload: base.payload, url: callback.url, headers: callback.headers })
  exactly(t, await show({ ...base, worker: true, callback: undefined, payload: undefined }), {
    status: 200,
    body: { payload: {}, url: null, headers: {} }
  })
  exactly(t, await show({ ...base, cron: 'x' }), { status: 400, body: { error: { code: 'invalid_schedule' } } })
  exactly(t, await get('/v1/cues'), { total: 0 })
  const worker = { ...base, key: 'k', worker: true, callback: undefined }
  const { id } = await post('/v1/cues', worker)
  const fired = await post(`/v1/cues/${id}/fire`)
  await post('/v1/executions/claim', { worker_id: 'w' })
  await post(`/v1/executions/${fired.id}/outcome`, { success: true, metadata: { n: 5 } })
  const after = await show({ ...worker, payload: ['{{previous.outcome.metadata.n}}', '{{cue.id}}', '{{previous.outcome.metadata.m}}'] })
  exactly(t, after.body, { payload: [5, id, 'value'] })
  exactly(t, (await show({ ...worker, key: 'l', payload: '{{previous.outcome.metadata.n}}' })).body, { payload: 'value' })
  t.ok(fn)
})

t.test('names of parents are those of the cues that it follows', async t => {
  const { call, post } = await build(t, start)
  await post('/v1/cues', { name: 'extract', key: 'etl/extract', cron: '@daily', worker: true })
  const other = await post('/v1/cues', { name: 'other', cron: '@daily', worker: true })
  const follower = { name: 'load', worker: true, template: true, payload: '{{parents.etl/extract.outcome.result}}' }
  exactly(t, await call('POST', '/v1/cues', { ...follower, after: { cues: [other.id] } }), invalid('body', 'payload'))
  const { id } = await post('/v1/cues', { ...follower, after: { cues: ['etl/extract'] } })
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { after: { cues: [other.id] } }), invalid('body', 'payload'))
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { after: { when: 'verified' } }), { status: 200 })
  const parents = { 'etl/extract': 200, [other.id]: 422, extract: 422 }
  for (const [key, status] of Object.entries(parents)) {
    const payload_override = { id: `{{parents.${key}.execution_id}}` }
    exactly(t, await call('POST', `/v1/cues/${id}/fire`, { payload_override, merge_strategy: 'replace' }), { status }, key)
  }
  exactly(t, (await call('POST', '/v1/cues/preview-payload', { ...follower, after: { cues: ['etl/extract'] } })).body, { payload: 'done' })
})
