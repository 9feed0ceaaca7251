/** `pgcue listen`: claims executions and forwards each to a local URL as the webhook it would be. */
import { hostname } from 'node:os'
import { type CallOptions, type Claim, type Client, PgcueError, type Report } from '../client/index.ts'
import { deadline, pause, pauseBefore } from '../client/transport.ts'
import { malformed, settledCodes } from '../client/worker/reporter.ts'
import { badPorts } from '../deliveries/bad-ports.ts'
import { maskSecrets } from '../deliveries/mask-secrets.ts'
import { signHeaders } from '../deliveries/signature.ts'
import { canonicalJson } from '../json/canonical-json.ts'
import { command, integer } from './command.ts'
import { CliError, exitCodes, UsageError } from './exit-codes.ts'
import { isObject } from './json.ts'
import type { Output } from './output.ts'
import { cueIdOf } from './reference.ts'
import { userAgent } from './version.ts'

type Forwarding = { url: string; secret: string; timeoutMs: number; stopping: AbortSignal; print: boolean }
type Answer = { status: number | null; report: Report; ms: number; sent: string; received: string }

const beatMs = 60_000
const waitSeconds = 25
/** The service's maximum of executions per response. */
const mostListed = 100
/** Time for sending a last report or release when stopping. */
const patienceMs = 5000

export const listen = command({
  longRunning: true,
  options: {
    'forward-to': { type: 'string', value: 'URL', help: 'target, such as http://localhost:3000/hook' },
    cue: { type: 'string', value: 'CUE', help: 'only executions of this cue: its id, key or unique name' },
    task: { type: 'string', value: 'TASK', multiple: true, help: 'only executions with this task in the payload' },
    secret: { type: 'string', value: 'SECRET', help: "signing secret; overrides PGCUE_WEBHOOK_SECRET and the account's own" },
    timeout: { type: 'string', value: 'SECONDS', help: 'seconds to wait for a response, 1 to 600 (default: 30)' },
    print: { type: 'boolean', help: 'print the bodies of requests and responses' },
    'worker-id': { type: 'string', value: 'ID', help: 'name of this worker in GET /v1/workers' }
  },
  notes: `For cues with worker transport (pgcue cues create … --worker). A 2xx response is a success, any other a failure; a JSON response with a
boolean "success" decides by itself. Ctrl-C stops it and releases open claims. It is a worker like any other: what it claims runs here and
nowhere else.`,
  run: async context => {
    const { options, io, out } = context
    const url = targetOf(options['forward-to'])
    if (options.cue && options.task) throw new UsageError('give either --cue or --task, not both')
    const client = await context.connect()
    const cue = options.cue === undefined ? undefined : await cueIdOf(client, options.cue)
    const secret = options.secret || io.env.PGCUE_WEBHOOK_SECRET || (await secretOf(client))
    const timeoutMs = (integer(options.timeout, 'timeout', 1, 600) ?? 30) * 1000
    const worker_id = options['worker-id'] || `${hostname()}-listen-${process.pid}`
    const { stopping } = io
    const beat = () => client.workers.heartbeat({ worker_id, handlers: options.task ?? ['*'] })
    await beat()
    const beating = setInterval(() => beat().catch(() => {}), beatMs)
    if (!out.json) {
      out.line(`Forwarding to ${url}, signed with ${secret}. Stop with Ctrl-C.`)
      const what = cue ? `executions of ${cue}` : options.task ? `executions with the task ${options.task.join(' or ')}` : 'all executions'
      out.line(`This takes ${what} for workers away from other workers of the account, until it is stopped.`, 'yellow')
    }
    try {
      for await (const claim of claims(client, { worker_id, cue, tasks: options.task }, stopping)) {
        await handle(client, claim, { url, secret, timeoutMs, stopping, print: options.print ?? false }, out)
      }
    } finally {
      clearInterval(beating)
      await client.workers.delete(worker_id, { retries: 1, timeoutMs: 3000 }).catch(() => {})
    }
  }
})

/** Validates the target. A URL that `fetch` rejects would fail every execution. */
const targetOf = (given: string | undefined): string => {
  if (!given || !/^https?:\/\/./i.test(given)) throw new UsageError('--forward-to is required: a URL that starts with http:// or https://')
  if (!URL.canParse(given)) throw new UsageError('--forward-to is not a valid URL')
  const url = new URL(given)
  if (url.username || url.password) throw new UsageError('--forward-to must not contain a user name or password')
  if (badPorts.has(url.port)) throw new UsageError(`--forward-to: port ${url.port} is reserved for another protocol; use a different port`)
  return given
}

const secretOf = async (client: Client): Promise<string> => {
  try {
    return (await client.secrets.webhook()).webhook_secret
  } catch (error) {
    if (!(error instanceof PgcueError && error.code === 'insufficient_scope')) throw error
    throw new CliError('This key lacks the scope to read the signing secret. Set --secret or PGCUE_WEBHOOK_SECRET.', 2, error.code)
  }
}

type Selection = { worker_id: string; cue: string | undefined; tasks: string[] | undefined }

/** Claims one execution after the other until stopped. @throws PgcueError if the key is invalid */
async function* claims(client: Client, selection: Selection, signal: AbortSignal): AsyncGenerator<Claim> {
  for (let failures = 0; !signal.aborted; ) {
    try {
      const { worker_id, cue } = selection
      yield* cue === undefined ? await nextOf(client, selection, signal) : await nextOfCue(client, { worker_id, cue }, signal)
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof PgcueError) || [401, 403].includes(error.status)) throw error
      await pause(pauseBefore(++failures, error), signal).catch(() => {})
    }
  }
}

const nextOf = async (client: Client, { worker_id, tasks }: Selection, signal: AbortSignal) => {
  const began = Date.now()
  const found = await client.executions.claimNext({ worker_id, wait: waitSeconds, ...(tasks && { tasks }) }, { signal })
  if (found.length === 0 && Date.now() - began < 1000) await pause(1000, signal) // an early empty response: the service is stopping
  return found
}

/** Claims the next execution of one cue. The list also returns other cues' executions without waiting, so requests are spaced out. */
const nextOfCue = async (client: Client, { worker_id, cue }: { worker_id: string; cue: string }, signal: AbortSignal): Promise<Claim[]> => {
  const claimable = await client.executions.claimable({ limit: mostListed, wait: waitSeconds }, { signal })
  const next = claimable.find(({ cue_id }) => cue_id === cue)
  const id = next ? next.id : claimable.length === mostListed ? await beyondList(client, cue, signal) : undefined
  if (!next) await pause(1000, signal)
  if (id === undefined) return []
  try {
    return [await client.executions.claim(id, { worker_id }, { signal })]
  } catch (error) {
    if (error instanceof PgcueError && error.code === 'already_claimed') return []
    throw error
  }
}

/** Finds an execution of the cue that doesn't fit into the list; a key with only the worker scope may not search for it. */
const beyondList = async ({ executions }: Client, cue_id: string, signal: AbortSignal): Promise<string | undefined> => {
  try {
    for (let offset = 0; ; offset += mostListed) {
      const page = await executions.list({ cue_id, status: 'pending', limit: mostListed, offset }, { signal })
      const due = page.executions.findLast(({ scheduled_for }) => Date.parse(scheduled_for) <= Date.now())
      if (due || !page.has_more) return due?.id
    }
  } catch (error) {
    if (error instanceof PgcueError && error.code === 'insufficient_scope') return undefined
    throw error
  }
}

const handle = async ({ executions }: Client, claim: Claim, forwarding: Forwarding, out: Output) => {
  const { execution_id: id, claim_token: claimToken } = claim
  const { stopping } = forwarding
  const giveBack = () => untilAnswered(options => executions.release(id, claimToken, options), stopping)
  let answer: Answer | null
  try {
    answer = await forward(claim, forwarding)
  } catch (error) {
    await giveBack()
    throw error
  }
  if (answer === null) return void (await giveBack())
  const { status, report, ms, sent, received } = answer
  const refusal = await untilAnswered(options => executions.reportOutcome(id, report, { claimToken, ...options }), stopping)
  const reported = refusal === null
  const { cue_id, attempt } = claim
  const bodies = forwarding.print && { request_body: sent, response_body: received }
  out.show({ execution_id: id, cue_id, attempt, status, success: report.success, ms, reported, ...bodies }, () => {
    const rest = reported ? '' : `  not reported: ${refusal.code}`
    out.line(`${new Date().toISOString()}  ${id}  ${claim.cue_name}  ${status ?? report.error}  ${ms} ms${rest}`)
    if (!bodies) return
    out.line(`  > ${sent}`)
    if (received) out.line(`  < ${received}`)
  })
}

/**
 * Retries until a response settles the claim. Returns null if it was accepted, otherwise the refusal: the handler may have reported with its
 * own token, or the cue may be deleted.
 * @throws PgcueError if the key is invalid or the time is over
 */
const untilAnswered = async (send: (options: CallOptions) => Promise<unknown>, stopping: AbortSignal): Promise<PgcueError | null> => {
  const { signal, end } = patience(stopping)
  let last: PgcueError | undefined
  try {
    for (let failures = 0; ; ) {
      try {
        await send({ signal, retries: 0 })
        return null
      } catch (error) {
        if (!(error instanceof PgcueError) || [401, 403].includes(error.status)) throw error
        if ([...settledCodes, 'execution_not_claiming'].includes(error.code) || malformed.includes(error.status)) return error
        last = error
        await pause(pauseBefore(++failures, error), signal)
      }
    }
  } catch (error) {
    throw signal.aborted && last ? last : error
  } finally {
    end()
  }
}

/** Returns a signal that is aborted some time after another. */
const patience = (stopping: AbortSignal) => {
  const over = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const begin = () => {
    timer = setTimeout(() => over.abort(new CliError('The service did not respond in time', exitCodes.unreachable)), patienceMs)
  }
  if (stopping.aborted) begin()
  else stopping.addEventListener('abort', begin, { once: true })
  return {
    signal: over.signal,
    end: () => {
      clearTimeout(timer)
      stopping.removeEventListener('abort', begin)
    }
  }
}

/** Forwards one claim; null if stopped meanwhile. @throws CliError if the request cannot be sent at all */
const forward = async (claim: Claim, { url, secret, timeoutMs, stopping }: Forwarding): Promise<Answer | null> => {
  const body = canonicalJson(JSON.stringify(claim.payload))
  const headers = {
    'content-type': 'application/json',
    // The server may end an idle connection at the moment of the next request, which would fail.
    connection: 'close',
    'user-agent': userAgent,
    ...signHeaders({ secrets: [secret], executionId: claim.execution_id, timestamp: Math.floor(Date.now() / 1000), body }),
    'X-Service-Cue-Id': claim.cue_id,
    'X-Service-Execution-Id': claim.execution_id,
    'X-Service-Scheduled-For': claim.scheduled_for,
    'X-Service-Attempt': String(claim.attempt),
    authorization: `Bearer ${claim.execution_token}`
  }
  const began = performance.now()
  const took = () => Math.round(performance.now() - began)
  const limit = deadline(timeoutMs, stopping)
  try {
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal: limit.signal })
    const received = await response.text()
    return { status: response.status, report: reportOf(response, received, claim.execution_token), ms: took(), sent: body, received }
  } catch (error) {
    if (stopping.aborted) return null
    const { cause } = error as { cause?: { code?: string; message?: string } }
    if (!limit.signal.aborted && (cause === undefined || cause.message === 'bad port'))
      throw new CliError(`Cannot send requests to ${url}: ${cause?.message ?? (error as Error).message}`, exitCodes.usage, 'usage')
    const why = limit.signal.aborted
      ? `no response within ${timeoutMs / 1000} s`
      : (cause?.code ?? cause?.message ?? (error as Error).message)
    return { status: null, report: { success: false, error: `${url}: ${why}` }, ms: took(), sent: body, received: '' }
  } finally {
    limit.end()
  }
}

const reportOf = ({ ok, status }: Response, text: string, token: string): Report => {
  const said = readObject(text)
  const cut = (value: unknown) =>
    typeof value === 'string' ? maskSecrets(value, [token]).toWellFormed().replaceAll('\0', '\ufffd').slice(0, 2000) : undefined
  if (ok && typeof said?.success === 'boolean')
    return { success: said.success, result: cut(said.result) ?? null, error: cut(said.error) ?? null }
  const summary = cut(`HTTP ${status}${text && `: ${text}`}`)!
  return ok ? { success: true, result: summary } : { success: false, error: summary }
}

const readObject = (text: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
