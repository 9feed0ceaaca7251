/** `pgcue/client`: typed access to the API, and verification of webhooks. Needs `fetch` and WebCrypto, but no packages. */
export { type ClaimProof, type Client, createClient } from './client.ts'
export { type Detail, PgcueError } from './errors.ts'
export type { CallOptions, ClientOptions } from './transport.ts'
export type * from './types.ts'
export { type IncomingHeaders, type VerifiedWebhook, verifyWebhook, WebhookError } from './webhook.ts'
