/** `pgcue/client`: typed access to the API, and verification of webhooks. Needs `fetch` and WebCrypto, but no packages. */
export { type Client, createClient } from './client.ts'
export { type Detail, PgcueError } from './errors.ts'
export type { ClaimProof } from './methods.ts'
export type { Outcome, Task, TaskExecution, Tasks } from './tasks.ts'
export type { CallOptions, ClientOptions } from './transport.ts'
export type * from './types.ts'
export { type IncomingHeaders, type VerifiedWebhook, verifyWebhook, WebhookError } from './webhook.ts'
export type { WorkerOptions } from './worker/worker.ts'
