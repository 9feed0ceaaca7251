/** What OpenTelemetry traces add to the service: spans of requests, of the SQL functions that they call, and of webhook requests. */
import type { FastifyPluginAsync } from 'fastify'
import type { KyselyConfig } from 'kysely'
import type { Functions } from '../database/functions.ts'
import type { WebhookClient } from '../deliveries/webhook.ts'

// biome-ignore lint/suspicious/noExplicitAny: functions of any shape
export type Call = (...args: any[]) => Promise<any>

export type Traces = {
  /** Begins a span for each request. To be registered before all other plugins, so that it covers them. */
  requests: FastifyPluginAsync
  /** Makes each call of these SQL functions a span of the request that makes it. */
  functions: (fn: Functions) => Functions
  /** The same for one function whose statement serves many requests: each request gets a span. `name` is the SQL function's. */
  call: <F extends Call>(name: keyof Functions, call: F) => F
  /** Notes the queries of a request. */
  queries: KyselyConfig['log']
  /** Adds `trace_id` and `span_id` to the members of a log line: those of the request, or the trace of the execution that it names. */
  line: (<M extends object>(members: M) => M) | undefined
  /** Headers that make an internal request part of the current one's trace. */
  headers: () => Record<string, string>
  /** Makes the statements that take attempts spans, to which those of the attempts are linked. */
  taking: (fn: Functions) => Functions
  /** Makes each webhook request a span, with the attempt in its handle, and sends it as `traceparent`. */
  client: (client: WebhookClient) => WebhookClient
  /** Exports what is left, within three seconds by default. */
  stop: (withinMs?: number) => Promise<void>
}

/** Returns what it is given. */
export const untraced: Traces = {
  requests: async () => {},
  functions: fn => fn,
  call: (_, call) => call,
  queries: undefined,
  line: undefined,
  headers: () => ({}),
  taking: fn => fn,
  client: client => client,
  stop: async () => {}
}
