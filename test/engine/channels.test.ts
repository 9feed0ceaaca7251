/** Channels: their messages by the rules of each service, routing, resolutions, snoozes, and what a crash leaves behind. */
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { startNotices } from '../../src/channels/send.ts'
import { verifyWebhook } from '../../src/client/webhook.ts'
import { createWebhookClient } from '../../src/deliveries/webhook.ts'
import type { Failure, Jobs } from '../../src/jobs/boss.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly, pluck } from '../support/exactly.ts'
import type { Received } from '../support/receiver.ts'
import { serviceAt } from '../support/service.ts'
import { error, invalid, receiver } from '../support/setup.ts'
import { type Result, refused, resultsOf } from '../support/stage.ts'

const service = serviceAt('2030-01-15T09:00:00Z')
const hostile = '<!everyone> @everyone <@U1> [x](http://evil.example) *b* `c` =?UTF-8?Q?x?= \u202E🔥&'

/** The service with a stand-in for all services, a cue whose failures each raise an alert, and the handler that pg-boss would call. */
const serve = async (t: Test) => {
  const built = await service()
  const { app, fn, fire, clock, rows, get, call, cue } = built
  const hook = await receiver(t)
  const client = createWebhookClient({ rules: app.rules })
  t.teardown(() => client.destroy())
  type Handler = (data: { notice_id: string }, id: string, tries: number) => Promise<Failure | undefined>
  const handlers: Handler[] = []
  await startNotices({
    jobs: { work: async (_: string, run: Handler) => void handlers.push(run) } as unknown as Jobs,
    fn,
    client,
    config: { ...built.config, baseUrl: 'https://cue.example.com' },
    now: () => clock.now().getTime(),
    log: pino({ level: 'silent' })
  })
  const end = async (cue_id: string, result: Result) => {
    const id = await fire(cue_id)
    clock.advance('1 second')
    await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 1 }), result, clock.now()))
    return id
  }
  return {
    ...built,
    hook,
    put: (name: string, body: object = {}) =>
      call('PUT', `/v1/channels/${name}`, { type: 'webhook', target: `${hook.url}${name}`, ...body }),
    failing: (columns: object = {}) =>
      cue({
        callback: { url: 'http://127.0.0.1/hook' },
        ...columns,
        alerts: { consecutive_failures: 1, ...(columns['alerts' as never] as object) }
      }),
    fail: (cue_id: string) => end(cue_id, { ...refused, gone: true }),
    succeed: (cue_id: string) => end(cue_id, {}),
    snooze: (id: string, until: string) => call('POST', `/v1/alerts/${id}/snooze`, { until }),
    alert: async () => (await get('/v1/alerts')).alerts[0],
    /** Works off the notices that are due, and returns the requests since the last call: their paths and types. */
    send: async (): Promise<string[]> => {
      const before = hook.requests.length
      await fn.endSnoozes({})
      for (const { id } of await rows('select id from cue.notices where due_at <= $1 order by id', [clock.now()]))
        await handlers[0]!({ notice_id: id }, id, 0)
      return hook.requests.slice(before).map(({ path, body }) => `${path.slice(1)} ${JSON.parse(body).type}`)
    },
    work: (notice_id: string) => handlers[0]!({ notice_id }, notice_id, 0)
  }
}

const bytes = (text: string) => Buffer.byteLength(text)
/** The rules of each service's public documentation that a message must keep, and its response. */
const rules: Record<string, { status: number; check: (t: Test, request: Received, alert: { id: string }) => void }> = {
  slack: {
    status: 200,
    check: (t, { body }) => {
      const { text, blocks } = JSON.parse(body)
      t.ok(text.length <= 40_000 && blocks.length <= 50)
      for (const { type, text: plain, elements } of blocks) {
        if (type === 'context') for (const { text: markup } of elements) t.match(markup, /^<https:\/\/cue\.example\.com\/[\w/-]+\|[^<>]+>$/)
        else exactly(t, plain, { type: 'plain_text' })
        t.ok(type !== 'header' || plain.text.length <= 150)
        t.ok(type !== 'section' || plain.text.length <= 3000)
      }
      t.notMatch(text, /[<>]|&(?!amp;|lt;|gt;)/, 'the fallback is markup')
    }
  },
  discord: {
    status: 204,
    check: (t, { body }) => {
      const { embeds, allowed_mentions, content } = JSON.parse(body)
      exactly(t, allowed_mentions, { parse: [] })
      t.equal(content, undefined)
      t.equal(embeds.length, 1)
      const [{ title, description, url }] = embeds
      t.ok(title.length <= 256 && description.length <= 4096)
      t.notMatch(title, /@everyone|<@(?!\u200B)|(^|[^\\])[*`[\]]/)
      t.match(url, /^https:\/\/cue\.example\.com\//)
    }
  },
  teams: {
    status: 202,
    check: (t, { body }) => {
      t.ok(bytes(body) <= 28 * 1024)
      exactly(t, JSON.parse(body), {
        type: 'message',
        attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', content: { type: 'AdaptiveCard', version: '1.4' } }]
      })
      const { body: lines, actions } = JSON.parse(body).attachments[0].content
      for (const line of lines) exactly(t, line, { type: 'RichTextBlock', inlines: [{ type: 'TextRun' }] })
      exactly(t, actions, [{ type: 'Action.OpenUrl', url: /^https:/ }])
    }
  },
  ntfy: {
    status: 200,
    check: (t, { headers, body }) => {
      t.ok(bytes(body) > 0 && bytes(body) <= 4096)
      t.match(headers.priority, /^[1-5]$/)
      t.match(headers.title, /^=\?UTF-8\?B\?[\w+/=]+\?=$/)
      t.match(Buffer.from(String(headers.title).slice(10, -2), 'base64').toString(), /^[^\n]*everyone[^\n]*$/)
      t.match(headers['content-type'], /^text\/plain/)
    }
  },
  pagerduty: {
    status: 202,
    check: (t, { path, body }, { id }) => {
      t.equal(path, '/v2/enqueue')
      const { payload, ...event } = JSON.parse(body)
      exactly(t, event, { routing_key: 'a'.repeat(32), dedup_key: id })
      if (event.event_action === 'resolve') return
      t.equal(event.event_action, 'trigger')
      t.ok(payload.summary.length <= 1024)
      exactly(t, payload, { source: 'cue.example.com', severity: 'error', timestamp: /^2030-01-15T09:/ })
    }
  }
}
for (const [type, { status, check }] of Object.entries(rules)) {
  t.test(`a message to ${type} keeps its rules, with whatever a cue is called`, async t => {
    const { put, failing, fail, succeed, hook, work, rows, alert } = await serve(t)
    hook.answer({ status, body: '' })
    const paths = {
      slack: 'services/T0/B0/x',
      discord: 'api/webhooks/1/x',
      teams: 'workflows/x',
      ntfy: 'topic',
      pagerduty: `v2/enqueue?routing_key=${'a'.repeat(32)}`
    }
    t.equal((await put('ops', { type, target: `${hook.url}${paths[type as never]}`, default: true })).status, 201)
    const cue_id = await failing({ name: hostile })
    const waiting = async () => pluck(await rows('select id from cue.notices where due_at is not null'), 'id') as string[]
    await fail(cue_id)
    for (const id of await waiting()) await work(id)
    await succeed(cue_id)
    for (const id of await waiting()) await work(id)
    t.equal(hook.requests.length, 2)
    const { id, notices } = await alert()
    for (const request of hook.requests) check(t, request, { id })
    exactly(t, notices, [
      { channel: 'ops', kind: 'raised', state: 'sent', tries: 1, http_status: status, error: null },
      { kind: 'resolved', state: 'sent' }
    ])
    if (type === 'pagerduty') t.equal(JSON.parse(hook.requests[1]!.body).event_action, 'resolve')
  })
}

t.test('a webhook gets the alert, signed like alert webhooks', async t => {
  const { put, failing, fail, send, hook, get, alert, clock } = await serve(t)
  await put('ops', { default: true })
  const cue_id = await failing()
  const execution_id = await fail(cue_id)
  t.strictSame(await send(), ['ops alert.raised'])
  const [{ headers, body }] = hook.requests as [Received]
  const secret = (await get('/v1/auth/alert-webhook-secret')).alert_webhook_secret
  await t.resolves(verifyWebhook(body, headers as Record<string, string>, secret, { now: clock.now() }))
  const { notices, ...data } = await alert()
  exactly(t, JSON.parse(body), { id: headers['webhook-id'], cue_id, execution_id, data })
})

t.test('routes an alert by the cue, severity, tags and types', async t => {
  const { put, failing, fail, send, call } = await serve(t)
  for (const [name, settings] of Object.entries({
    named: {},
    default: { default: true },
    off: { default: true, enabled: false },
    critical: { default: true, severity: 'critical' },
    tagged: { default: true, tags: ['a', 'b'] },
    typed: { types: ['alert.*'] },
    'other-types': { default: true, types: ['cue.created'] }
  }))
    t.equal((await put(name, settings)).status, 201)
  const sent = async (columns: object) => {
    await fail(await failing(columns))
    return (await send())
      .filter(text => text.endsWith('alert.raised'))
      .map(text => text.split(' ')[0])
      .sort()
  }
  t.strictSame(await sent({}), ['default', 'typed'])
  t.strictSame(await sent({ tags: ['a', 'b', 'c'] }), ['default', 'tagged', 'typed'])
  t.strictSame(await sent({ tags: ['a'] }), ['default', 'typed'])
  t.strictSame(await sent({ alerts: { channels: ['named', 'critical'] } }), ['named'])
  t.strictSame(await sent({ alerts: { channels: [] } }), [])
  t.strictSame(await sent({ alerts: { channels: ['gone'] } }), ['default', 'typed'], 'an alert is not lost with its channel')
  await call('DELETE', '/v1/channels/default')
  t.strictSame(await sent({}), ['typed'])
})

t.test('retries after 10 seconds, 1, 5 and 30 minutes; a resolution waits, and follows only what was sent', async t => {
  const { put, failing, fail, succeed, send, hook, clock, alert, rows } = await serve(t)
  await put('ops', { default: true })
  const cue_id = await failing()
  hook.answer({ status: 500 })
  await fail(cue_id)
  await send()
  exactly(t, (await alert()).notices, [{ state: 'waiting', tries: 1, http_status: 500, error: /500/, sent_at: null }])
  await succeed(cue_id)
  for (const seconds of [10, 60, 300, 1800]) {
    clock.advance(`${seconds - 2} seconds`)
    t.strictSame(await send(), [], 'not before')
    clock.advance('2 seconds')
    t.strictSame(await send(), ['ops alert.raised'])
  }
  exactly(t, (await alert()).notices, [{ kind: 'raised', state: 'failed', tries: 5 }])
  hook.answer({ status: 200 })
  const second = await failing()
  await fail(second)
  hook.answer((_, n) => ({ status: n === 5 ? 500 : 200 }))
  await send()
  await succeed(second)
  t.strictSame(await send(), [], 'the first notice has not been sent')
  clock.advance('11 seconds')
  t.strictSame(await send(), ['ops alert.raised'])
  t.strictSame(await send(), ['ops alert.resolved'])
  t.strictSame(pluck(await rows('select count(*)::int from cue.notices where due_at is not null'), 'count'), [0])
})

t.test('a snoozed alert sends nothing, then one summary of what happened', async t => {
  const { put, failing, fail, succeed, send, hook, clock, alert, snooze, call } = await serve(t)
  await put('ops', { default: true })
  const cue_id = await failing()
  await fail(cue_id)
  await send()
  const { id } = await alert()
  const at = (minutes: number) => new Date(clock.now().getTime() + minutes * 60_000).toISOString()
  exactly(t, await snooze(id, at(10)), { status: 200, body: { id, snoozed_until: at(10) } })
  clock.advance('11 minutes')
  t.strictSame(await send(), [], 'nothing happened')
  exactly(t, await alert(), { snoozed_until: null })

  await snooze(id, at(10))
  await fail(cue_id)
  await fail(cue_id)
  await snooze(id, at(20))
  clock.advance('11 minutes')
  t.strictSame(await send(), [], 'snoozing again moves it')
  await succeed(cue_id)
  await call('POST', `/v1/alerts/${id}/acknowledge`)
  t.strictSame(await send(), [])
  clock.advance('10 minutes')
  t.strictSame(await send(), ['ops alert.summary'])
  exactly(t, JSON.parse(hook.requests.at(-1)!.body).data, {
    id,
    acknowledged: true,
    happened: { failures: 2, resolved: true, acknowledged: true }
  })
  t.strictSame(await send(), [], 'the summary told of the resolution')

  await fail(cue_id)
  t.strictSame(await send(), ['ops alert.raised'], 'another alert')
  exactly(t, await snooze(id, '2030-01-15T09:00:00Z'), invalid('body', 'until'))
  exactly(t, await snooze('00000000-0000-7000-8000-000000000000', at(1)), error('alert_not_found', 404))
})

t.test('a notice that waits when its alert is snoozed follows the snooze, and its resolution follows it', async t => {
  const { put, failing, fail, succeed, send, clock, alert, snooze } = await serve(t)
  await put('ops', { default: true })
  const cue_id = await failing()
  await fail(cue_id)
  await snooze((await alert()).id, '2030-01-15T10:00:00Z')
  t.strictSame(await send(), [])
  await succeed(cue_id)
  t.strictSame(await send(), [])
  clock.set('2030-01-15T10:00:02Z')
  t.strictSame(await send(), ['ops alert.raised'])
  t.strictSame(await send(), ['ops alert.resolved'])
})

t.test('a try that a crash interrupted is repeated within a minute, and a late result of the first one changes nothing', async t => {
  const { put, failing, fail, send, fn, clock, alert, rows, jobs } = await serve(t)
  await put('ops', { default: true })
  await fail(await failing())
  const [{ id }] = await rows('select id from cue.notices')
  t.strictSame(
    await Promise.all([fn.beginNotice({ notice_id: id }), fn.beginNotice({ notice_id: id })]).then(begun => begun.filter(Boolean).length),
    1
  )
  await rows("update pgboss.job set state = 'active' where name = 'notices'")
  t.equal(await fn.requeueNotices({}), 0)
  clock.advance('46 seconds')
  t.equal(await fn.requeueNotices({}), 1)
  t.equal(await fn.requeueNotices({}), 0, 'its job waits')
  t.equal((await jobs('notices')).length, 1)
  t.strictSame(await send(), ['ops alert.raised'])
  t.equal(await fn.endNotice({ notice_id: id, tries: 1, http_status: 500, error: 'late' }), null)
  exactly(t, (await alert()).notices, [{ state: 'sent', tries: 2, http_status: 200, error: null }])
})

t.test('a resolution is sent, whichever commits first: the end of the first notice, or the success', async t => {
  const { put, failing, fail, fn, pool, rows, succeed, send } = await serve(t)
  await put('ops', { default: true })
  for (const isNoticeFirst of [true, false]) {
    const cue_id = await failing()
    await fail(cue_id)
    const [{ id }] = await rows("select id from cue.notices where due_at is not null and kind = 'raised'")
    const { tries } = (await fn.beginNotice({ notice_id: id }))!
    const connection = await pool.connect()
    try {
      await connection.query('begin')
      let success: Promise<unknown>
      if (isNoticeFirst) {
        await connection.query("select cue.end_notice($1, $2, 200, p_now => '2030-01-15T09:00:05Z')", [id, tries])
        success = succeed(cue_id)
      } else {
        await connection.query('select from cue.alerts where cue_id = $1 for no key update', [cue_id])
        success = fn.endNotice({ notice_id: id, tries, http_status: 200 })
        await connection.query(
          `update cue.alerts set resolved_at = '2030-01-15T09:00:05Z', resolution = '{"after_seconds": 1, "failed": 1, "missed": 0}' where cue_id = $1`,
          [cue_id]
        )
      }
      await connection.query('commit')
      await success
    } finally {
      connection.release()
    }
    t.strictSame(await send(), ['ops alert.resolved'])
  }
})

t.test('a channel with types gets these events once, and nothing of a cue after its deletion', async t => {
  const { put, cue, send, hook, fn, call, rows, get, patch, failing, succeed } = await serve(t)
  const publish = async () => {
    while ((await fn.publishEvents({})) > 0);
    return send()
  }
  await publish()
  t.equal((await put('feed', { types: ['cue.*', 'execution.succeeded', 'alert.acknowledged'] })).status, 201)
  t.equal((await put('tagged', { types: ['cue.created', 'key.created'], tags: ['x'] })).status, 201)
  exactly(t, await get('/v1/auth/me'), { events: 'default' })
  t.strictSame(await rows('select source from cue.event_subscribers'), [{ source: 'channels' }], 'successes are written')
  const id = await cue()
  await cue({ tags: ['x'] })
  t.strictSame((await publish()).sort(), ['feed cue.created', 'feed cue.created', 'tagged cue.created'])
  const first = hook.requests.find(({ body }) => JSON.parse(body).cue_id === id)!
  exactly(t, JSON.parse(first.body), {
    id: first.headers['webhook-id'],
    type: 'cue.created',
    cue_id: id,
    data: { id, name: 'job' }
  })
  t.strictSame(await publish(), [])
  const execution_id = await succeed(await failing())
  t.strictSame((await publish()).sort(), ['feed cue.created', 'feed execution.succeeded'])
  const success = hook.requests.find(({ body }) => JSON.parse(body).type === 'execution.succeeded')!
  exactly(t, JSON.parse(success.body), { execution_id, data: { id: execution_id, status: 'success' } })
  await patch(`/v1/cues/${id}`, { name: 'renamed' })
  while ((await fn.publishEvents({})) > 0);
  await call('DELETE', `/v1/cues/${id}`)
  t.strictSame(await publish(), ['feed cue.deleted'])
  await call('DELETE', '/v1/channels/feed')
  t.strictSame(await rows('select from cue.event_subscribers'), [])
  t.strictSame(await rows('select from cue.notices n join cue.channels h on h.id = n.channel_id where due_at is not null'), [])
})

t.test('an account takes its channels and notices with it', async t => {
  const { put, failing, fail, rows, fn, account, clock, call, maintain } = await serve(t)
  await put('ops', { default: true, types: ['alert.*', 'cue.*'] })
  await fail(await failing())
  await fn.publishEvents({})
  await call('DELETE', '/v1/auth/me', undefined, { 'x-confirm-destructive': 'true' })
  clock.advance('25 hours')
  await maintain()
  t.strictSame(await rows('select from cue.accounts where id = $1', [account.id]), [])
  t.strictSame(await rows('select from cue.notices union all select from cue.channels'), [])
})
