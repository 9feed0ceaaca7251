/** A real HTTP server that stands for an OpenTelemetry collector: it reads OTLP in protobuf as far as these tests need. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { eventually } from './eventually.ts'

export type Span = {
  trace: string
  id: string
  parent: string
  name: string
  kind: string
  attributes: Record<string, string | number>
  /** Spans that it links to. */
  links: string[]
  failed: boolean
  message: string
  resource: Record<string, string | number>
}

type Field = { number: number; bytes: Buffer; value: number }

/** The fields of a message in protobuf; those without a length have a value. */
const fieldsOf = (message: Buffer): Field[] => {
  const fields: Field[] = []
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return Number(value)
    }
  }
  const take = (length: number) => {
    at += length
    return message.subarray(at - length, at)
  }
  while (at < message.length) {
    const tag = varint()
    const none = Buffer.alloc(0)
    if ((tag & 7) === 2) fields.push({ number: tag >> 3, bytes: take(varint()), value: 0 })
    else if ((tag & 7) === 0) fields.push({ number: tag >> 3, bytes: none, value: varint() })
    else fields.push({ number: tag >> 3, bytes: take((tag & 7) === 1 ? 8 : 4), value: 0 })
  }
  return fields
}

const all = (message: Buffer, number: number) => fieldsOf(message).filter(field => field.number === number)
const one = (message: Buffer, number: number) => all(message, number)[0]
const text = (message: Buffer, number: number) => one(message, number)?.bytes.toString() ?? ''
const hex = (message: Buffer, number: number) => one(message, number)?.bytes.toString('hex') ?? ''

const attributesOf = (message: Buffer, number: number) =>
  Object.fromEntries(
    all(message, number).map(({ bytes }) => {
      const [value] = fieldsOf(one(bytes, 2)!.bytes)
      return [text(bytes, 1), value!.number === 1 ? value!.bytes.toString() : value!.value]
    })
  )

const kinds = ['', 'internal', 'server', 'client', 'producer', 'consumer']

const spansOf = (body: Buffer): Span[] =>
  all(body, 1).flatMap(({ bytes: ofResource }) => {
    const resource = attributesOf(one(ofResource, 1)!.bytes, 1)
    const spans = all(ofResource, 2).flatMap(({ bytes }) => all(bytes, 2))
    return spans.map(({ bytes: span }) => {
      const status = one(span, 15)?.bytes ?? Buffer.alloc(0)
      return {
        trace: hex(span, 1),
        id: hex(span, 2),
        parent: hex(span, 4),
        name: text(span, 5),
        kind: kinds[one(span, 6)!.value]!,
        attributes: attributesOf(span, 9),
        links: all(span, 13).map(({ bytes }) => hex(bytes, 2)),
        failed: one(status, 3)?.value === 2,
        message: text(status, 2),
        resource
      }
    })
  })

/** Accepts spans, or never responds. Closed at the end of the test. */
export const collector = async (t: Test, { hangs = false } = {}) => {
  const bodies: Buffer[] = []
  const paths: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    paths.push(`${request.method} ${request.url} ${request.headers['content-type']}`)
    if (hangs) return
    bodies.push(Buffer.concat(chunks))
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  const listen = (port = 0) => new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  await listen()
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  t.teardown(close)
  const spans = () => bodies.flatMap(spansOf)
  return {
    url: `http://127.0.0.1:${port}`,
    /** Method, path and type of each request. */
    paths,
    spans,
    /** Waits for a span. */
    found: (matches: (span: Span) => boolean): Promise<Span> => eventually(() => spans().find(matches)),
    /** Everything that was exported, as text: what it does not contain was not exported. */
    raw: () => Buffer.concat(bodies).toString('latin1'),
    close,
    reopen: () => listen(port)
  }
}
