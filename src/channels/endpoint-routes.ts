/** Event endpoints: addresses that get the feed as signed webhooks. */
import { randomUUID } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { readPage } from '../database/read-page.ts'
import { createWebhookClient } from '../deliveries/webhook.ts'
import { ApiError, fault, invalid } from '../errors.ts'
import { readTypes } from '../events/types.ts'
import * as schemas from './endpoint-schemas.ts'
import { signedRequest } from './messages.ts'
import { ChannelTest } from './schemas.ts'
import { timeoutMs } from './send.ts'

type Endpoint = Static<typeof schemas.EventEndpoint>
const columns = Object.keys(schemas.EventEndpoint.properties) as (keyof Endpoint)[]

const routes: FastifyPluginAsyncTypebox = async app => {
  const client = createWebhookClient({ rules: app.rules })
  app.addHook('preClose', client.destroy)

  const endpointsOf = (account_id: string) => app.db.selectFrom('event_endpoint_view').where('account_id', '=', account_id)

  const find = async (account_id: string, id: string) =>
    endpointsOf(account_id)
      .select(columns)
      .where('id', '=', id)
      .$castTo<Endpoint>()
      .executeTakeFirstOrThrow(() => new ApiError('event_endpoint_not_found', 'Event endpoint not found in this account.'))

  /** @throws ApiError if nothing could be sent there, or a cue does not exist */
  const check = async (account_id: string, { url, cue_ids }: schemas.CreateEventEndpoint): Promise<void> => {
    const checked = await app.rules.checkUrl(url)
    if (!checked.ok) throw new ApiError('invalid_callback_url', `url: ${checked.reason}`)
    if (!cue_ids) return
    const cues = await app.fn.readCues({ account_ids: cue_ids.map(() => account_id), cue_ids })
    const unknown = cue_ids.filter(id => !cues.some(cue => cue.id === id))
    if (unknown.length > 0) throw invalid(unknown.map(id => fault(['cue_ids'], `cue ${id} not found`)))
  }

  app.post(
    '/v1/event-endpoints',
    {
      config: { scope: 'account', errors: ['limit_reached', 'invalid_callback_url'] },
      schema: {
        operationId: 'createEventEndpoint',
        summary: 'Send events to a URL',
        description:
          'From now on, one after the other, signed like callbacks: `webhook-id` is the id of the event. A response other than 2xx is repeated after 10 ' +
          'seconds, 1, 5 and then every 30 minutes, and holds up the events after it; 410 skips an event. After 3 days and at least 20 tries, the ' +
          'endpoint is disabled, with a mail and an event.',
        body: schemas.CreateEventEndpoint,
        response: { 201: schemas.CreatedEventEndpoint }
      }
    },
    async (request, reply) => {
      const { account_id } = request.caller
      const { types, ...rest } = request.body
      await check(account_id, request.body)
      const { id, secret } = await app.fn.createEventEndpoint({
        types: readTypes(types, ['body', 'types'], types),
        ...rest,
        ...request.caller
      })
      return reply.code(201).send({ ...(await find(account_id, id)), secret })
    }
  )

  app.get(
    '/v1/event-endpoints',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listEventEndpoints',
        summary: 'List event endpoints, newest first',
        description: 'Without their secrets.',
        querystring: schemas.ListEventEndpoints,
        response: { 200: schemas.EventEndpoints }
      }
    },
    async request => {
      const query = endpointsOf(request.caller.account_id).select(columns).orderBy('id', 'desc').$castTo<Endpoint>()
      const { rows: event_endpoints, ...page } = await readPage(query, request.query)
      return { event_endpoints, ...page }
    }
  )

  app.get(
    '/v1/event-endpoints/:endpoint_id',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getEventEndpoint',
        summary: 'Get an event endpoint',
        description: 'Without its secret; `tries` and `error` say how it is doing.',
        params: schemas.EndpointParams,
        response: { 200: schemas.EventEndpoint }
      }
    },
    async request => find(request.caller.account_id, request.params.endpoint_id)
  )

  app.delete(
    '/v1/event-endpoints/:endpoint_id',
    {
      config: { scope: 'account' },
      schema: {
        operationId: 'deleteEventEndpoint',
        summary: 'Delete an event endpoint',
        description: 'Nothing more is sent to it.',
        params: schemas.EndpointParams,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      await app.fn.deleteEventEndpoint({ ...request.params, ...request.caller })
      return reply.code(204).send(null)
    }
  )

  app.post(
    '/v1/event-endpoints/:endpoint_id/enable',
    {
      config: { scope: 'account' },
      schema: {
        operationId: 'enableEventEndpoint',
        summary: 'Enable an event endpoint again',
        description: 'Also ends the wait for the next try of one that is failing.',
        params: schemas.EndpointParams,
        body: schemas.EnableEventEndpoint,
        response: { 200: schemas.EnabledEventEndpoint }
      }
    },
    async request => {
      const { endpoint_id } = request.params
      const truncated = await app.fn.enableEventEndpoint({ endpoint_id, skips: request.body.from === 'now', ...request.caller })
      return { ...(await find(request.caller.account_id, endpoint_id)), truncated }
    }
  )

  app.post(
    '/v1/event-endpoints/:endpoint_id/test',
    {
      config: { scope: 'account', errors: ['service_held'] },
      schema: {
        operationId: 'testEventEndpoint',
        summary: 'Send a test event to an endpoint',
        description: 'An event of type `endpoint.test`, at once and without retries. Tests are limited like fires.',
        params: schemas.EndpointParams,
        response: { 200: ChannelTest }
      }
    },
    async request => {
      const { endpoint_id } = request.params
      const { url, secret } = await app.fn.beginEndpointTest({ endpoint_id, ...request.caller })
      const event = { id: randomUUID(), type: 'endpoint.test', at: app.now(), cue_id: null, cue_key: null, execution_id: null, data: {} }
      const signed = signedRequest(url, [secret], event.id, JSON.stringify(event), +app.now())
      const { http_status, error } = await client.post({ ...signed, timeoutMs })
      return { ...(http_status !== null && { http_status }), ...(error !== null && { error }) }
    }
  )
}

export default routes
