/** The memory block: a summary of the account for its agents, if the account has enabled it. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../errors.ts'
import { blockOf, instructions, release } from './block.ts'
import { MemoryBlock, Subscribe, Subscribed } from './schemas.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  const { baseUrl } = app.config

  app.get(
    '/v1/memory-block',
    {
      config: { scope: 'account', errors: ['memory_block_disabled'] },
      schema: {
        operationId: 'getMemoryBlock',
        summary: 'Get the memory block: what an agent should know about this account',
        description: 'A short text for the memory of an agent, about pgcue and this account. Switched on with `memory_block_enabled`.',
        response: { 200: MemoryBlock }
      }
    },
    async request => {
      const { version, plan, cues, key_prefix, changelog } = await app.fn.readMemory({ release, ...request.caller })
      const key = key_prefix === null ? null : `${key_prefix}***`
      return { block: blockOf({ baseUrl, version, plan, key, cues }), version, changelog, key, plan, cues, instructions }
    }
  )

  app.post(
    '/v1/memory-block/subscribe',
    {
      config: { scope: 'account', errors: ['memory_block_disabled', 'invalid_callback_url', 'invalid_state'] },
      schema: {
        operationId: 'subscribeToMemoryBlock',
        summary: 'Subscribe to changes of the memory block',
        description: 'Each change is sent to `callback_url`, see the webhook `memoryBlock`.',
        body: Subscribe,
        response: { 201: Subscribed }
      }
    },
    async (request, reply) => {
      const { agent_id, callback_url } = request.body
      const checked = await app.rules.checkUrl(callback_url)
      if (!checked.ok) throw new ApiError('invalid_callback_url', `callback_url: ${checked.reason}`)
      await app.fn.subscribeMemory({ agent_id, callback_url, release, ...request.caller })
      return reply.code(201).send({ subscribed: true, agent_id, callback_url })
    }
  )
}

export default routes
