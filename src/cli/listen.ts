/** `pgcue listen`: a worker that forwards each execution to a local URL as the webhook it would be. */
import { hostname } from 'node:os'
import { type CallOptions, type Claim, type Client, type Evidence, PgcueError, type Report, type TaskExecution } from '../client/index.ts'
import { clip, failure } from '../client/tasks.ts'
import { runTasks } from '../client/worker/worker.ts'
import { badPorts } from '../deliveries/bad-ports.ts'
import { maskSecrets } from '../deliveries/mask-secrets.ts'
import { reportIn } from '../deliveries/report.ts'
import { signHeaders } from '../deliveries/signature.ts'
import { canonicalJson } from '../json/canonical-json.ts'
import { command, integer } from './command.ts'
import { CliError, exitCodes, UsageError } from './exit-codes.ts'
import { parseExactly } from './io.ts'
import { cueIdOf } from './reference.ts'
import { userAgent } from './version.ts'

/** The service's maximum of executions per response. */
const mostListed = 100

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
boolean "success" is the report itself. Ctrl-C stops it and releases open claims. It is a worker like any other: what it claims runs here
and nowhere else.`,
  run: async ({ options, io, out, connect }) => {
    const url = targetOf(options['forward-to'])
    if (options.cue && options.task) throw new UsageError('give either --cue or --task, not both')
    const timeoutMs = (integer(options.timeout, 'timeout', 1, 600) ?? 30) * 1000
    const client = connect()
    const cue = options.cue === undefined ? undefined : await cueIdOf(client, options.cue)
    const secret = options.secret || io.env.PGCUE_WEBHOOK_SECRET || (await secretOf(client))
    if (!out.json) {
      out.line(`Forwarding to ${url}, signed with ${secret}. Stop with Ctrl-C.`)
      const what = cue ? `executions of ${cue}` : options.task ? `executions with the task ${options.task.join(' or ')}` : 'all executions'
      out.line(`This takes ${what} for workers away from other workers of the account, until it is stopped.`, 'yellow')
    }
    const runs = new Map<string, { claim: Claim; answer?: Answer }>()
    let unsendable: unknown
    const stop = new AbortController()
    const task = async ({ executionId, signal }: TaskExecution) => {
      const run = runs.get(executionId)!
      try {
        run.answer = await forward(run.claim, { url, secret, timeoutMs, signal })
        return run.answer.report
      } catch (error) {
        unsendable ??= error
        stop.abort()
        return new Promise<never>(() => {}) // its claim is released
      }
    }
    const show = (id: string, refusal: unknown) => {
      const { claim, answer } = runs.get(id)!
      runs.delete(id)
      const { cue_id, cue_name, attempt } = claim
      const { status, report, ms, sent, received } = answer!
      const bodies = options.print && { request_body: sent, response_body: received }
      const { success, error } = report
      out.show({ execution_id: id, cue_id, attempt, status, success, ms, reported: !refusal, ...bodies }, () => {
        const rest = refusal ? `  not reported: ${refusal}` : ''
        out.line(`${new Date().toISOString()}  ${id}  ${cue_name}  ${status ?? error}  ${ms} ms${rest}`)
        if (bodies) out.line(`  > ${sent}`)
        if (bodies && received) out.line(`  < ${received}`)
      })
    }
    const claimNext: Client['executions']['claimNext'] = async (body = {}, o) => {
      const claims = cue === undefined ? await client.executions.claimNext(body, o) : await claimOf(client, cue, body.worker_id!, o)
      for (const claim of claims) runs.set(claim.execution_id, { claim })
      return claims
    }
    await runTasks(
      { ...client, executions: { ...client.executions, claimNext } },
      {
        tasks: Object.fromEntries((options.task ?? ['*']).map(name => [name, task])),
        workerId: options['worker-id'] || `${hostname()}-listen-${process.pid}`,
        signal: AbortSignal.any([io.stopping, stop.signal]),
        drainMs: 0,
        log: (event, { execution_id, code } = {}) => {
          if (event === 'reported' || event === 'not reported') show(String(execution_id), code)
        }
      }
    )
    if (unsendable) throw unsendable
  }
})

/** Validates the target. A URL that `fetch` rejects would fail every execution. */
const targetOf = (text = ''): string => {
  if (!/^https?:\/\/./i.test(text)) throw new UsageError('--forward-to is required: a URL that starts with http:// or https://')
  if (!URL.canParse(text)) throw new UsageError('--forward-to is not a valid URL')
  const url = new URL(text)
  if (url.username || url.password) throw new UsageError('--forward-to must not contain a user name or password')
  if (badPorts.has(url.port)) throw new UsageError(`--forward-to: port ${url.port} is reserved for another protocol; use a different port`)
  return text
}

const secretOf = async (client: Client): Promise<string> => {
  try {
    return (await client.secrets.webhook()).webhook_secret
  } catch (error) {
    if (!(error instanceof PgcueError && error.code === 'insufficient_scope')) throw error
    throw new CliError('This key lacks the scope to read the signing secret. Set --secret or PGCUE_WEBHOOK_SECRET.', 2, error.code)
  }
}

/** Claims an execution of one cue, if there is one. */
const claimOf = async ({ executions }: Client, cue: string, worker_id: string, o?: CallOptions): Promise<Claim[]> => {
  try {
    const claimable = await executions.claimable({ limit: mostListed, wait: 25 }, o)
    let id = claimable.find(({ cue_id }) => cue_id === cue)?.id
    if (id === undefined && claimable.length === mostListed)
      for await (const execution of executions.list({ cue_id: cue, status: 'pending', limit: mostListed }, o))
        if (Date.parse(execution.scheduled_for) <= Date.now()) id = execution.id
    return id === undefined ? [] : [await executions.claim(id, { worker_id }, o)]
  } catch (error) {
    // Another worker was faster, or the key may not search beyond what is listed.
    if (error instanceof PgcueError && ['already_claimed', 'insufficient_scope'].includes(error.code)) return []
    throw error
  }
}

type Answer = { status: number | null; report: Report; ms: number; sent: string; received: string }
type Forwarding = { url: string; secret: string; timeoutMs: number; signal: AbortSignal }

/** @throws CliError if the request cannot be sent at all */
const forward = async (claim: Claim, { url, secret, timeoutMs, signal }: Forwarding): Promise<Answer> => {
  const sent = canonicalJson(JSON.stringify(claim.payload))
  const headers = {
    'content-type': 'application/json',
    // The server may end an idle connection at the moment of the next request, which would fail.
    connection: 'close',
    'user-agent': userAgent,
    ...signHeaders({ secrets: [secret], executionId: claim.execution_id, timestamp: Math.floor(Date.now() / 1000), body: sent }),
    'X-Service-Cue-Id': claim.cue_id,
    'X-Service-Execution-Id': claim.execution_id,
    'X-Service-Scheduled-For': claim.scheduled_for,
    'X-Service-Attempt': String(claim.attempt),
    authorization: `Bearer ${claim.execution_token}`
  }
  const began = performance.now()
  const late = AbortSignal.timeout(timeoutMs)
  const answer = (status: number | null, report: Report, received = '') => ({
    ...{ status, report, sent, received },
    ms: Math.round(performance.now() - began)
  })
  try {
    const response = await fetch(url, { method: 'POST', headers, body: sent, redirect: 'manual', signal: AbortSignal.any([late, signal]) })
    const received = await response.text()
    return answer(response.status, reportOf(response, received, claim.execution_token), received)
  } catch (error) {
    const { cause, message } = error as { cause?: { code?: string; message?: string }; message: string }
    if (late.aborted) return answer(null, failure(`${url}: no response within ${timeoutMs / 1000} s`))
    if (!signal.aborted && (cause === undefined || cause.message === 'bad port'))
      throw new CliError(`Cannot send requests to ${url}: ${cause?.message ?? message}`, exitCodes.usage, 'usage')
    return answer(null, failure(`${url}: ${cause?.code ?? cause?.message ?? message}`))
  }
}

const reportOf = ({ ok, status }: Response, text: string, token: string): Report => {
  const inResponse = ok ? reportIn(text, [token]) : null
  if (inResponse) {
    // The report of a worker has no such member.
    const { result_ref: _, ...report } = parseExactly(inResponse.report) as Report & Evidence
    return report
  }
  const summary = clip(maskSecrets(`HTTP ${status}${text && `: ${text}`}`, [token]))
  return ok ? { success: true, result: summary } : { success: false, error: summary }
}
