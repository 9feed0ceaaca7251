/** Failures grouped by error, and the hosts that webhooks went to. */
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { service, start, webhook, worker } from '../support/executions-stage.ts'
import { refused, resultsOf } from '../support/stage.ts'

const failing = { ...webhook, retry: { max_attempts: 1 } }
const answered = (http_status: number, text: string) => ({ ...refused, http_status, error: `answered ${http_status} ${text}` })

t.test('a new account has no errors and no destinations', async t => {
  const { get } = await service()
  t.same(await get('/v1/errors'), { since: '2030-01-08T09:00:00.000Z', total: 0, groups: 0, errors: [] })
  t.same(await get('/v1/destinations'), { since: '2030-01-14T09:00:00.000Z', until: start, hosts: 0, destinations: [] })
})

t.test('failures are grouped by status and message, whatever numbers and ids the message has', async t => {
  const { get, post, call, cue, fire, ran, clock, as, register } = await service()
  const [a, b] = [await cue({ ...failing, name: 'a' }), await cue({ ...failing, name: 'b' })]
  const reports = async (message: string) => {
    const id = await fire(handler)
    const { claim_token } = await post(`/v1/executions/${id}/claim`, { worker_id: 'w' })
    await call('POST', `/v1/executions/${id}/outcome`, { success: false, error: message }, { 'x-claim-token': claim_token })
    return id
  }
  const handler = await cue({ ...worker, name: 'handler' })
  const first = await ran(a, answered(503, 'Service Unavailable'))
  clock.advance('1 minute')
  await ran(a, answered(503, 'Service Unavailable'))
  clock.advance('1 minute')
  const last = await ran(b, answered(503, 'Service Unavailable'))
  await ran(a, answered(500, 'Internal Server Error'))
  await reports('user 17 of shop 3f2e1a2b-0000-4000-8000-00000000000a\n not found')
  clock.advance('1 second')
  const latest = await reports('user 4711 of shop 3f2e1a2b-0000-4000-8000-00000000000b not found')
  await ran(await cue())
  const { errors, ...rest } = await get('/v1/errors')
  t.same(rest, { since: '2030-01-08T09:02:01.000Z', total: 6, groups: 3 })
  exactly(t, errors, [
    {
      status: 'failed',
      http_status: 503,
      message: 'answered 503 Service Unavailable',
      count: 3,
      cues: 2,
      first_at: start,
      last_at: '2030-01-15T09:02:00.000Z',
      latest: { execution_id: last, cue_id: b, cue_name: 'b', error_message: 'answered 503 Service Unavailable' }
    },
    { http_status: null, message: 'user … of shop … not found', count: 2, cues: 1, latest: { execution_id: latest, cue_name: 'handler' } },
    { http_status: 500, count: 1, cues: 1 }
  ])

  const listed = async (query: string) => get(`/v1/executions?error_group=${errors[0].error_group}${query}`)
  exactly(t, await listed('&limit=1'), { executions: [{ id: last }], total: 3, total_exact: true, has_more: true })
  exactly(t, await listed(`&cue_id=${a}&dead=true`), { total: 2 })
  exactly(t, await listed('&dead=false'), { executions: [], total: 0 })
  exactly(t, await listed('&count_to=1'), { total: 1, total_exact: false })
  exactly(t, await as(await register()).get(`/v1/executions?error_group=${errors[0].error_group}`), { total: 0 })

  exactly(t, await get('/v1/errors?to=2030-01-15T09:01:00Z'), { total: 1, errors: [{ latest: { execution_id: first } }] })
  exactly(t, await get('/v1/errors?from=2030-01-15T09:01:30Z'), { since: '2030-01-15T09:01:30.000Z', total: 4 })
  exactly(t, await get('/v1/errors?from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z'), { since: '1970-01-01T00:00:00.000Z', total: 6 })
  exactly(t, await get('/v1/errors?from=2030-01-16T00:00:00Z&to=2030-01-01T00:00:00Z'), { total: 0, errors: [] })
  exactly(t, await as(await register()).get('/v1/errors'), { total: 0 })

  const operation = { type: 'dismiss', filter: { error_group: errors[0].error_group }, dry_run: true }
  exactly(t, await post('/v1/operations', operation), { total: 3 })
  await call('POST', `/v1/executions/${last}/dismiss`)
  exactly(t, await get('/v1/errors'), { total: 5, errors: [{ count: 2, cues: 1 }, { count: 2 }, { count: 1 }] })
  await call('DELETE', `/v1/cues/${a}`)
  exactly(t, await get('/v1/errors'), { total: 2, groups: 1 })
})

t.test('messages are compared without what changes from one to the next', async t => {
  const { pool } = await service()
  const cases: [string | null, number | null, string | null][] = [
    ['answered 404 Not Found', 404, 'answered 404 Not Found'],
    ['answered 404 of 1404', 404, 'answered 404 of …'],
    ['answered 404 Not Found', null, 'answered … Not Found'],
    ['at 2026-01-02T10:11:12.345Z', null, 'at …'],
    ['10.1.2.3:8080 refused after 1.5s', null, '… refused after …s'],
    ['cue_4Xab12345678 and deadbeefcafe1', null, '… and …'],
    ['s3, utf8 and HTTP/2 stay; backups stay', null, 's3, utf8 and HTTP/… stay; backups stay'],
    [' a\t\n b ', null, ' a b '],
    ['x'.repeat(5000), null, 'x'.repeat(200)],
    ['1'.repeat(5000), null, '…'],
    ['a1'.repeat(250), null, '…'],
    ['💥 <b>%s</b> \\1 & \u0001', 1, '💥 <b>%s</b> \\1 & 1'],
    ['', null, ''],
    [null, null, null]
  ]
  for (const [message, status, expected] of cases) {
    const { rows } = await pool.query('select cue.error_pattern($1, $2) as pattern', [message, status])
    t.equal(rows[0].pattern, expected, String(message).slice(0, 60))
  }
})

t.test('destinations are the hosts of callback URLs, with their rate, response times and failures', async t => {
  const { get, call, cue, fire, begin, fn, clock, as, register } = await service()
  const send = async (cue_id: string, result: object, ms = 5) => {
    clock.advance('1 second')
    const id = await fire(cue_id)
    const attempts = (await begin()).filter(attempt => attempt.execution_id === id)
    await fn.settleAttempts({ ...resultsOf(attempts, result, clock.now()), duration_ms: [ms] })
    return id
  }
  const one = await cue({ ...failing, callback_url: 'http://127.0.0.1:9999/one?x=@y' })
  const two = await cue({ ...failing, callback_url: 'http://127.0.0.1:9999/two' })
  const other = await cue({ ...webhook, callback_url: 'http://127.0.0.1/' })
  const idle = await cue({ ...worker })
  await fire(idle)
  for (let n = 1; n <= 18; n++) await send(n % 2 ? one : two, {}, n * 10)
  const last = await send(one, answered(503, 'Service Unavailable'))
  const away = await send(other, { ...refused, http_status: null, error: 'connection refused' })
  clock.set(start)
  const answer = await get('/v1/destinations')
  exactly(t, answer, {
    since: '2030-01-14T09:00:00.000Z',
    until: start,
    hosts: 2,
    destinations: [
      {
        host: '127.0.0.1:9999',
        cues: 2,
        attempts: 19,
        per_minute: 0.01,
        failures: 1,
        response_p50_ms: 90,
        response_p95_ms: 180,
        last_attempt: { at: '2030-01-15T09:00:19.005Z', http_status: 503, error: 'answered 503 Service Unavailable', execution_id: last },
        last_error: { at: '2030-01-15T09:00:19.005Z', http_status: 503, error: 'answered 503 Service Unavailable', execution_id: last },
        volume: [{ at: start, succeeded: 18, failed: 1 }]
      },
      {
        host: '127.0.0.1',
        cues: 1,
        attempts: 1,
        per_minute: 0,
        failures: 1,
        response_p50_ms: null,
        response_p95_ms: null,
        last_attempt: { at: '2030-01-15T09:00:20.005Z', http_status: null, error: 'connection refused', execution_id: away }
      }
    ]
  })
  clock.advance('1 minute')
  await send(other, {})
  clock.set(start)
  const { last_error, last_attempt } = (await get('/v1/destinations')).destinations[1]
  t.same([last_error.execution_id, last_attempt.http_status], [away, 200], 'the latest failure, though it works again')
  exactly(t, await get('/v1/destinations?from=2030-01-15T08:50:00Z'), { destinations: [{ per_minute: 1.9 }, { per_minute: 0.2 }] })
  exactly(t, await get(`/v1/destinations?to=${start}`), { destinations: [] })
  exactly(t, await get('/v1/destinations?from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z'), { hosts: 2 })
  exactly(t, await get('/v1/destinations?from=2031-01-01T00:00:00Z'), { hosts: 0 })
  exactly(t, await as(await register()).get('/v1/destinations'), { hosts: 0 })
  await call('DELETE', `/v1/cues/${other}`)
  exactly(t, await get('/v1/destinations'), { hosts: 1 })
})

t.test('the host of a URL is that which is connected to', async t => {
  const { pool } = await service()
  for (const [url, host] of [
    ['https://Example.COM/a', 'example.com'],
    ['HTTPS://example.com:8443?x=/y', 'example.com:8443'],
    ['https://[::1]:8080/a@b', '[::1]:8080'],
    ['https://example.com#a@b', 'example.com'],
    ['https://example.com\\a', 'example.com'],
    ['nonsense', null]
  ])
    t.equal((await pool.query('select cue.host_of($1) as host', [url])).rows[0].host, host)
})
