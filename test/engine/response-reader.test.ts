import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { Client } from 'undici'
import { type ResponseError, type ResponseHead, ResponseReader } from '../../src/deliveries/response-reader.ts'
import { always } from '../support/seed.ts'

type Read = { status: number | null; body: string; hasEnded: boolean; error: string | null }

/** Reads a response that arrives in pieces. */
const read = (pieces: string[]): Read => {
  const found: Read = { status: null, body: '', hasEnded: false, error: null }
  const reader = new ResponseReader({
    onHead: ({ status }) => {
      found.status = status
    },
    onBody: bytes => {
      found.body += bytes.toString('latin1')
    }
  })
  try {
    found.hasEnded = pieces.some(piece => reader.read(Buffer.from(piece, 'latin1')))
  } catch (error) {
    found.error = (error as ResponseError).code
  }
  return found
}

/** What undici reads, which uses llhttp, from a receiver that then closes. The body is null if it is incomplete. */
const readByUndici = async (server: Server, bytes: string): Promise<{ status: number | null; body: string | null }> => {
  const { port } = server.address() as { port: number }
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    socket.on('error', () => {}).once('data', () => socket.end(Buffer.from(bytes, 'latin1')))
  })
  const client = new Client(`http://127.0.0.1:${port}`)
  const found: Awaited<ReturnType<typeof readByUndici>> = { status: null, body: null }
  let body = ''
  await new Promise<void>(resolve =>
    client.dispatch(
      { path: '/', method: 'POST' },
      {
        onRequestStart: () => {},
        onResponseStart: (_, status) => {
          if (status >= 200) found.status = status
        },
        onResponseData: (_, chunk) => {
          body += chunk.toString('latin1')
        },
        onResponseEnd: () => {
          found.body = body
          resolve()
        },
        onResponseError: () => resolve()
      }
    )
  )
  await client.destroy()
  return found
}

const oneOf = (...values: string[]) => fc.constantFrom(...values)
const mostly = (usual: fc.Arbitrary<string>, odd: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: odd })
const end = mostly(fc.constant('\r\n'), oneOf('\n', '\r', '\r\n '))
const value = mostly(oneOf('a', '', ' b c ', 'Ã¼', '\t'), oneOf('a\0', 'a\x01b', 'a\x7f'))
const field = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(mostly(oneOf('X-A', 'server', "!#$%&'*+-.^_`|~9"), oneOf('', 'X A', 'X\t', 'é', 'X:')), value) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      oneOf('Content-Length', 'content-length'),
      mostly(oneOf('0', '5', ' 5', '12'), oneOf('', '-1', '5,5', '+5', '0x5', '5 5'))
    )
  },
  {
    weight: 3,
    arbitrary: fc.tuple(oneOf('Transfer-Encoding'), mostly(oneOf('chunked', 'Chunked '), oneOf('gzip', 'gzip, chunked', 'chunked, gzip')))
  },
  { weight: 1, arbitrary: fc.tuple(oneOf('Connection'), oneOf('close', 'keep-alive', 'a, close', '')) }
)
const line = fc.tuple(field, end).map(([[name, text], stop]) => `${name}:${text}${stop}`)
const status = mostly(oneOf('200', '202', '204', '299', '304', '404', '500', '999'), oneOf('20', '2000', '000', 'abc', ' 200', '099'))
const version = mostly(oneOf('HTTP/1.1', 'HTTP/1.0'), oneOf('HTTP/1.2', 'http/1.1', 'HTTP/1', 'ICY', ' HTTP/1.1', '\r\nHTTP/1.1'))
const statusLine = fc
  .tuple(version, status, mostly(oneOf(' OK', ' ', '', ' Ã¼ b'), oneOf('OK', '\tOK')), end)
  .map(parts => `${parts[0]} ${parts.slice(1).join('')}`)
const chunk = fc
  .tuple(mostly(oneOf('5', '05', '5;a=b', '5;a'), oneOf('', 'g', '-5', '5 ', '4')), end, fc.constant('hello'), end)
  .map(parts => parts.join(''))
const chunks = fc
  .tuple(fc.array(chunk, { maxLength: 3 }), mostly(oneOf('0', '000'), oneOf('', 'x')), end, oneOf('', 'X-T: a\r\n'), end)
  .map(([some, last, ...rest]) => some.join('') + last + rest.join(''))
const any = fc
  .tuple(
    oneOf('', '', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', 'HTTP/1.1 102 Processing\r\n\r\n'),
    statusLine,
    fc.array(line, { maxLength: 4 }),
    end,
    fc.oneof(oneOf('', 'hello', 'hello world!', 'hello, world and more'), chunks)
  )
  .map(([interim, first, lines, stop, body]) => interim + first + lines.join('') + stop + body)
const chunked = chunks.map(body => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`)
const response = fc.oneof({ weight: 3, arbitrary: any }, { weight: 1, arbitrary: chunked })

t.test('reads what llhttp reads, and refuses what it refuses', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  await always(
    fc.asyncProperty(response, async bytes => {
      const theirs = await readByUndici(server, bytes)
      const ours = read([bytes])
      const isSame = theirs.body === null ? !ours.hasEnded : ours.error === null && ours.body === theirs.body
      if (!isSame || ours.status !== theirs.status) throw new Error(JSON.stringify({ bytes, ours, theirs }))
    })
  )
})

t.test('reads the same in any pieces', async () => {
  always(
    fc.property(response, fc.array(fc.nat(), { maxLength: 5 }), (bytes, cuts) => {
      const at = [0, ...cuts.map(cut => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
      const pieces = at.slice(1).map((to, i) => bytes.slice(at[i], to))
      const [whole, some, single] = [read([bytes]), read(pieces), read([...bytes])]
      return JSON.stringify(whole) === JSON.stringify(some) && JSON.stringify(whole) === JSON.stringify(single)
    })
  )
})

/** The reader after a whole response, and what it found in the head. */
const readWhole = (text: string) => {
  let head: ResponseHead | undefined
  const reader = new ResponseReader({
    onHead: it => {
      head = it
    },
    onBody: () => {}
  })
  const isComplete = reader.read(Buffer.from(text, 'latin1'))
  return { isComplete, keptMs: reader.keptMs, ...head }
}

t.test('says how long the receiver keeps the connection open', async t => {
  const cases: [string, number][] = [
    ['HTTP/1.1 200 OK\r\nContent-Length: 0', Number.POSITIVE_INFINITY],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked', Number.POSITIVE_INFINITY],
    ['HTTP/1.1 204 No Content', Number.POSITIVE_INFINITY],
    ['HTTP/1.1 204 No Content\r\nContent-Length: 3', 0],
    ['HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked', 0],
    ['HTTP/1.1 101 Switching Protocols', 0],
    ['HTTP/1.1 200 OK', 0],
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=5, max=100', 5000],
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=5\r\nConnection: Close', 0],
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: a\r\nConnection: b, close', 0],
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: closed', Number.POSITIVE_INFINITY],
    ['HTTP/1.0 200 OK\r\nContent-Length: 0', 0],
    ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive', Number.POSITIVE_INFINITY]
  ]
  for (const [head, keptMs] of cases) t.equal(readWhole(`${head}\r\n\r\n`).keptMs, keptMs, head)
  t.equal(readWhole('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n').keptMs, 0, 'more arrived')
})

t.test('finds the first Retry-After and every Content-Encoding', async t => {
  t.equal(readWhole('HTTP/1.1 429 Slow\r\nretry-after: \t 5 \r\nRetry-After: 6\r\nContent-Length: 0\r\n\r\n').retryAfter, '5')
  t.equal(readWhole('HTTP/1.1 429 Slow\r\nX-Retry-After: 6\r\nContent-Length: 0\r\n\r\n').retryAfter, undefined)
  t.equal(readWhole('HTTP/1.1 200 OK\r\ncontent-encoding: gzip \r\nContent-Encoding: br, zstd\r\n\r\n').contentEncoding, 'gzip,br, zstd')
  t.equal(readWhole('HTTP/1.1 200 OK\r\n\r\n').contentEncoding, '')
})

t.test('spaces may follow a Content-Length', async t => {
  t.same(read(['HTTP/1.1 200 OK\r\nContent-Length: 2 \t\r\n\r\nok']), { status: 200, body: 'ok', hasEnded: true, error: null })
})

t.test('refuses other protocols at once, and heads and lines that are too long', async t => {
  const code = (text: string) => {
    try {
      readWhole(text)
      return null
    } catch (error) {
      return (error as ResponseError).code
    }
  }
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  const cases: [string, ResponseError['code'] | null][] = [
    ['HTTP/2.0 200 OK\r\n\r\n', 'NOT_HTTP'],
    ['S', 'NOT_HTTP'],
    ['HTTP/1.1 2', null],
    ['HTTP/1.1 x', 'NOT_HTTP'],
    [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(16_364)}\r\n\r\n`, null],
    [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(16_365)}\r\n\r\n`, 'HEAD_TOO_LONG'],
    [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(16_365)}`, 'HEAD_TOO_LONG'],
    [`${chunked}5;${'x'.repeat(16_382)}\r\n`, null],
    [`${chunked}5;${'x'.repeat(16_383)}\r\n`, 'NOT_HTTP'],
    [`${chunked}5;${'x'.repeat(16_383)}`, 'NOT_HTTP'],
    [`${chunked}0\r\nX: ${'x'.repeat(16_383)}`, 'NOT_HTTP'],
    ['\r\n'.repeat(32_768), null],
    ['\r\n'.repeat(32_769), 'HEAD_TOO_LONG'],
    ['HTTP/1.1 102 Processing\r\n\r\n'.repeat(2427), null],
    ['HTTP/1.1 102 Processing\r\n\r\n'.repeat(2428), 'HEAD_TOO_LONG'],
    [`${chunked}0\r\n${'a:\r\n'.repeat(16_371)}`, null],
    [`${chunked}0\r\n${'a:\r\n'.repeat(16_372)}`, 'HEAD_TOO_LONG'],
    [`${chunked}${'1\r\nx\r\n'.repeat(13_097)}`, null],
    [`${chunked}${'1\r\nx\r\n'.repeat(13_098)}`, 'HEAD_TOO_LONG']
  ]
  for (const [text, expected] of cases) t.equal(code(text), expected, `${text.slice(0, 60)} (${text.length})`)
})
