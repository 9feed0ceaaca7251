import t from 'tap'
import { enums } from '../../src/catalog.ts'
import { exactly } from '../support/exactly.ts'
import { paths } from '../support/openapi.ts'
import { build, error, eventually } from '../support/setup.ts'
import { cueDefaults } from '../support/stage.ts'

type Service = Awaited<ReturnType<typeof build>>

/** A key of the account's with these scopes only. */
const keyed = async ({ as, account, addKey }: Service, scopes: (typeof enums.keyScope)[number][]) => as(await addKey(account, scopes))

/** The scopes of which a key needs one, by what its call does; undefined for calls that need no key. */
const scopesOf = (method: string, path: string): string[] | undefined => {
  const call = `${method} ${path}`
  if (/^(GET \/v1\/auth\/me|GET \/v1\/echo\/.*|DELETE \/v1\/auth\/session|POST \/v1\/auth\/session\/refresh|POST \/mcp)$/.test(call))
    return [...enums.keyScope]
  if (/^\/v1\/(auth|billing|support|memory-block)\b/.test(path) || /^(PUT|POST|DELETE) \/v1\/(channels|event-endpoints)\b/.test(call))
    return ['account']
  if (/\/(approve|reject)$/.test(path)) return ['approve']
  if (/^GET \/v1\/(workers|executions\/(claimable|{execution_id}))$/.test(call)) return ['read', 'worker']
  if (/\/(claim|heartbeat|release|outcome|evidence|{worker_id})$/.test(path)) return ['worker']
  return method === 'GET' || ['/v1/schedules/preview', '/v1/cues/preview-payload'].includes(path) ? ['read'] : ['write']
}

t.test('each call needs a key with its scope; a token of an execution is for what its handler calls', async t => {
  const service = await build(t)
  const { post, as } = service
  const cue = await post('/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true })
  const [own, other] = [await post(`/v1/cues/${cue.id}/fire`), await post(`/v1/cues/${cue.id}/fire`)]
  const { execution_token } = await post(`/v1/executions/${own.id}/claim`)
  const all = enums.keyScope
  const keys = await Promise.all(all.map(scope => keyed(service, [scope])))
  const token = as({ id: '', email: '', api_key: execution_token })
  const forToken = /^(GET \/v1\/executions\/{execution_id}|.*\/{execution_id}\/(heartbeat|outcome|evidence))$/
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { security = [] }]) =>
      security.length > 0 && !path.startsWith('/v1/operator') ? [[method.toUpperCase(), path] as const] : []
    )
  )
  t.ok(operations.length > 70)
  for (const [method, path] of operations) {
    const name = `${method} ${path}`
    const url = (id: string) => path.replace('{execution_id}', id).replaceAll(/{\w+}/g, 'x'.repeat(16))
    exactly(t, await as(null).call(method, url(own.id)), error('not_authenticated', 401), name)
    const answers = await Promise.all(keys.map(async ({ call }) => (await call(method, url(own.id))).body.error?.code))
    t.same(
      all.filter((_, n) => answers[n] !== 'insufficient_scope'),
      scopesOf(method, path),
      name
    )
    const isForToken = forToken.test(name)
    const refused = [own.id, other.id].map(async id => (await token.call(method, url(id))).body.error?.code === 'insufficient_scope')
    if (scopesOf(method, path)!.length < 5) t.same(await Promise.all(refused), [!isForToken, true], `${name} with a token`)
  }
})

const url = 'http://127.0.0.1:5555/hook'
const hourly = { name: 'a cue', cron: '0 * * * *' }
const refusal = {
  error: {
    code: 'insufficient_scope',
    message:
      "Only a key with scope account may set or change callback or on_failure.webhook while the account's API key is sent to callbacks (webhook_authorization: api_key).",
    status: 403
  }
}

t.test('while the key is sent to callbacks, only a key with scope account can set a callback', async t => {
  const service = await build(t)
  const { post, get } = service
  const lesser = await keyed(service, ['read', 'write', 'worker'])
  const { id } = await post('/v1/cues', { ...hourly, callback: { url, headers: { 'X-Own': 'a' } } })
  await service.patch('/v1/auth/me', { webhook_authorization: 'api_key' })

  for (const body of [
    { callback_url: url },
    { callback: { url } },
    { worker: true, callback: { url } },
    { worker: true, on_failure: { webhook: url } }
  ]) {
    const { status, body: answer } = await lesser.call('POST', '/v1/cues', { ...hourly, ...body })
    t.same([status, answer], [403, refusal], JSON.stringify(body))
  }
  const created = await lesser.call('POST', '/v1/cues', { ...hourly, worker: true })
  t.equal(created.status, 201, 'a cue for workers has no callback')
  for (const body of [
    { callback: { url: `${url}/other` } },
    { callback: { method: 'PUT' } },
    { callback: { headers: { 'X-Own': 'b' } } },
    { callback: { headers: null } },
    { on_failure: { webhook: url } }
  ]) {
    const { status, body: answer } = await lesser.call('PATCH', `/v1/cues/${id}`, body)
    t.same([status, answer], [403, refusal], JSON.stringify(body))
  }
  const stored = await get(`/v1/cues/${id}`)
  t.same([stored.callback, stored.on_failure.webhook], [{ url, method: 'POST', headers: { 'X-Own': '********' } }, null])
})

t.test('a key without scope account can still change everything else', async t => {
  const service = await build(t)
  const { post, patch } = service
  const lesser = await keyed(service, ['read', 'write'])
  await patch('/v1/auth/me', { webhook_authorization: 'api_key' })
  const { id } = await post('/v1/cues', { ...hourly, callback: { url, headers: { 'X-Own': 'a' } } })
  for (const [method, path, body] of [
    ['PATCH', `/v1/cues/${id}`, { name: 'another', callback: { url, method: 'POST', headers: { 'X-Own': '********' } } }],
    ['PATCH', `/v1/cues/${id}`, { status: 'paused', on_failure: { webhook: null } }],
    ['POST', `/v1/cues/${id}/fire`, { payload_override: { a: 1 } }]
  ] as const) {
    t.equal((await lesser.call(method, path, body)).status, 200, JSON.stringify(body))
  }
  t.equal((await patch(`/v1/cues/${id}`, { callback: { method: 'PUT' } })).callback.method, 'PUT', 'a key with scope account may')
})

t.test('with execution tokens, every key with scope write can set callbacks', async t => {
  const service = await build(t)
  const lesser = await keyed(service, ['write'])
  const { status, body } = await lesser.call('POST', '/v1/cues', { ...hourly, callback_url: url, on_failure: { webhook: url } })
  t.equal(status, 201)
  t.equal((await lesser.call('PATCH', `/v1/cues/${body.id}`, { callback: { method: 'PUT' } })).status, 200)
})

t.test('refuses one of several cues created together and creates the others', async t => {
  const { fn, pool, account, register } = await build(t)
  const other = await register()
  await pool.query("update cue.accounts set webhook_authorization = 'api_key' where id = $1", [account.id])
  const cue = { ...cueDefaults, callback_allowed: false }
  const made = await fn.createEachCue({
    account_ids: [account.id, other.id, account.id],
    cues: JSON.stringify([cue, cue, { ...cue, callback_allowed: true }]),
    next_runs: [null, null, null]
  })
  t.same(
    made.map(one => one.id !== null),
    [false, true, true]
  )
})

t.test('a change of a callback that waits for the setting is judged by its new value', async t => {
  const { fn, pool, account, post, get } = await build(t)
  const { id } = await post('/v1/cues', { ...hourly, callback_url: url })
  const client = await pool.connect()
  await client.query('begin')
  await client.query("update cue.accounts set webhook_authorization = 'api_key' where id = $1", [account.id])
  const change = fn.updateCue({
    account_id: account.id,
    cue_id: id,
    version: 1,
    changes: { callback_url: `${url}/other`, callback_allowed: false },
    next_run: null
  })
  const refused = t.rejects(change, { code: 'QU052' })
  await eventually(async () => (await pool.query("select from pg_stat_activity where wait_event_type = 'Lock'")).rows.length > 0)
  await client.query('commit')
  client.release()
  await refused
  t.equal((await get(`/v1/cues/${id}`)).callback.url, url)
})
