/** MCP over Streamable HTTP, without sessions: each request stands for itself, so any replica may answer it. */

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { createClient } from '../client/index.ts'
import { version } from '../config.ts'
import { Json, parseExactly } from '../deliveries/canonical-json.ts'
import { AnyJson, ErrorBody } from '../schemas.ts'
import { freeArguments } from './tools.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  app.post(
    '/mcp',
    {
      config: { scope: 'any' },
      schema: {
        tags: ['mcp'],
        summary: 'Model Context Protocol, Streamable HTTP',
        description: "Tools for cues, executions, alerts and usage, as the key's scopes allow. JSON-RPC in, JSON out; no sessions.",
        body: AnyJson(),
        response: { 200: Type.Unknown(), '4xx': ErrorBody }
      }
    },
    async (request, reply) => {
      const client = createClient({
        baseUrl: 'http://pgcue.internal',
        apiKey: request.headers.authorization?.replace(/^Bearer +/i, '').trim(),
        fetch: within(app, request.ip),
        parse: parseExactly,
        retries: 0
      })
      // The SDK takes 20 MB of memory: it waits until somebody asks.
      const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js')
      const { createMcpServer } = await import('./server.ts')
      const server = createMcpServer(client, request.scopes, version)
      const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true })
      reply.raw.once('close', () => void server.close())
      for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value)
      reply.hijack()
      await server.connect(transport as never)
      await transport.handleRequest(request.raw, reply.raw, messagesIn(request.body))
    }
  )
}

type Message = { params?: { arguments?: Record<string, unknown> } } | null

/** The SDK takes a body that was parsed already, and hands arguments on as they are: those of free JSON keep every digit. */
const messagesIn = (body: unknown): unknown => {
  if (!(body instanceof Json)) return body
  const messages = body.value as Message | Message[]
  const exact = [body.toJSON() as Message | Message[]].flat()
  for (const [n, message] of [messages].flat().entries()) {
    const given = message?.params?.arguments ?? {}
    for (const name of freeArguments) if (Object.hasOwn(given, name)) given[name] = exact[n]!.params!.arguments![name]
  }
  return messages
}

/**
 * The client's calls go through this very service, with all its checks, and without a socket. The first is what the request was counted for
 * against the key's limit; further ones count like any other.
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
      headers: { ...Object.fromEntries(new Headers(init.headers)), ...pass },
      remoteAddress,
      ...(init.body != null && { payload: init.body as string })
    })
    const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)] as [string, string])
    return new Response(answer.statusCode === 204 ? null : answer.body, { status: answer.statusCode, headers })
  }
}

export default routes
