/** An account's API keys. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { ApiError } from '../errors.ts'
import { createKey, decryptKey, encryptionKeyId, hashKey, keyPrefix, storedKey } from './keys.ts'
import * as schemas from './schemas.ts'

const config = { scope: 'account' } as const
const params = schemas.KeyParams

const routes: FastifyPluginAsyncTypebox = async app => {
  const { encryptionKeys, cell } = app.config

  app.get(
    '/v1/auth/keys',
    {
      config,
      schema: {
        operationId: 'listKeys',
        summary: 'List all keys, including revoked ones, newest first',
        description: 'Without the keys themselves, of which only a hash is stored.',
        response: { 200: schemas.Keys }
      }
    },
    async request => ({
      keys: await keysOf(app, request.caller.account_id).orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
    })
  )

  app.post(
    '/v1/auth/keys',
    {
      config: { ...config, errors: ['insufficient_scope'] },
      schema: {
        operationId: 'createKey',
        summary: 'Create a key',
        description:
          '`api_key` is shown only in this response. Give each agent or program its own, with the scopes it needs. ' +
          'Only a caller with the scope `approve` can create a key with it.',
        body: schemas.CreateKey,
        response: { 201: schemas.CreatedKey }
      }
    },
    async (request, reply) => {
      const api_key = createKey(cell)
      const id = await app.fn.createKey({
        ...request.body,
        key_hash: hashKey(api_key),
        prefix: keyPrefix(api_key),
        ...request.caller
      })
      return reply.code(201).send({ ...(await showKey(app, request.caller.account_id, id)), api_key })
    }
  )

  app.patch(
    '/v1/auth/keys/:key_id',
    {
      config,
      schema: {
        operationId: 'renameKey',
        summary: 'Change the label of a key',
        description: 'The key itself and its scopes stay.',
        params,
        body: schemas.RenameKey,
        response: { 200: schemas.Key }
      }
    },
    async request => {
      await app.fn.renameKey({ ...request.body, ...request.params, ...request.caller })
      return showKey(app, request.caller.account_id, request.params.key_id)
    }
  )

  app.delete(
    '/v1/auth/keys/:key_id',
    {
      config,
      schema: {
        operationId: 'revokeKey',
        summary: 'Revoke a key, effective immediately on every replica',
        description: 'The sessions that it opened end, too. The last key cannot be revoked.',
        params,
        response: { 200: schemas.RevokedKey }
      }
    },
    async request => ({
      id: request.params.key_id.toLowerCase(),
      revoked_at: await app.fn.revokeKey({ ...request.params, ...request.caller })
    })
  )

  app.post(
    '/v1/auth/key/regenerate',
    {
      config,
      schema: {
        operationId: 'regenerateKey',
        summary: 'Replace the only key',
        description:
          'It ends at once, with its sessions. An account with several keys creates and revokes them instead. The new key lacks the scope `approve`.',
        response: { 200: schemas.RegeneratedKey }
      }
    },
    async request => {
      const api_key = createKey(cell)
      const replaced_key_id = await app.fn.regenerateKey({
        ...storedKey(encryptionKeys, api_key, request.caller.account_id),
        ...request.caller
      })
      return { api_key, previous_key_revoked: replaced_key_id !== null }
    }
  )

  app.get(
    '/v1/auth/key',
    {
      config,
      schema: {
        operationId: 'revealKey',
        summary: 'Get the plaintext of the default key',
        description: 'Each call is recorded in the audit log as `key.revealed`. Other keys cannot be shown again.',
        response: { 200: schemas.RevealedKey }
      }
    },
    async request => {
      const encryption_key_ids = encryptionKeys.map(encryptionKeyId)
      const { key_prefix, ciphertext } = await app.fn.revealKey({ encryption_key_ids, ...request.caller })
      const api_key = decryptKey(encryptionKeys, ciphertext, `api_key ${request.caller.account_id}`)
      if (!api_key)
        throw new ApiError(
          'plaintext_unavailable',
          'The plaintext of the default key can no longer be decrypted. Create or regenerate a key.'
        )
      return { api_key, key_prefix }
    }
  )
}

export default routes

const keysOf = ({ db }: Pick<FastifyInstance, 'db'>, account_id: string) =>
  db.selectFrom('key_view').selectAll().where('account_id', '=', account_id).$castTo<Static<typeof schemas.Key>>()

const showKey = async (app: Pick<FastifyInstance, 'db'>, account_id: string, key_id: string) =>
  keysOf(app, account_id).where('id', '=', key_id).executeTakeFirstOrThrow()
