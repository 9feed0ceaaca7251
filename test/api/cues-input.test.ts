import t, { type Test } from 'tap'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const url = 'http://127.0.0.1:5555/hook'
const good = { name: 'n', schedule: { cron: '0 * * * *' }, callback: { url } }

/** Over a good cue: the change, the answer, and where the fault lies or what the message must say. */
type Case = [change: object | string, status: number, code: string, where?: string | RegExp]

const bad = (loc: string, ...values: unknown[]): Case[] =>
  values.map(value => {
    const change = loc.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as object
    return [change, 422, 'validation_error', loc]
  })
const headers = (given: unknown, loc = ''): Case => [
  { callback: { url, headers: given } },
  422,
  'validation_error',
  `callback.headers${loc}`
]
const schedule = (given: object, where?: RegExp): Case => [{ schedule: given }, 400, 'invalid_schedule', where]
const callback = (given: string, where?: RegExp): Case => [{ callback: { url: given } }, 400, 'invalid_callback_url', where]

const forBoth: Case[] = [
  ...bad('name', '', 'x'.repeat(256), '😀'.repeat(256), 5, null, ['n']),
  ...bad('description', 5, {}, 'x'.repeat(2001)),
  ...bad('schedule', 'daily', 5, []),
  ...bad('schedule.cron', 5, {}),
  ...bad('schedule.type', 'sometimes', 5),
  ...bad('schedule.timezone', 5),
  ...bad('schedule.at', '2031-01-01T00:00:00', '2031-01-01', 'tomorrow', '', 5, '2031-02-30T00:00:00Z', '2031-01-01T25:00:00Z'),
  ...bad('schedule.at', '2030-12-31T23:59:60Z', '2031-01-01T00:00:00+02:00[Europe/Berlin]', '2031-01-01T00:00Z'),
  [{ schedule: { cron: '@daily', timezone: 'Mars/Olympus' } }, 422, 'invalid_timezone'],
  [{ schedule: { cron: '@daily', timezone: '' } }, 422, 'invalid_timezone'],
  [{ schedule: { cron: '@daily', timezone: '+02:00' } }, 422, 'invalid_timezone'],
  schedule({ cron: '' }, /empty/),
  schedule({ cron: '* * * *' }, /five fields/),
  schedule({ cron: '60 * * * *' }, /minute field/),
  schedule({ cron: '* 24 * * *' }, /hour field/),
  schedule({ cron: '* * 0 * *' }, /day-of-month field/),
  schedule({ cron: '* * * 13 *' }, /month field/),
  schedule({ cron: '* * * * 8' }, /day-of-week field/),
  schedule({ cron: '*/0 * * * *' }, /minute field/),
  schedule({ cron: '0 0 L * *' }, /day-of-month field/),
  schedule({ cron: '0 0 30 2 *' }, /never/),
  schedule({ cron: '@reboot' }),
  schedule({ cron: `${'0,'.repeat(60)}0 * * * *` }, /100 characters/),
  schedule({ cron: '@daily', at: '2031-01-01T00:00:00Z' }, /not both/),
  schedule({ type: 'once', cron: '@daily' }, /schedule\.at is required/),
  schedule({ type: 'recurring', at: '2031-01-01T00:00:00Z' }, /schedule\.cron is required/),
  schedule({ at: '2030-01-07T08:29:59Z' }, /past/),
  schedule({ at: '2030-01-07T08:30:00Z' }, /past/),
  schedule({ at: '0000-01-01T00:00:00Z' }, /past/),
  schedule({ at: '9999-12-31T23:59:59-01:00' }, /9999/),
  ...bad('callback', 'http://example.com', 5, []),
  ...bad('callback.url', 5),
  [{ callback: { url: null } }, 422, 'validation_error', 'callback.url'],
  [{ callback: null }, 422, 'validation_error', 'callback.url'],
  [{ callback: { url, method: 'DELETE' } }, 422, 'validation_error', 'callback.method'],
  [{ callback: { url, method: 'post' } }, 422, 'validation_error', 'callback.method'],
  callback(''),
  callback('example.com/hook'),
  callback('ftp://example.com/hook'),
  callback('http://10.0.0.1/hook', /not a public address/),
  callback('http://[::ffff:169.254.169.254]/', /not a public address/),
  callback('http://user:pass@127.0.0.1/', /password/),
  callback('http://127.0.0.1:22/', /port/),
  callback('http://127.0.0.1:5555/\n', /control characters/),
  callback(` ${url}`, /must not contain spaces, control characters or backslashes$/),
  callback(`http://127.0.0.1:5555/${'x'.repeat(2048)}`, /2048/),
  headers('X: y'),
  headers({ 'X-Number': 5 }, '.X-Number'),
  headers({ 'X-Null': null }, '.X-Null'),
  headers(Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`X-${i}`, '']))),
  headers({ 'X-Long': 'x'.repeat(8200) }),
  headers({ 'X-CRLF': 'a\r\nX-Evil: b' }, '.X-CRLF'),
  headers({ 'X-Chinese': '中' }, '.X-Chinese'),
  headers({ 'X\r\nY': 'a' }, '.X\r\nY'),
  headers({ 'X Y': 'a' }, '.X Y'),
  headers({ '': 'a' }, '.'),
  headers({ 'X-Twice': 'a', 'x-twice': 'b' }, '.x-twice'),
  headers({ 'X-Masked': '********' }, '.X-Masked'),
  headers({ Authorization: '********' }, '.Authorization'),
  ...['text/plain', 'application/x-www-form-urlencoded', 'application/json, text/plain', '', 'application/+json'].map(type =>
    headers({ 'content-type': type }, '.content-type')
  ),
  ...'X-Service-Signature x-service-anything Webhook-Id Host Content-Length Content-Encoding Content-Type-Options Transfer-Encoding Connection Keep-Alive'
    .concat(' Proxy-Authorization TE Trailer Upgrade Expect X-Service-Execution-Token')
    .split(' ')
    .map(name => headers({ [name]: 'a' }, `.${name}`)),
  ...bad('retry', 3, [3]),
  ...bad('retry.max_attempts', 0, 11, 1.5, '3', null),
  ...bad('retry.retry_max_attempts', 0, 11),
  ...bad('retry.backoff_minutes', [], Array(11).fill(1), 1),
  ...[-1, 1441, '1', null].map(
    (minutes): Case => [{ retry: { backoff_minutes: [1, minutes] } }, 422, 'validation_error', 'retry.backoff_minutes.1']
  ),
  ...bad('retry.on_worker_failure', null, 'yes', 1),
  ...bad('on_failure', true),
  ...bad('on_failure.email', 'no', 1),
  ...bad('on_failure.pause', null),
  ...bad('on_failure.webhook', 5),
  [{ on_failure: { webhook: 'http://10.0.0.1/' } }, 400, 'invalid_callback_url', /on_failure\.webhook/],
  ...bad('delivery.timeout_seconds', 0, 3601, 1.5, '5'),
  ...bad('delivery.outcome_deadline_seconds', 0, 3601),
  ...bad('delivery.claim_timeout_seconds', 59, 604_801),
  ...bad('delivery.await_outcome', 'yes'),
  ...bad('alerts.consecutive_failures', 0, 101),
  ...bad('alerts.missed_window_multiplier', 0, 11),
  ...bad('catch_up', 'sometimes', 5),
  ...bad('overlap', 'sometimes', 'Skip', '', 5, true, ['skip'], { skip: true }),
  ...bad('verification', 'manual'),
  ...bad('verification.mode', 'trust', null),
  [{ payload: 'x'.repeat(1024 * 1024) }, 400, 'invalid_payload_size'],
  [`{"payload":${'['.repeat(65)}${']'.repeat(65)}}`, 400, 'validation_error', /64 levels/],
  ['{"payload":"\\u0000"}', 400, 'validation_error', /NUL/],
  ['{"payload":{"\\ud800":1}}', 400, 'validation_error', /surrogate/],
  ['{"payload":1e999}', 400, 'validation_error', /double/],
  ['{"name":"a\\u0000b"}', 400, 'validation_error', /NUL/],
  ['{"description":"\\udc00"}', 400, 'validation_error', /surrogate/],
  ['{"name":', 400, 'validation_error', /^Invalid JSON in the request body: /],
  ['{"name":"\xff"}', 400, 'validation_error', /UTF-8/]
]

const forNew: Case[] = [
  ['[]', 422, 'validation_error', ''],
  ['"cue"', 422, 'validation_error', ''],
  ['null', 422, 'validation_error', ''],
  ['{}', 422, 'validation_error', 'name'],
  ['{"name":"n"}', 422, 'validation_error', 'schedule'],
  ['{"name":"n","schedule":null}', 422, 'validation_error', 'schedule'],
  ['{"name":"n","cron":"@daily"}', 422, 'validation_error', 'callback.url'],
  [{ transport: 'pigeon' }, 422, 'validation_error', 'transport'],
  [{ worker: 'yes' }, 422, 'validation_error', 'worker'],
  [{ worker: true, transport: 'webhook' }, 422, 'validation_error', 'worker'],
  [{ worker: false, transport: 'worker' }, 422, 'validation_error', 'worker'],
  [{ callback_url: url }, 422, 'validation_error', 'callback_url'],
  [{ callback: null, callback_url: 'http://10.0.0.1/' }, 400, 'invalid_callback_url'],
  [{ transport: 'worker', callback: { url: 'http://10.0.0.1/' } }, 400, 'invalid_callback_url'],
  [{ cron: '@daily' }, 400, 'invalid_schedule', /not both/],
  [{ at: '2031-01-01T00:00:00Z' }, 400, 'invalid_schedule', /not both/],
  [{ every: '1h' }, 400, 'invalid_schedule', /not both/],
  [{ schedule: null, cron: '@daily', at: '2031-01-01T00:00:00Z' }, 400, 'invalid_schedule', /not both/],
  [{ schedule: null, cron: 'daily' }, 400, 'invalid_schedule'],
  [{ schedule: null, at: '2031-01-01T00:00:00' }, 422, 'validation_error', 'at'],
  [{ schedule: null, cron: '@daily', timezone: 'Nowhere' }, 422, 'invalid_timezone'],
  schedule({}),
  schedule({ type: 'recurring' }, /schedule\.cron is required/),
  schedule({ type: 'once' }, /schedule\.at is required/),
  schedule({ cron: null, at: null })
]

const extra = (loc: string): Case => bad(loc, 1)[0]!
const forChange: Case[] = [
  ['[]', 422, 'validation_error', ''],
  ...['completed', 'failed', 'Active', '', 5, null].map((status): Case => [{ status }, 400, 'invalid_status']),
  extra('transport'),
  extra('id'),
  extra('next_run'),
  extra('cron'),
  extra('worker'),
  extra('retry.attempts'),
  extra('callback.body'),
  extra('schedule.each'),
  extra('delivery.retries'),
  extra('alerts.email'),
  extra('on_failure.sms'),
  extra('verification.level'),
  ...bad('schedule', null)
]

const bodyOf = (change: object | string) => (typeof change === 'string' ? Buffer.from(change, 'latin1') : change)

const check = (
  t: Test,
  answer: { status: number; body: { error: { code: string; message: string; status: number }; detail?: { loc: string[] }[] } },
  [change, status, code, where]: Case
) => {
  const name = (typeof change === 'string' ? change : JSON.stringify(change)).slice(0, 120)
  t.strictSame([answer.status, answer.body.error.code, answer.body.error.status], [status, code, status], name)
  if (where instanceof RegExp) exactly(t, answer.body.error.message, where, name)
  else if (where !== undefined) t.equal(answer.body.detail?.[0]?.loc.join('.'), ['body', where].filter(Boolean).join('.'), name)
}

t.test('rejects invalid new cues and stores nothing', async t => {
  const { call, get } = await build(t, start)
  for (const one of [...forBoth, ...forNew]) {
    const [change] = one
    check(t, await call('POST', '/v1/cues', bodyOf(typeof change === 'string' ? change : { ...good, ...change })), one)
  }
  t.equal((await get('/v1/cues')).total, 0)
})

t.test('rejects invalid changes and changes nothing', async t => {
  const { call, post, get } = await build(t, start)
  const cue = await post('/v1/cues', good)
  for (const one of [...forBoth, ...forChange]) check(t, await call('PATCH', `/v1/cues/${cue.id}`, bodyOf(one[0])), one)
  exactly(t, await get(`/v1/cues/${cue.id}`), cue)
})

t.test('rejects invalid bulk deletes', async t => {
  const { call, get, post } = await build(t, start)
  await post('/v1/cues', good)
  const confirmed = { 'x-confirm-destructive': 'true' }
  for (const body of [
    {},
    { ids: [] },
    { ids: Array(101).fill('cue_000000000000') },
    { ids: 'all' },
    { ids: [1] },
    { ids: ['a'], all: true }
  ]) {
    exactly(t, await call('POST', '/v1/cues/bulk-delete', body, confirmed), error('validation_error', 422))
  }
  t.equal((await get('/v1/cues')).total, 1)
})

t.test('accepts unusual but valid input', async t => {
  const { call } = await build(t, start, { env: { PLANS: '{"free":{"cues":100}}' } })
  const odd: object[] = [
    { name: '😀'.repeat(255) },
    { name: ' ' },
    { description: '' },
    { description: '💥'.repeat(2000) },
    { unknown: true, retry: { unknown: 1 }, schedule: { cron: '@daily', each: 'day' } },
    { schedule: { cron: ' 0  9 ? * MON,wed-FRI ' } },
    { schedule: { cron: '*/30 * * * * *' } },
    { schedule: null, crons: ['@daily', '@hourly'], timezone: 'Europe/Berlin' },
    { schedule: null, every: '45m' },
    { schedule: { at: '2030-01-07t09:30:00.5+01:00' } },
    { schedule: { at: '9999-12-31T23:59:59.999Z' } },
    { callback: { url: 'http://localhost:5555', headers: { 'X-Latin': 'é\t', cookie: 'a=b' } } },
    { callback: { url, headers: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`X-${i}`, 'v'])) } },
    ...['application/json', 'application/cloudevents+json; charset=utf-8', 'Application/JSON ;v=1'].map(type => ({
      callback: { url, headers: { 'Content-Type': type } }
    })),
    { transport: 'worker', callback: null },
    { transport: 'worker', callback: { url: null } },
    { payload: 'x'.repeat(1024 * 1024 - 2) },
    { payload: JSON.parse(`${'['.repeat(64)}${']'.repeat(64)}`) },
    { retry: { backoff_minutes: Array(10).fill(0) } }
  ]
  for (const change of odd) {
    const { status, body } = await call('POST', '/v1/cues', { ...good, ...change })
    t.equal(status, 201, `${JSON.stringify(change).slice(0, 120)} ${body.error?.message ?? ''}`)
  }
})

t.test('all faults of a body are reported at once', async t => {
  const { call, post } = await build(t)
  const { id } = await post('/v1/cues', { name: 'report', cron: '@daily', callback_url: 'https://example.com', key: 'report' })
  const codesOf = async (method: string, path: string, body: object) => {
    const { status, body: answer } = await call(method, path, body)
    return [
      status,
      answer.error.code,
      ...(answer.detail ?? []).map(({ type, loc }: { type: string; loc: string[] }) => `${type} ${loc.slice(1).join('.')}`)
    ]
  }
  const url = 'http://169.254.169.254/'
  const bad = { name: '', schedule: { cron: '61 * * * *' }, callback: { url }, retry: { max_attempts: 99 } }
  const entries = [
    'string_too_short name',
    'less_than_equal retry.max_attempts',
    'invalid_callback_url callback.url',
    'invalid_schedule schedule.cron'
  ]
  for (const [method, path] of [
    ['POST', '/v1/cues'],
    ['PUT', '/v1/cues/by-key/report'],
    ['PUT', '/v1/cues/by-key/new'],
    ['PATCH', `/v1/cues/${id}`]
  ] as const)
    t.strictSame(await codesOf(method, path, bad), [422, 'validation_error', ...entries], `${method} ${path}`)
  const addresses = { name: 'x', cron: '@daily', callback_url: url, on_failure: { webhook: url } }
  t.strictSame(
    await codesOf('POST', '/v1/cues', addresses),
    [400, 'invalid_callback_url', 'invalid_callback_url callback.url', 'invalid_callback_url on_failure.webhook'],
    'they share a code'
  )
  t.strictSame(await codesOf('POST', '/v1/cues', { name: 'x', cron: 5, callback_url: 7 }), [
    422,
    'validation_error',
    'string_type cron',
    'string_type callback_url'
  ])
  t.strictSame(await codesOf('POST', '/v1/cues', { name: 'x', cron: '61 * * * *', callback_url: 'https://example.com' }), [
    400,
    'invalid_schedule'
  ])
  for (const body of ['null', '[]', '[[]]', '5']) exactly(t, await call('POST', '/v1/cues', body), { status: 422 }, body)
  const named = { name: 'x', cron: '@daily', callback_url: 'https://example.com' }
  exactly(t, await call('POST', '/v1/cues', { ...named, name: '' }, { 'idempotency-key': 'é' }), {
    status: 422,
    body: { detail: [{ loc: ['header', 'idempotency-key'] }] }
  })
  exactly(t, await call('PATCH', `/v1/cues/${id}`, bad, { 'if-match': 'A' }), {
    status: 422,
    body: { detail: [{ loc: ['header', 'if-match'] }] }
  })
  exactly(t, await call('POST', '/v1/cues', named, { 'idempotency-key': 'x'.repeat(300) }), {
    status: 422,
    body: { detail: [{ loc: ['header', 'idempotency-key'] }] }
  })
  exactly(t, await call('PATCH', '/v1/cues/cue_000000000000', { ...bad }), { status: 422 })
})
