/** MCP over Streamable HTTP without sessions: requests are independent, so any replica can answer. */

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { createClient } from '../client/index.ts'
import { version } from '../config.ts'
import { goneSignal } from '../http/connections.ts'
import { splice, unite } from '../json/canonical-json.ts'
import { AnyJson, ErrorBody } from '../schemas.ts'
import { freeAnswers, freeArguments } from './tools.ts'

/** Maximum messages per request. Each gets a response, some with all tools. */
const MAX_MESSAGES = 20

const routes: FastifyPluginAsyncTypebox = async app => {
  app.post(
    '/mcp',
    {
      // The levels are: list of messages, message, params, arguments.
      config: { scope: 'any', computes: true, free: { names: freeArguments, depth: 4, asWritten: true } },
      schema: {
        operationId: 'callMcp',
        summary: 'Model Context Protocol, Streamable HTTP',
        description: "Tools for cues, executions, alerts and usage, limited to the key's scopes. JSON-RPC in, JSON out; no sessions.",
        body: AnyJson(),
        response: { 200: Type.Unknown(), 400: JsonRpcError, 406: JsonRpcError, '4xx': ErrorBody }
      },
      onRequest: async ({ headers: { accept } }, reply) => {
        if (types.every(type => accepts(accept, type))) return
        return refuse(reply, 406, -32000, 'Not Acceptable: Client must accept both application/json and text/event-stream')
      },
      preValidation: async ({ body }, reply) => {
        if (typeof body !== 'object' || body === null) return refuse(reply, 400, -32600, 'Send a JSON-RPC message.')
        if (Array.isArray(body) && body.length > MAX_MESSAGES)
          return refuse(reply, 400, -32600, `Send at most ${MAX_MESSAGES} messages in a request.`)
      }
    },
    async (request, reply) => {
      const signal = goneSignal(reply)
      const client = createClient({
        baseUrl: 'http://pgcue.internal',
        apiKey: request.headers.authorization?.replace(/^Bearer +/i, '').trim(),
        fetch: within(app, request.ip),
        parse: async text => unite(await app.largeJson.split(text, { names: freeAnswers, depth: 3, asWritten: true }, Infinity)),
        stringify: splice,
        retries: 0
      })
      // Imported with the first request: the SDK takes 20 MB of memory.
      const { WebStandardStreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js')
      const { createMcpServer } = await import('./server.ts')
      const server = createMcpServer(client, { scopes: request.scopes, signal: signal, json: app.largeJson }, version)
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
      reply.raw.once('close', () => void server.close())
      await server.connect(transport)
      const response = await transport.handleRequest(messageOf(request), { parsedBody: request.body })
      reply.code(response.status)
      return response.body ? reply.type('application/json; charset=utf-8').send(await response.text()) : reply.send()
    }
  )
}

/** Before a message is read, also an error of the API. */
const JsonRpcError = Type.Unknown({ description: 'An error of JSON-RPC, or of the API.' })

/** The response is JSON, but the protocol wants clients to take both. */
const types = ['application/json', 'text/event-stream']

/** Whether an Accept header includes a media type, by name or by a wildcard. Without a header, every type is acceptable. */
const accepts = (accept: string | undefined, type: string): boolean => {
  const ranges = (accept || '*/*').split(',').map(range => range.replace(/;.*/s, '').trim().toLowerCase())
  return ranges.some(range => [type, type.replace(/\/.*/, '/*'), '*/*'].includes(range))
}

/** The request for the SDK, with the headers that it checks itself, but more strictly. */
const messageOf = ({ headers }: FastifyRequest): Request => {
  const { 'mcp-protocol-version': version } = headers
  return new Request('http://pgcue.internal/mcp', {
    method: 'POST',
    headers: { accept: types.join(), 'content-type': types[0]!, ...(version && { 'mcp-protocol-version': String(version) }) }
  })
}

/** Responds with a JSON-RPC error, which the schema of our errors would not allow. */
const refuse = (reply: FastifyReply, status: number, code: number, message: string) =>
  reply
    .code(status)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }))

/**
 * A `fetch` for the client that calls this service in-process, with all checks. The first call was counted with the MCP request itself;
 * further calls count separately towards the rate limit.
 */
const within = (app: FastifyInstance, remoteAddress: string): typeof fetch => {
  let isFirst = true
  return async (input, init = {}) => {
    const url = new URL(String(input))
    const pass = isFirst ? app.countedAlready() : {}
    isFirst = false
    const answer = await app.inject({
      method: (init.method ?? 'GET') as 'GET',
      url: url.pathname + url.search,
      headers: { ...Object.fromEntries(new Headers(init.headers)), ...pass, ...app.traces.headers() },
      remoteAddress,
      ...(init.body != null && { payload: init.body as string })
    })
    const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)] as [string, string])
    return new Response(answer.statusCode === 204 ? null : answer.body, { status: answer.statusCode, headers })
  }
}

export default routes
