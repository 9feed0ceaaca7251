/** `pgcue/client`: the service's API, typed, and the check of its webhooks. Needs `fetch` and WebCrypto, and no package. */
export { type ClaimProof, type Client, createClient } from './client.ts'
export { type Detail, PgcueError } from './errors.ts'
export type { CallOptions, ClientOptions } from './transport.ts'
export type * from './types.ts'
export { type IncomingHeaders, type VerifiedWebhook, verifyWebhook, WebhookError } from './webhook.ts'
