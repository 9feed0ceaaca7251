/** Channels: where alerts and events are sent. */
import { randomUUID } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { Email } from '../accounts/schemas.ts'
import { constants } from '../catalog.ts'
import { readPage } from '../database/read-page.ts'
import { createWebhookClient } from '../deliveries/webhook.ts'
import { ApiError, fault, invalid } from '../errors.ts'
import { readTypes } from '../events/types.ts'
import { requestTo, testMessage } from './messages.ts'
import * as schemas from './schemas.ts'
import { timeoutMs } from './send.ts'

const columns = ['name', 'type', 'target', 'types', 'severity', 'tags', 'default', 'enabled', 'created_at', 'updated_at'] as const
type Channel = Static<typeof schemas.Channel>

const emails = Compile(Email)
const routingKey = /^[0-9A-Za-z]{32}$/

const routes: FastifyPluginAsyncTypebox = async app => {
  const client = createWebhookClient({ rules: app.rules })
  app.addHook('preClose', client.destroy)

  const channelsOf = (account_id: string) => app.db.selectFrom('channel_view').where('account_id', '=', account_id)

  const find = async (account_id: string, name: string) =>
    channelsOf(account_id)
      .select(columns)
      .where('name', '=', name)
      .$castTo<Channel>()
      .executeTakeFirstOrThrow(() => new ApiError('channel_not_found', 'Channel not found in this account.'))

  /** @throws ApiError if nothing could be sent there */
  const checkTarget = async ({ type, target }: schemas.PutChannel): Promise<void> => {
    const refuse = (msg: string) => invalid([fault(['target'], msg)])
    if (type === 'email') {
      if (!emails.Check(target)) throw refuse('must be an email address')
      return
    }
    if (type === 'pagerduty' && (routingKey.test(target) || target === constants.mask)) return
    const checked = await app.rules.checkUrl(target)
    if (!checked.ok) throw new ApiError('invalid_callback_url', `target: ${checked.reason}`)
    const { pathname, searchParams } = new URL(target)
    if (type === 'pagerduty' && !searchParams.has('routing_key') && !pathname.endsWith(constants.mask))
      throw refuse('must be a routing key of 32 characters, or a URL with ?routing_key=')
    if (type === 'ntfy' && pathname === '/') throw refuse("must be the topic's full URL")
  }

  app.get(
    '/v1/channels',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listChannels',
        summary: 'List channels by name',
        description: 'Their targets are masked.',
        querystring: schemas.ListChannels,
        response: { 200: schemas.Channels }
      }
    },
    async request => {
      const query = channelsOf(request.caller.account_id).select(columns).orderBy('name').$castTo<Channel>()
      const { rows: channels, ...page } = await readPage(query, request.query)
      return { channels, ...page }
    }
  )

  app.get(
    '/v1/channels/:channel_name',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getChannel',
        summary: 'Get a channel',
        description: 'Its target is masked.',
        params: schemas.ChannelParams,
        response: { 200: schemas.Channel }
      }
    },
    async request => find(request.caller.account_id, request.params.channel_name)
  )

  app.put(
    '/v1/channels/:channel_name',
    {
      config: { scope: 'account', errors: ['limit_reached', 'invalid_callback_url', 'address_unconfirmed'] },
      schema: {
        operationId: 'putChannel',
        summary: 'Create or replace a channel',
        description:
          'Alerts go to the channels that a cue names in `alerts.channels`, otherwise to those with `default: true`; each gets a message when an alert is ' +
          'raised, and one when it is resolved. An address that has not been confirmed gets a link first: repeat the request after opening it.',
        params: schemas.NewChannelParams,
        body: schemas.PutChannel,
        response: { 200: schemas.Channel, 201: schemas.Channel }
      }
    },
    async (request, reply) => {
      const { channel_name: name } = request.params
      const { type, target, types, default: is_default, ...rest } = request.body
      await checkTarget(request.body)
      const read = types == null ? null : readTypes(types, ['body', 'types'], types)
      const result = await app.fn.putChannel({ name, type, target, types: read, is_default, ...rest, ...request.caller })
      if (result === 'unconfirmed')
        throw new ApiError(
          'address_unconfirmed',
          `We have mailed a link to ${target}. Open it and confirm the address; then repeat this request.`
        )
      return reply.code(result === 'created' ? 201 : 200).send(await find(request.caller.account_id, name))
    }
  )

  app.delete(
    '/v1/channels/:channel_name',
    {
      config: { scope: 'account' },
      schema: {
        operationId: 'deleteChannel',
        summary: 'Delete a channel',
        description: 'Nothing more is sent to it. Cues that name no other channel that exists use the default ones.',
        params: schemas.ChannelParams,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      await app.fn.deleteChannel({ name: request.params.channel_name, ...request.caller })
      return reply.code(204).send(null)
    }
  )

  app.post(
    '/v1/channels/:channel_name/test',
    {
      config: { scope: 'account', errors: ['service_held'] },
      schema: {
        operationId: 'testChannel',
        summary: 'Send a test message to a channel',
        description: 'At once, and without retries. Tests are limited like fires.',
        params: schemas.ChannelParams,
        response: { 200: schemas.ChannelTest }
      }
    },
    async request => {
      const { channel_name: name } = request.params
      const channel = await app.fn.beginChannelTest({ name, ...request.caller })
      if (channel.type === 'email') return { http_status: 202 }
      const { message, sent } = testMessage(name, randomUUID(), app.config.baseUrl, app.now())
      const { http_status, error } = await client.post({ ...requestTo(channel, message, sent, +app.now()), timeoutMs })
      return { ...(http_status !== null && { http_status }), ...(error !== null && { error }) }
    }
  )
}

export default routes
