import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createClient, verifyWebhook } from '../../src/client/index.ts'
import { freePort } from '../../src/embedded-postgres/embedded-postgres.ts'
import { cliStage } from '../support/cli-stage.ts'
import { exactly } from '../support/exactly.ts'
import type { Received } from '../support/receiver.ts'
import { eventually, receiver } from '../support/setup.ts'
import { rawReceiver } from '../support/webhook-stage.ts'

const stage = async (t: Test) => {
  const { cli, post, get, baseUrl, account, ...rest } = await cliStage(t)
  const client = createClient({ baseUrl, apiKey: account.api_key })
  const cue = async (task: string) => (await post('/v1/cues', { name: task, cron: '@yearly', worker: true, payload: { task, é: 1 } })).id
  const fire = async (id: string) => (await post(`/v1/cues/${id}/fire`)).id as string
  /** Runs `pgcue listen` until stopped, and returns its lines. */
  const listen = (args: string[]) => {
    const stop = new AbortController()
    const ended = cli(['listen', '--json', ...args], { stopping: stop.signal })
    t.teardown(() => {
      stop.abort()
      return ended
    })
    return async () => {
      stop.abort()
      return ended
    }
  }
  const ended = (id: string) =>
    eventually(async () => {
      const execution = await get(`/v1/executions/${id}`)
      return execution.outcome && execution
    })
  return { ...rest, cli, client, cue, fire, listen, ended, get, baseUrl }
}

t.test('forwards an execution as the webhook it would be', async t => {
  const { client, cue, fire, listen, ended, get } = await stage(t)
  const local = await receiver(t, () => ({ body: 'thanks' }))
  const cue_id = await cue('report')
  const id = await fire(cue_id)
  const stop = listen(['--forward-to', `${local.url}hook`])
  exactly(t, await ended(id), { status: 'success', outcome: { success: true, result: 'HTTP 200: thanks' } })
  const [request] = local.requests
  exactly(t, request, {
    method: 'POST',
    path: '/hook',
    body: '{"task": "report", "\\u00e9": 1}',
    headers: { authorization: /^Bearer svc_sk_x_/ }
  })
  const { webhook_secret } = await client.secrets.webhook()
  exactly(t, await verifyWebhook(request!.body, request!.headers, webhook_secret), { executionId: id, cueId: cue_id, attempt: 1 })
  const { code, out } = await stop()
  t.equal(code, 0)
  exactly(t, JSON.parse(out), { execution_id: id, status: 200, success: true, reported: true })
  exactly(t, await get('/v1/workers'), { total: 0 })
})

t.test('prints its secret, whose executions it takes, and the bodies if asked', async t => {
  const { cli, client, cue, fire, ended } = await stage(t)
  const local = await receiver(t, () => ({ body: 'thanks' }))
  const id = await cue('report')
  await client.cues.update(id, { key: 'a/b' })
  const execution = await fire(id)
  const stop = new AbortController()
  const listening = cli(['listen', '--forward-to', local.url, '--cue', 'a/b', '--print'], { stopping: stop.signal })
  await ended(execution)
  stop.abort()
  const { webhook_secret } = await client.secrets.webhook()
  const lines = (await listening).out.split('\n')
  t.same(lines.slice(0, 2), [
    `Forwarding to ${local.url}, signed with ${webhook_secret}. Stop with Ctrl-C.`,
    `This takes executions of ${id} for workers away from other workers of the account, until it is stopped.`
  ])
  t.same(lines.slice(3), ['  > {"task": "report", "\\u00e9": 1}', '  < thanks', ''])
})

t.test('the local response is the outcome', async t => {
  const { cue, fire, listen, ended } = await stage(t)
  const local = await receiver(t)
  const id = await cue('report')
  listen(['--forward-to', local.url, '--secret', 'whsec_00'])
  for (const [answer, outcome] of [
    [{ body: { success: false, error: 'no such report' } }, { success: false, error: 'no such report' }],
    [
      { body: { success: true, result: 'all good', external_id: '42', result_ref: 'r', metadata: { rows: 3 } } },
      { success: true, result: 'all good', external_id: '42', metadata: { rows: 3 } }
    ],
    [{ body: '\ufeff{"success": false}' }, { success: false }],
    [({ headers }: Received) => ({ body: { success: true, result: headers.authorization } }), { success: true, result: 'Bearer ********' }],
    [{ body: { success: 'yes' } }, { success: true, result: 'HTTP 200: {"success":"yes"}' }],
    [
      { status: 500, body: { success: true } },
      { success: false, error: 'HTTP 500: {"success":true}' }
    ],
    [
      { status: 302, headers: { location: '/' }, body: '' },
      { success: false, error: 'HTTP 302' }
    ]
  ] as const) {
    local.answer(answer)
    exactly(t, await ended(await fire(id)), { outcome })
  }
})

t.test('a local server that ends its connections loses no execution', async t => {
  const { cue, fire, listen, ended } = await stage(t)
  const local = await rawReceiver(t, socket =>
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      socket.once('data', () => socket.destroy())
    })
  )
  const id = await cue('report')
  listen(['--forward-to', local.url])
  for (let n = 0; n < 3; n++) exactly(t, await ended(await fire(id)), { outcome: { success: true } })
})

t.test('accepts the report of a handler that reports itself', async t => {
  const { cue, fire, listen, ended, baseUrl } = await stage(t)
  const local = await receiver(t, async ({ headers }) => {
    const apiKey = headers.authorization!.slice('Bearer '.length)
    await createClient({ baseUrl, apiKey }).executions.reportOutcome(String(headers['x-service-execution-id']), {
      success: false,
      error: 'own'
    })
    return {}
  })
  const id = await fire(await cue('report'))
  const stop = listen(['--forward-to', local.url])
  exactly(t, await ended(id), { outcome: { success: false, error: 'own' } })
  await delay(500) // the outcome was there before the answer that listen waits for
  exactly(t, JSON.parse((await stop()).out), { execution_id: id, reported: false })
})

t.test('reports a failure if nothing listens locally', async t => {
  const { cue, fire, listen, ended } = await stage(t)
  const url = `http://127.0.0.1:${await freePort()}/`
  const id = await fire(await cue('report'))
  listen(['--forward-to', url])
  exactly(t, await ended(id), { status: 'failed', outcome: { error: `${url}: ECONNREFUSED` } })
})

t.test('rejects an unusable target before claiming anything', async t => {
  const { cli, cue, fire, get } = await stage(t)
  const id = await fire(await cue('report'))
  const stopping = AbortSignal.timeout(3000)
  for (const [url, err] of [
    ['http://localhost:99999/', /is not a valid URL/],
    ['http://', /is required/],
    ['localhost:3000', /is required/],
    ['http://localhost:6000/', /port 6000/],
    ['https://me:mine@localhost/', /^(?!.*mine).*password/]
  ] as const) {
    exactly(t, await cli(['listen', '--forward-to', url], { stopping }), { code: 2, err }, url)
  }
  exactly(t, await get(`/v1/executions/${id}`), { status: 'pending', attempts: 0 })
})

t.test('releases an execution that fetch refuses to send', async t => {
  const { cli, cue, fire, get } = await stage(t)
  const id = await fire(await cue('report'))
  const send = globalThis.fetch
  t.teardown(() => {
    globalThis.fetch = send
  })
  globalThis.fetch = async (input, init) => {
    if (String(input).includes('/hook')) throw new TypeError('fetch failed', { cause: new Error('bad port') })
    return send(input, init)
  }
  const stopping = AbortSignal.timeout(5000)
  exactly(t, await cli(['listen', '--forward-to', 'http://localhost/hook'], { stopping }), { code: 2, err: /bad port/ })
  exactly(t, await get(`/v1/executions/${id}`), { status: 'pending', outcome: null })
})

t.test('a timeout is a failure', async t => {
  const { cue, fire, listen, ended } = await stage(t)
  const local = await receiver(t, () => new Promise(() => {}))
  const id = await fire(await cue('report'))
  listen(['--forward-to', local.url, '--timeout', '1'])
  exactly(t, await ended(id), { outcome: { error: /no response within 1 s/ } })
})

t.test('claims only the requested executions', async t => {
  const { cue, fire, listen, ended, get } = await stage(t)
  const local = await receiver(t)
  const [one, two, three] = [await cue('one'), await cue('two'), await cue('three')]
  const left = await fire(one)
  const byCue = await fire(two)
  const byTask = await fire(three)
  listen(['--forward-to', local.url, '--cue', two])
  listen(['--forward-to', local.url, '--task', 'three'])
  await Promise.all([ended(byCue), ended(byTask)])
  exactly(t, await get(`/v1/executions/${left}`), { status: 'pending', attempts: 0 })
})

t.test("finds a cue's execution behind a hundred others", async t => {
  const { cue, fire, listen, ended, pool } = await stage(t)
  const local = await receiver(t)
  const [other, own] = [await cue('report'), await cue('report')]
  await fire(other)
  // A cue can be fired ten times an hour. The end of an id is random, and its start a partition.
  await pool.query(`insert into cue.executions select (jsonb_populate_record(e, jsonb_build_object('id',
      left(e.id::text, 24) || right(gen_random_uuid()::text, 12)))).*
    from cue.executions e, generate_series(1, 110)`)
  const id = await fire(own)
  listen(['--forward-to', local.url, '--cue', own])
  exactly(t, await ended(id), { status: 'success' })
  t.equal(local.requests.length, 1)
})

t.test('releases claims when stopped', async t => {
  const { cue, fire, listen, get } = await stage(t)
  const local = await receiver(t, () => new Promise(() => {}))
  const id = await fire(await cue('report'))
  const stop = listen(['--forward-to', local.url])
  await local.received()
  exactly(t, await stop(), { code: 0 })
  exactly(t, await get(`/v1/executions/${id}`), { status: 'pending', outcome: null })
})

/** A proxy in front of a service that refuses the requests selected by `refuses`. */
const proxy = (t: Test, baseUrl: string, refuses: (path: string) => boolean) =>
  receiver(t, async ({ method, path, headers, body }) => {
    if (refuses(path)) return { status: 503, headers: { 'retry-after': '0' }, body: { error: { code: 'unavailable' } } }
    const { authorization, 'x-claim-token': token } = headers
    const passed = { authorization: authorization!, ...(token && { 'x-claim-token': String(token) }) }
    const init = body === '' ? { headers: passed } : { headers: { ...passed, 'content-type': 'application/json' }, body }
    const answer = await fetch(new URL(path, baseUrl), { method, ...init })
    return { status: answer.status, body: await answer.text() }
  })

t.test('continues after an execution was deleted while being forwarded', async t => {
  const { client, cue, fire, listen, ended } = await stage(t)
  const [gone, kept] = [await cue('gone'), await cue('kept')]
  const local = await receiver(t, async ({ headers }) => {
    if (headers['x-service-cue-id'] === gone) await client.cues.delete(gone)
    return {}
  })
  await fire(gone)
  const stop = listen(['--forward-to', local.url])
  await local.received()
  exactly(t, await ended(await fire(kept)), { status: 'success' })
  const { code, out } = await stop()
  t.equal(code, 0)
  t.match(out, /"reported": false/)
})

t.test('keeps trying to report during a long outage', async t => {
  const { cue, fire, listen, ended, baseUrl } = await stage(t)
  let refused = 0
  const service = await proxy(t, baseUrl, path => path.endsWith('/outcome') && refused++ < 6)
  const local = await receiver(t)
  const id = await fire(await cue('report'))
  const stop = listen(['--forward-to', local.url, '--base-url', service.url])
  exactly(t, await ended(id), { status: 'success', attempts: 1 })
  t.equal(local.requests.length, 1)
  exactly(t, await stop(), { code: 0 })
})

t.test('keeps trying to release during an outage', async t => {
  const { cue, fire, listen, get, baseUrl } = await stage(t)
  let refused = 0
  const service = await proxy(t, baseUrl, path => path.endsWith('/release') && refused++ < 3)
  const local = await receiver(t, () => new Promise(() => {}))
  const id = await fire(await cue('report'))
  const stop = listen(['--forward-to', local.url, '--base-url', service.url])
  await local.received()
  exactly(t, await stop(), { code: 0 })
  t.equal(refused, 4)
  exactly(t, await get(`/v1/executions/${id}`), { status: 'pending', outcome: null })
})

t.test('asks for the secret if the key may not read it', async t => {
  const { cli, client } = await stage(t)
  const { api_key } = await client.keys.create({ label: 'worker', scopes: ['worker'] })
  const env = { PGCUE_API_KEY: api_key }
  exactly(t, await cli(['listen', '--forward-to', 'http://127.0.0.1:3000'], { env }), { code: 2, err: /PGCUE_WEBHOOK_SECRET/ })
})
