/** `pgcue/serve`: receives webhooks, runs their tasks and responds with the outcome. Needs WebCrypto, but no packages. */
import { failure, mostTimeoutMs, type Outcome, startTask, type Task, type Tasks, taskOf, timedOutAfter } from './tasks.ts'
import { type IncomingHeaders, type VerifiedWebhook, verifyWebhook, WebhookError } from './webhook.ts'

export type { Outcome, Task, TaskExecution, Tasks } from './tasks.ts'

export type ServeOptions = {
  /** The signing secret; several while one replaces another. */
  secret: string | readonly string[]
  /** Functions by the member `task` of the payload; `*` handles any other task. */
  tasks: Tasks
  /** Milliseconds after which a task has failed; an hour by default, which is the longest timeout of a cue. */
  timeoutMs?: number
  /** The current time, for tests. */
  now?: () => Date
}

export type Serve = {
  /** For frameworks that use the Fetch API: Next.js, Hono, Bun, Deno, Workers. */
  (request: Request): Promise<Response>
  /** For node:http, Express and Fastify. Their parsers must leave the body alone, or pass it on as a Buffer or text. */
  node: (request: object, response: object) => Promise<void>
}

type Answer = { status: number; body: unknown }
type Chunks = AsyncIterable<Uint8Array>

/** A payload has at most 1 MiB. */
const mostBytes = 2 * 1024 * 1024
/** The service reads 64 KB of a response. */
const mostOutcomeBytes = 64_000
/** Outcomes kept for repeated deliveries. */
const keptOutcomes = 10_000

/**
 * Makes a handler of webhooks. It verifies the raw body, runs the task and responds with 200 and the outcome, so that a cue with
 * `delivery.await_outcome` needs no other report: `{ success: false, error }` if the task fails. An invalid signature gets 401, an unknown
 * task 404. An execution that is delivered again while this process remembers it isn't run again, but gets the same outcome.
 */
export const serve = ({ secret, tasks, timeoutMs = 3_600_000, now = () => new Date() }: ServeOptions): Serve => {
  if ([secret].flat().length === 0 || [secret].flat().some(value => !value)) throw new TypeError('serve needs the signing secret')
  if (timeoutMs > mostTimeoutMs) throw new TypeError('timeoutMs must be less than 25 days')
  const outcomes = new Map<string, Promise<Outcome>>()

  const outcomeOf = (webhook: VerifiedWebhook, task: Task, token: string): Promise<Outcome> => {
    const { executionId, cueId, payload, attempt, scheduledFor } = webhook
    const former = outcomes.get(executionId)
    if (former) return former
    const outcome = inTime({ executionId, cueId, task: nameOf(payload), payload, attempt, scheduledFor, token }, task, timeoutMs)
    outcomes.set(executionId, outcome)
    if (outcomes.size > keptOutcomes) outcomes.delete(outcomes.keys().next().value!)
    return outcome
  }

  const answer = async (headers: IncomingHeaders, chunks: Chunks | Uint8Array | string | null): Promise<Answer> => {
    const body = await bytesOf(chunks)
    if (body === null) return refusal(413, 'payload_too_large', `The body has more than ${mostBytes} bytes.`)
    try {
      const webhook = await verifyWebhook(body, headers, secret, { now: now() })
      const name = nameOf(webhook.payload)
      const task = webhook.executionId === '' ? undefined : taskOf(tasks, name)
      if (!task) return refusal(404, 'unknown_task', `Nothing here handles ${subjectOf(webhook, name)}`)
      return { status: 200, body: await outcomeOf(webhook, task, tokenOf(headers)) }
    } catch (error) {
      if (!(error instanceof WebhookError)) throw error
      return refusal(error.code === 'not_json' ? 400 : 401, error.code, error.message)
    }
  }

  const node = async (request: object, response: object) => {
    const incoming = request as NodeRequest
    const outgoing = response as NodeResponse
    // Fastify must not respond as well.
    outgoing.hijack?.()
    const { raw = incoming } = incoming
    const { status, body } = await (async () => answer(raw.headers, bodyOf(incoming) ?? raw))().catch(failed)
    const target = outgoing.raw ?? outgoing
    target.writeHead(status, { 'content-type': 'application/json' })
    target.end(JSON.stringify(body))
  }

  return Object.assign(
    async (request: Request) => {
      const { status, body } = await answer(request.headers, request.body as Chunks | null).catch(failed)
      return Response.json(body, { status })
    },
    { node }
  )
}

/** Requests and responses of node:http, and those of Fastify around them. */
type NodeRequest = Chunks & { headers: Record<string, string | string[] | undefined>; body?: unknown; raw?: NodeRequest }
type NodeResponse = {
  writeHead: (status: number, headers: Record<string, string>) => unknown
  end: (body: string) => unknown
  hijack?: () => unknown
  raw?: NodeResponse
}

const refusal = (status: number, code: string, message: string): Answer => ({ status, body: { error: { code, message } } })

const failed = (error: unknown): Answer => {
  console.error('pgcue serve:', error)
  return refusal(500, 'internal_error', 'The request could not be handled; the reason is in the log.')
}

/** The body as a parser passed it on; undefined if none did. @throws Error if only the parsed value is left */
const bodyOf = ({ body }: NodeRequest): Uint8Array | string | undefined => {
  if (body === undefined || body === null || typeof body === 'string' || body instanceof Uint8Array) return body ?? undefined
  throw new Error('the body was parsed before its signature could be verified: mount serve before express.json(), or use express.raw()')
}

/** Null if there are too many. */
const bytesOf = async (chunks: Chunks | Uint8Array | string | null): Promise<Uint8Array | null> => {
  if (chunks === null) return new Uint8Array()
  if (typeof chunks === 'string') return new TextEncoder().encode(chunks)
  if (chunks instanceof Uint8Array) return chunks
  const parts: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    // The rest is read as well: otherwise, the sender would not get the response.
    if (size <= mostBytes) parts.push(chunk)
  }
  if (size > mostBytes) return null
  const bytes = new Uint8Array(size)
  let end = 0
  for (const part of parts) {
    bytes.set(part, end)
    end += part.length
  }
  return bytes
}

/** What has no task, and what to do. */
const subjectOf = ({ executionId }: VerifiedWebhook, name: string | null): string => {
  if (executionId === '') return 'webhooks that are not executions: send them to another address.'
  if (name === null) return 'a payload without "task": set it in the cue, or add the task "*".'
  return `the task ${JSON.stringify(name)}: add it, or the task "*" for all others.`
}

const nameOf = (payload: unknown): string | null => {
  const { task } = (payload ?? {}) as { task?: unknown }
  return typeof task === 'string' ? task : null
}

const tokenOf = (headers: IncomingHeaders): string => {
  const read = (name: string) => (typeof headers.get === 'function' ? headers.get(name) : (headers as Record<string, string>)[name])
  return (read('x-service-execution-token') ?? read('authorization') ?? '').replace(/^Bearer /, '')
}

const inTime = async (execution: Parameters<typeof startTask>[1], task: Task, timeoutMs: number): Promise<Outcome> => {
  const started = startTask(task, execution)
  const timer = setTimeout(started.abort, timeoutMs, 'the time of this task is over')
  const outcome = await Promise.race([started.outcome, started.aborted.then(() => failure(timedOutAfter(timeoutMs)))])
  clearTimeout(timer)
  const bytes = new TextEncoder().encode(JSON.stringify(outcome)).length
  return bytes > mostOutcomeBytes ? failure(`the outcome has more than ${mostOutcomeBytes} bytes`) : outcome
}
