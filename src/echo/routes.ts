/** The echo buffer: a callback URL for trying things out. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { constants } from '../catalog.ts'
import { cellOfValue } from '../cells/ids.ts'
import { subjectOf } from '../http/address-subject.ts'
import { Json, JsonError } from '../json/canonical-json.ts'
import { AskedToken, Echo, EchoParams, Stored } from './schemas.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The captured headers of the request. */
    captured: Record<string, string>
  }
}

const echo: FastifyPluginAsyncTypebox = async app => {
  // Tokens belong to no account: any caller may read them.
  const fnOf = (token: string) => app.cells[cellOfValue(token, app.cells.length) - 1]!.fn
  // Every body is accepted, so this plugin replaces the body parsers.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_: unknown, body: Buffer) => body)
  /** Returns the body as JSON text: in canonical form, or as a JSON string if it is not JSON. */
  const textOf = async (body: Buffer): Promise<string> => {
    try {
      return await app.largeJson.canonicalJson(body)
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
      return JSON.stringify(body.toString())
    }
  }

  app.decorateRequest('captured', null as unknown as Record<string, string>)

  app.post(
    '/v1/echo/:token',
    {
      config: { public: true, anyQuery: () => true, rawBody: true },
      bodyLimit: 1024 * 1024,
      schema: {
        operationId: 'sendEcho',
        summary: 'Store a request for five minutes, to see what a callback sends',
        description: 'Use it as `callback_url`, with a token that you make up: 16 characters or more that nobody guesses.',
        params: EchoParams,
        response: { 200: Stored }
      },
      // A content type that cannot be parsed must not reject the body.
      preParsing: async request => {
        request.captured = captured(request.headers)
        delete request.headers['content-type']
      }
    },
    async request => {
      await fnOf(request.params.token).storeEcho({
        token: request.params.token,
        payload: await textOf((request.body as Buffer | undefined) ?? Buffer.alloc(0)),
        headers: request.captured,
        address: app.config.rateLimit ? subjectOf(request.ip) : null
      })
      return { stored: true }
    }
  )

  app.get(
    '/v1/echo/:token',
    {
      config: { scope: 'any' },
      schema: {
        operationId: 'getEcho',
        summary: 'Get the latest request posted to an echo token',
        description: 'Whoever knows the token can read it, with any key. `status` is `waiting` until a request has arrived.',
        params: AskedToken,
        response: { 200: Echo }
      }
    },
    async request => {
      const echo = await fnOf(request.params.token).readEcho(request.params)
      return echo ? { status: 'delivered' as const, ...echo, payload: new Json(echo.payload) } : { status: 'waiting' as const }
    }
  )
}

export default echo

/** An execution token is a credential, and anyone who knows the echo token can read this, so it is masked. */
const captured = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      (name.startsWith('x-service-') || name === 'content-type' || name === 'user-agent') && value !== undefined
        ? [[name, name === 'x-service-execution-token' ? constants.mask : String(value)]]
        : []
    )
  )
