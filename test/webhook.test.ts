/** Requests to receivers, and the reading of their responses. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { createAddressRules } from '../src/deliveries/address.ts'
import { reportIn } from '../src/deliveries/response-text.ts'
import { createWebhookClient } from '../src/deliveries/webhook.ts'
import { eventually } from './eventually.ts'
import { exactly } from './exactly.ts'
import { client, OK, rawReceiver, receiver } from './webhook-stage.ts'

t.test('sends method, headers and body unchanged', async t => {
  const hook = await receiver(t)
  const post = client(t, {}, { userAgent: 'pgcue/1.2.3' })
  const result = await post(`${hook.url}/ü?b=2&a=%20#part`, {
    headers: { 'X-Service-Cue-Id': 'cue_1', 'X-Custom': 'a, b' },
    body: '{"a": "\\u00fc"}'
  })
  exactly(t, hook.requests, [
    {
      method: 'POST',
      url: '/hook/%C3%BC?b=2&a=%20',
      body: '{"a": "\\u00fc"}',
      headers: {
        host: `127.0.0.1:${hook.port}`,
        'content-type': 'application/json',
        'content-length': '15',
        'user-agent': 'pgcue/1.2.3',
        'x-service-cue-id': 'cue_1',
        'x-custom': 'a, b'
      }
    }
  ])
  t.equal(hook.requests[0]!.headers['transfer-encoding'], undefined)
  exactly(t, result, { ok: true, http_status: 200, error: null, body: 'ok', answer: 'ok', retry_after_ms: null, gone: false })
  t.ok(Number.isInteger(result.duration_ms) && result.duration_ms >= 0)
})

t.test('sends header values in Latin-1 and the body in UTF-8', async t => {
  const hook = await receiver(t)
  const post = client(t)
  for (const value of ['plain', 'h\u00e9 \u00ff'])
    t.ok((await post(hook.url, { headers: { 'X-Custom': value }, body: '"\u00e9 \u2603"' })).ok)
  exactly(t, hook.requests, [
    { body: '"\u00e9 \u2603"', headers: { 'x-custom': 'plain', 'content-length': '8' } },
    { body: '"\u00e9 \u2603"', headers: { 'x-custom': 'h\u00e9 \u00ff', 'content-length': '8' } }
  ])
})

t.test('PUT and PATCH carry the body, GET carries none', async t => {
  const hook = await receiver(t)
  const post = client(t)
  for (const method of ['PUT', 'PATCH', 'GET'] as const) t.ok((await post(hook.url, { method })).ok)
  exactly(t, hook.requests, [
    { method: 'PUT', body: '{"a": 1}' },
    { method: 'PATCH', body: '{"a": 1}' },
    { method: 'GET', body: '', headers: { 'content-type': undefined, 'content-length': undefined } }
  ])
})

t.test('only a 2xx is a success', async t => {
  const hook = await receiver(t, (response, { url }) => response.writeHead(Number(url.slice(1))).end())
  const post = client(t)
  const results: [number, string | null][] = [
    [200, null],
    [201, null],
    [202, null],
    [204, null],
    [299, null],
    [400, 'answered 400 Bad Request'],
    [404, 'answered 404 Not Found'],
    [410, 'answered 410 Gone'],
    [500, 'answered 500 Internal Server Error'],
    [599, 'answered 599']
  ]
  for (const [status, error] of results)
    exactly(
      t,
      await post(`http://127.0.0.1:${hook.port}/${status}`),
      { ok: error === null, http_status: status, error, gone: status === 410 },
      `${status}`
    )
})

t.test('a redirect is a failure and is not followed', async t => {
  const target = await receiver(t)
  const hook = await receiver(t, (response, { url }) => response.writeHead(Number(url.slice(1)), { location: target.url }).end())
  const post = client(t)
  for (const status of [301, 302, 303, 307, 308])
    exactly(t, await post(`http://127.0.0.1:${hook.port}/${status}`), {
      ok: false,
      http_status: status,
      error: `redirects are not followed (${status})`
    })
  t.equal(target.connections, 0)
})

t.test('reads a response in pieces, after interim responses, completely', async t => {
  const hook = await receiver(t, async response => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    response.writeProcessing()
    response.writeHead(202)
    for (const piece of ['{"succ', 'ess": ', 'true}']) await new Promise<void>(written => response.write(piece, () => written()))
    response.end()
  })
  exactly(t, await client(t)(hook.url), { ok: true, http_status: 202, body: '{"success": true}' })
})

t.test('reads at most 64 KB of a response', async t => {
  const hook = await receiver(t, response => {
    const more = () => {
      while (!response.closed && response.write('x'.repeat(10_000)));
    }
    response.on('drain', more)
    more()
  })
  const result = await client(t)(hook.url)
  exactly(t, result, { ok: true, http_status: 200, error: null })
  t.equal(result.answer!.length, 64 * 1024)
  t.equal(result.body!.length, 2000)
  await eventually(() => hook.open === 0)
})

t.test('joins the pieces of a slow response', async t => {
  const hook = await receiver(t, async response => {
    for (let i = 0; i < 200; i++) {
      response.write(`${i} `)
      await new Promise(setImmediate)
    }
    response.end()
  })
  t.equal((await client(t)(hook.url)).answer, Array.from({ length: 200 }, (_, i) => `${i} `).join(''))
})

t.test('reads a response of exactly 64 KB completely and keeps the connection', async t => {
  const hook = await receiver(t, response => response.end('x'.repeat(64 * 1024)))
  const post = client(t)
  t.equal((await post(hook.url)).answer!.length, 64 * 1024)
  t.equal(hook.open, 1)
})

t.test('keeps 2,000 characters of a response, without splitting one', async t => {
  const hook = await receiver(t, (response, { body }) => response.end(Buffer.from(JSON.parse(body), 'latin1')))
  const post = client(t)
  const kept = async (answer: Buffer): Promise<string | null> =>
    (await post(hook.url, { body: JSON.stringify(answer.toString('latin1')) })).body
  t.equal(await kept(Buffer.from('é'.repeat(2001))), 'é'.repeat(2000))
  t.equal(await kept(Buffer.from(`a${'😀'.repeat(3000)}`)), `a${'😀'.repeat(1999)}`)
  t.equal(await kept(Buffer.from(`a\0${'b'.repeat(1999)}\0c`)), `a${'b'.repeat(1999)}`)
  t.equal(await kept(Buffer.from([0x61, 0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80])), 'a\ufffd\ufffd(\ufffd\ufffd\ufffd')
  t.equal(await kept(Buffer.alloc(0)), '')
})

t.test('a header value cannot inject a header or a second request', async t => {
  const hook = await receiver(t)
  const post = client(t)
  const headers: Record<string, string>[] = [
    { 'X-Custom': 'a\r\nX-Injected: 1' },
    { 'X-Custom': 'a\n\nGET / HTTP/1.1' },
    { 'X-Custom\r\nX-Injected': '1' },
    { 'X-Custom': 'a\0b' },
    { 'X-Custom': 'snow ☃' },
    { '': 'a' },
    { 'Transfer-Encoding': 'chunked' },
    { 'Content-Length': '3, 4' }
  ]
  for (const header of headers)
    exactly(
      t,
      await post(hook.url, { headers: header }),
      { ok: false, http_status: null, error: 'invalid request header' },
      JSON.stringify(header)
    )
  t.equal(hook.requests.length, 0)
})

t.test('honours Retry-After with 429 and 503, in seconds or as a date, up to an hour', async t => {
  const hook = await receiver(t, (response, { headers }) => {
    if (headers['x-after'] !== undefined) response.setHeader('Retry-After', headers['x-after'])
    response.writeHead(Number(headers['x-status'])).end()
  })
  const post = client(t)
  const waits: [number, string | undefined, number | null][] = [
    [429, '120', 120_000],
    [503, '0', 0],
    [503, '99999', 3_600_000],
    [429, 'Fri, 31 Dec 9999 23:59:59 GMT', 3_600_000],
    [429, 'Wed, 21 Oct 2015 07:28:00 GMT', 0],
    [429, 'soon', null],
    [429, '-1', null],
    [429, '1.5', null],
    [429, undefined, null],
    [500, '120', null],
    [200, '120', null]
  ]
  for (const [status, after, ms] of waits) {
    const headers = { 'X-Status': String(status), ...(after !== undefined && { 'X-After': after }) }
    t.equal((await post(hook.url, { headers })).retry_after_ms, ms, `${status} ${after}`)
  }
  const soon = new Date(Date.now() + 60_000).toUTCString()
  const { retry_after_ms } = await post(hook.url, { headers: { 'X-Status': '503', 'X-After': soon } })
  t.ok(retry_after_ms! > 30_000 && retry_after_ms! <= 60_000, 'a date counts from now')
})

t.test('does not repeat a request lost on a reused connection', async t => {
  const hook = await receiver(t, (response, { url }) => (url === '/lost' ? response.destroy() : response.end('ok')))
  const post = client(t)
  await post(hook.url)
  exactly(t, await post(`http://127.0.0.1:${hook.port}/lost`), { ok: false, error: 'connection closed before a response' })
  exactly(t, await post(hook.url), { ok: true })
  t.same(
    hook.requests.map(({ url }) => url),
    ['/hook', '/lost', '/hook']
  )
})

t.test('requests to one receiver run concurrently', async t => {
  const waiting: ServerResponse[] = []
  const hook = await receiver(t, response => waiting.push(response))
  const post = client(t)
  const results = Array.from({ length: 300 }, () => post(hook.url))
  await eventually(() => waiting.length === 300)
  for (const response of waiting) response.end()
  t.ok((await Promise.all(results)).every(({ ok }) => ok))
})

t.test('destroying the client fails open requests and closes every connection', async t => {
  const waiting: ServerResponse[] = []
  const hook = await receiver(t, response => waiting.push(response))
  const { post, destroy } = createWebhookClient({ rules: createAddressRules({ allowCidrs: ['127.0.0.0/8'], allowHttp: true }) })
  const result = post({ url: hook.url, method: 'POST', headers: {}, body: '{}', timeoutMs: 10_000 })
  await eventually(() => waiting.length === 1)
  await destroy()
  exactly(t, await result, { ok: false, http_status: null, body: null })
  await eventually(() => hook.open === 0)
  exactly(t, await post({ url: hook.url, method: 'POST', headers: {}, body: '{}', timeoutMs: 10_000 }), { ok: false })
  t.equal(hook.connections, 1)
})

t.test('reads the report in a response, even one longer than the stored part', async t => {
  const hook = await receiver(t, (response, { body }) => response.end(body))
  const post = client(t)
  const report = async (answer: unknown) =>
    reportIn(await post(hook.url, { body: typeof answer === 'string' ? answer : JSON.stringify(answer) }))
  t.same(await report({ success: true }), { success: true, result: null, error: null })
  t.same(await report({ success: false, error: 'no disk\0', result: 7 }), { success: false, result: null, error: 'no disk' })
  t.same(await report({ success: true, result: 'x'.repeat(3000) }), { success: true, result: 'x'.repeat(2000), error: null })
  t.same(await report('{"success": true, "result": "\\ud83d"}'), { success: true, result: '\ufffd', error: null })
  for (const answer of [
    { success: 'true' },
    { ok: true },
    '[{"success": true}]',
    '"success"',
    'null',
    'not JSON, "success"',
    '{"success": true'
  ])
    t.equal(await report(answer), null)
})

t.test('skips unrequested interim responses, including 100 Continue', async t => {
  for (const interim of ['100 Continue\r\n', '100 Continue\r\nX-A: b\r\n', '102 Processing\r\n', '103 Early Hints\r\nLink: </a>\r\n']) {
    for (const pause of [false, true]) {
      const hook = await rawReceiver(t, socket =>
        socket.on('data', async data => {
          if (!data.toString().includes('POST')) return
          socket.write(`HTTP/1.1 ${interim}\r\n`)
          if (pause) await new Promise(resolve => setTimeout(resolve, 20))
          socket.write(`HTTP/1.1 ${interim}\r\n${OK}Content-Length: 24\r\n\r\nHTTP/1.1 100 Continue\r\n\r`)
        })
      )
      const post = client(t)
      const body = 'HTTP/1.1 100 Continue\r\n\r'
      const { http_status, answer, error } = await post(hook.url)
      t.strictSame([http_status, answer, error], [200, body, null], interim)
    }
  }
})
