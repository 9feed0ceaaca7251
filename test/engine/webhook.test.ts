/** Requests to receivers, and the reading of their responses. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createAddressRules } from '../../src/deliveries/address.ts'
import { maskSecrets } from '../../src/deliveries/mask-secrets.ts'
import { reportIn } from '../../src/deliveries/report.ts'
import { storable, storableHeaders, textOf } from '../../src/deliveries/response-text.ts'
import { createWebhookClient } from '../../src/deliveries/webhook.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { client, OK, rawReceiver, receiver } from '../support/webhook-stage.ts'

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
  exactly(t, result, { ok: true, http_status: 200, error: null, answer: 'ok', retry_after_ms: null, gone: false })
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
  exactly(t, await client(t)(hook.url), { ok: true, http_status: 202, answer: '{"success": true}' })
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
  await eventually(() => hook.open === 0)
})

t.test('reads a response of exactly 64 KB completely and keeps the connection', async t => {
  const hook = await receiver(t, response => response.end('x'.repeat(64 * 1024)))
  const post = client(t)
  t.equal((await post(hook.url)).answer!.length, 64 * 1024)
  t.equal(hook.open, 1)
})

t.test('keeps 2,000 characters of a response, without splitting one', async t => {
  const kept = async (answer: Buffer): Promise<string> => storable(await textOf(answer))
  t.equal(await kept(Buffer.from('é'.repeat(2001))), 'é'.repeat(2000))
  t.equal(await kept(Buffer.from(`a${'😀'.repeat(3000)}`)), `a${'😀'.repeat(1999)}`)
  t.equal(await kept(Buffer.from(`a\0${'b'.repeat(1999)}\0c`)), `a${'b'.repeat(1999)}`)
  t.equal(await kept(Buffer.from([0x61, 0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80])), 'a\ufffd\ufffd(\ufffd\ufffd\ufffd')
  t.equal(await kept(Buffer.alloc(0)), '')
})

t.test('keeps 2 KB of the headers of a response, without cookies and secrets', async t => {
  const secret = 'secret-header'
  const headers = {
    'set-cookie': ['a=b'],
    first: secret,
    empty: '',
    encoded: btoa(`xx${secret}x`),
    list: ['1', '2'],
    quotes: '"'.repeat(1000),
    colons: 'a: b: c',
    last: btoa(secret)
  }
  const kept = storableHeaders(headers, text => maskSecrets(text, [secret]))
  const { 'set-cookie': _, quotes, ...small } = headers
  t.strictSame(JSON.parse(kept), { ...small, first: '********', encoded: 'eH********eA==', list: '1, 2', last: '********' })
  const many = Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`h${n}`, '']))
  const size = storableHeaders(many, text => text).length
  t.ok(size <= 2048 && size > 2030, `${size}`)
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

/** A receiver that answers the first request on each connection, and ends the connection at the second. */
const endingReceiver = (t: Test, end: (socket: Socket) => unknown) => {
  const requests: string[] = []
  const speak = (socket: Socket) => {
    let answered = false
    socket.on('data', data => {
      requests.push(data.toString())
      if (answered) return end(socket)
      answered = true
      socket.write(`${OK}Content-Length: 0\r\n\r\n`)
    })
  }
  return rawReceiver(t, speak).then(hook => Object.assign(hook, { requests }))
}

t.test('sends a request once more, on a new connection, if the receiver ends the one that it came on', async t => {
  for (const end of [
    (socket: Socket) => socket.end(),
    (socket: Socket) => socket.destroy(),
    (socket: Socket) => socket.resetAndDestroy()
  ]) {
    const hook = await endingReceiver(t, end)
    const post = client(t)
    await Promise.all([post(hook.url), post(hook.url)])
    await nextTurn()
    exactly(t, await post(hook.url, { headers: { 'webhook-id': '7' } }), { ok: true, error: null })
    t.equal(hook.connections, 3, 'not on the other idle connection')
    t.same(hook.requests.length, 4)
    t.equal(hook.requests[3], hook.requests[2]!.replace('connection: keep-alive', 'connection: close'))
  }
})

t.test('sends a request only once after a byte of a response, after a timeout, and on a new connection', async t => {
  const cut = await endingReceiver(t, socket => socket.end('HTTP'))
  const silent = await endingReceiver(t, () => {})
  const closing = await rawReceiver(t, socket => socket.once('data', () => socket.destroy()))
  const post = client(t)
  const lost = 'connection closed before a response'
  for (const { url } of [cut, silent]) exactly(t, await post(url), { ok: true })
  await nextTurn()
  exactly(t, await post(cut.url), { ok: false, error: lost })
  exactly(t, await post(silent.url, { timeoutMs: 50 }), { ok: false, error: 'timed out after 0.05 s: no response' })
  exactly(t, await post(closing.url), { ok: false, error: lost })
  t.same([cut.requests.length, silent.requests.length], [2, 2])
  t.same([cut.connections, silent.connections, closing.connections], [1, 1, 1])
})

t.test('sends a request at most twice, within one time limit', async t => {
  let ending = false
  const hook = await receiver(t, response => (ending ? response.destroy() : response.end()))
  let connections = 0
  const stalling = await rawReceiver(t, socket => {
    if (connections++ > 0) return
    socket.once('data', () => {
      socket.write(`${OK}Content-Length: 0\r\n\r\n`)
      socket.once('data', () => setTimeout(() => socket.destroy(), 300))
    })
  })
  const post = client(t)
  exactly(t, [await post(hook.url), await post(stalling.url)], [{ ok: true }, { ok: true }])
  await nextTurn()
  ending = true
  exactly(t, await post(hook.url), { ok: false, error: 'connection closed before a response' })
  t.equal(hook.requests.length, 3)
  const { error, duration_ms } = await post(stalling.url, { timeoutMs: 400 })
  t.equal(error, 'timed out after 0.4 s: no response')
  t.ok(duration_ms >= 390 && duration_ms < 690, `${duration_ms} ms`)
  t.equal(stalling.connections, 2)
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
  exactly(t, await result, { ok: false, http_status: null, answer: null })
  await eventually(() => hook.open === 0)
  exactly(t, await post({ url: hook.url, method: 'POST', headers: {}, body: '{}', timeoutMs: 10_000 }), { ok: false })
  t.equal(hook.connections, 1)
})

/** The report in a response, parsed. */
const reportOf = (answer: unknown, secrets: string[] = []) => {
  const reported = reportIn(typeof answer === 'string' ? answer : JSON.stringify(answer), secrets)
  return reported && { ...JSON.parse(reported.report), ...(reported.omitted !== null && { omitted: reported.omitted }) }
}

t.test('finds the report in a response', async t => {
  t.same(reportOf({ success: true }), { success: true })
  t.same(reportOf({ success: false, error: 'no disk\0', more: 7 }), { success: false, error: 'no disk' })
  t.same(reportOf('{"success": true, "result": "\\ud83d"}'), { success: true, result: '\ufffd' })
  const full = {
    success: true,
    result: 'x'.repeat(2000),
    error: ' ',
    external_id: '\u{1f600}'.repeat(255),
    result_url: 'u'.repeat(2048),
    result_ref: 'r',
    result_type: 't',
    summary: 's',
    artifacts: [{ name: 'a' }],
    metadata: { b: null }
  }
  t.same(reportOf(full), full)
  t.same(reportOf({ success: true, external_id: ' ', summary: '', result: null, artifacts: null }), { success: true })
  const answer = '{"success": true, "artifacts": [1.0, 12345678901234567890], "metadata": {"n": 1e-7, "__proto__": 1}}'
  t.equal(reportIn(answer, [])!.report, '{"success":true,"artifacts":[1.0, 12345678901234567890],"metadata":{"__proto__": 1, "n": 1e-07}}')
  for (const answer of [
    { success: 'true' },
    { ok: true },
    '[{"success": true}]',
    '"success"',
    'null',
    'not JSON, "success"',
    '{"success": true'
  ])
    t.equal(reportOf(answer), null)
})

t.test('leaves out what a report would refuse, and names it', async t => {
  const cases: [members: string, omitted: string][] = [
    ['"result": 7', 'result (not a string)'],
    [`"result": "${'x'.repeat(2001)}"`, 'result (over 2000 characters)'],
    [`"result_type": "${'x'.repeat(51)}", "artifacts": {}`, 'result_type (over 50 characters), artifacts (not a JSON list)'],
    ['"metadata": [1]', 'metadata (not a JSON object)'],
    ['"costs": {}', 'costs (not a list of at most 10)'],
    ['"costs": [{"amount": -1, "unit": "usd"}]', 'costs (an amount is not a number of at most nine decimal places)'],
    ['"costs": [{"amount": 0.12345678901, "unit": "usd"}]', 'costs (an amount is not a number of at most nine decimal places)'],
    ['"costs": [{"amount": "1"}]', 'costs (a unit does not have 1 to 32 characters)'],
    [`"metadata": {"a": "${'x'.repeat(10_240)}"}`, 'metadata (over 10 KB)'],
    [`"artifacts": ["${'x'.repeat(65_536)}"]`, 'artifacts (over 64 KB)'],
    ['"metadata": {"a": "\\u0000"}', 'metadata (a string contains the NUL character)'],
    ['"metadata": {"a": "\\ud800"}', 'metadata (a string contains an unpaired surrogate)'],
    ['"metadata": {"a": 1e999}', 'metadata (a number is out of range for a double)'],
    [`"metadata": {"a": ${'['.repeat(70)}${']'.repeat(70)}}`, 'metadata (nested deeper than 64 levels)'],
    [`"artifacts": ${'['.repeat(30_000)}1.0${']'.repeat(30_000)}`, 'artifacts (nested too deeply)']
  ]
  for (const [members, omitted] of cases)
    t.same(reportOf(`{"success": true, "summary": "s", ${members}}`), { success: true, summary: 's', omitted }, omitted)
})

t.test('masks secrets in a report', async t => {
  const secret = 'Bearer s3cr3t/"12345678'
  const secrets = [secret, '12345678']
  const member = { list: [secret, { [secret]: 'x'.repeat(5000) }], base64: `a${Buffer.from(secret).toString('base64')}b` }
  const { omitted, ...report } = reportOf({ success: true, external_id: secret, artifacts: [member], metadata: member }, secrets)!
  t.equal(omitted, undefined)
  t.same(report.artifacts[0].list[1], { '********': 'x'.repeat(5000) })
  t.notMatch(JSON.stringify(report), /s3cr3t|12345678|czNjcjN0/)
  t.same(report.metadata, report.artifacts[0])
  t.same(reportOf('{"success": true, "metadata": {"n": 12345678}}', secrets), {
    success: true,
    omitted: 'metadata (contains a header of the request)'
  })
})

t.test('reads compressed responses and byte order marks', async t => {
  const text = '\ufeff{"success": true, "result": "é"}'
  const bytes = Buffer.from(text)
  const cases: [encoding: string, body: Buffer][] = [
    ['', bytes],
    ['identity', bytes],
    ['gzip', gzipSync(bytes)],
    ['X-GZip', gzipSync(bytes)],
    ['deflate', deflateSync(bytes)],
    ['deflate', deflateRawSync(bytes)],
    ['br', brotliCompressSync(bytes)],
    ['zstd', zstdCompressSync(bytes)],
    ['deflate, gzip', gzipSync(deflateSync(bytes))],
    ['gzip', bytes],
    ['constructor', bytes]
  ]
  let next = cases[0]!
  const hook = await receiver(t, response => {
    if (next[0]) response.setHeader('content-encoding', next[0])
    response.end(next[1])
  })
  const post = client(t)
  for (const one of cases) {
    next = one
    const { answer } = await post(hook.url)
    t.equal(answer, text.slice(1), next[0])
    t.same(reportOf(answer), { success: true, result: 'é' })
  }
})

t.test('reads at most 64 KB of what a response decompresses to, and what there is of an incomplete one', async t => {
  const zeros = Buffer.alloc(50_000_000, '0')
  for (const [encoding, body] of Object.entries({ gzip: gzipSync(zeros), br: brotliCompressSync(zeros), zstd: zstdCompressSync(zeros) })) {
    const texts = await Promise.all([1, 2, 3].map(() => textOf(body.subarray(0, 64 * 1024), encoding)))
    t.same(new Set(texts), new Set(['0'.repeat(64 * 1024)]), encoding)
  }
  const lines = Array.from({ length: 9000 }, (_, n) => `line ${n * n}`).join('\n')
  const begun = await textOf(gzipSync(lines).subarray(0, 5000), 'gzip')
  t.ok(begun.length > 5000 && lines.startsWith(begun))
  t.equal(await textOf(Buffer.alloc(0), 'gzip'), '')
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
