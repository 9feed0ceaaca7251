import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { Hono } from 'hono'
import t, { type Test } from 'tap'
import { type Outcome, type Serve, type ServeOptions, serve } from '../../src/client/serve.ts'
import { signHeaders } from '../../src/deliveries/signature.ts'
import { eventually } from '../support/eventually.ts'

const secret = `whsec_${'a'.repeat(64)}`

type Sent = { secrets?: string[]; executionId?: string; age?: number; headers?: Record<string, string | undefined>; body?: string }

/** The request of a delivery. */
const signed = (payload: unknown, { secrets = [secret], executionId = randomUUID(), age = 0, headers = {}, body }: Sent = {}) => {
  const text = JSON.stringify(payload)
  const signature = signHeaders({ secrets, executionId, timestamp: Math.floor(Date.now() / 1000) - age, body: text })
  const all = {
    'content-type': 'application/json',
    ...signature,
    'X-Service-Execution-Id': executionId,
    'X-Service-Cue-Id': 'cue_000000000001',
    'X-Service-Scheduled-For': '2030-01-15T09:00:00.000Z',
    'X-Service-Attempt': '1',
    Authorization: 'Bearer token-of-the-execution',
    ...headers
  }
  return { method: 'POST', headers: JSON.parse(JSON.stringify(all)) as Record<string, string>, body: body ?? text }
}

const listening = async (t: Test, server: Server) => {
  if (!server.listening) server.listen(0, '127.0.0.1')
  if (!server.listening) await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
}

const fastify = async (t: Test, prepare: (app: ReturnType<typeof Fastify>) => void) => {
  const app = Fastify()
  prepare(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/hook`
}

// biome-ignore lint/suspicious/noExplicitAny: it has no types here
const express = async (): Promise<any> => (await import('express' as string)).default

const servers: Record<string, (t: Test, hook: Serve) => Promise<string>> = {
  'node:http': (t, hook) => listening(t, createServer(hook.node)),
  Express: async (t, hook) => listening(t, createServer((await express())().post('/hook', hook.node))),
  'Express with a raw parser': async (t, hook) => {
    const make = await express()
    return listening(t, createServer(make().post('/hook', make.raw({ type: '*/*', limit: '2mb' }), hook.node)))
  },
  Fastify: (t, hook) =>
    fastify(t, app => {
      app.addContentTypeParser(
        'application/json',
        { parseAs: 'buffer' },
        (_request: unknown, body: Buffer, done: (error: null, body: Buffer) => void) => done(null, body)
      )
      app.post('/hook', hook.node)
    }),
  'Fastify before its parser': (t, hook) => fastify(t, app => app.post('/hook', { onRequest: hook.node }, () => {})),
  Hono: (t, hook) => {
    const app = new Hono()
    app.post('/hook', context => hook(context.req.raw))
    return listening(
      t,
      createServer(async (request, response) => {
        const headers = request.headers as Record<string, string>
        const answer = await app.fetch(
          new Request('http://localhost/hook', { method: 'POST', headers, body: request as never, duplex: 'half' } as RequestInit)
        )
        response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
      })
    )
  }
}

for (const [name, start] of Object.entries(servers)) {
  t.test(`receives webhooks in ${name}`, async t => {
    const runs: unknown[] = []
    const hook = serve({
      secret,
      tasks: {
        report: ({ signal, ...execution }) => {
          runs.push(execution)
          return { success: true, result: `${execution.payload.rows} rows`, metadata: { aborted: signal.aborted } }
        }
      }
    })
    const url = await start(t, hook)
    const executionId = randomUUID()
    // A megabyte, spread over many chunks, with characters of several bytes.
    const payload = { task: 'report', rows: 3, text: 'ö€😀'.repeat(100_000) }
    const accepted = await fetch(url, signed(payload, { executionId }))
    t.strictSame(
      [accepted.status, accepted.headers.get('content-type'), await accepted.json()],
      [200, 'application/json', { success: true, result: '3 rows', metadata: { aborted: false } }]
    )
    const execution = {
      executionId,
      cueId: 'cue_000000000001',
      task: 'report',
      payload,
      attempt: 1,
      scheduledFor: '2030-01-15T09:00:00.000Z'
    }
    t.strictSame(runs, [{ ...execution, token: 'token-of-the-execution' }])
    const refused = await fetch(url, signed({ task: 'report' }, { body: '{"task":"other"}' }))
    t.strictSame([refused.status, codeIn(await refused.json())], [401, 'wrong_signature'])
    const unknown = await fetch(url, signed({ task: 'other' }))
    const message = 'Nothing here handles the task "other": add it, or the task "*" for all others.'
    t.strictSame([unknown.status, await unknown.json()], [404, { error: { code: 'unknown_task', message } }])
  })
}

// biome-ignore lint/suspicious/noExplicitAny: any response
const codeIn = (body: any): string => body.error.code

const call = (options: Partial<ServeOptions>) => {
  const hook = serve({ secret, tasks: {}, ...options })
  return async (payload: unknown, sent?: Sent) => {
    const response = await hook(new Request('http://localhost/', signed(payload, sent)))
    return response.status === 200 ? response.json() : [response.status, codeIn(await response.json())]
  }
}

t.test('other webhooks of the service, and payloads without a task, need *', async t => {
  const tasks = { report: () => ({ success: true }) }
  const unknown = [404, 'unknown_task']
  for (const payload of [{}, { task: 7 }, { task: 'toString' }, [], 'report', null])
    t.strictSame(await call({ tasks })(payload), unknown, JSON.stringify(payload))
  const send = call({ tasks: { '*': () => ({ success: true, result: 'any' }) } })
  t.strictSame(await send(null), { success: true, result: 'any' })
  t.strictSame(
    await send({ event: 'cue.failed' }, { headers: { 'X-Service-Event': 'cue.failed', 'X-Service-Execution-Id': undefined } }),
    unknown
  )
})

t.test('what is not an outcome is a failure with the reason', async t => {
  const circular: Record<string, unknown> = { success: true }
  circular.self = circular
  const reasons: [unknown, RegExp][] = [
    [undefined, /^the task returned undefined instead of an outcome/],
    [true, /^the task returned true instead of an outcome/],
    [{ result: 'ok' }, /^the task returned {"result":"ok"} instead/],
    [{ success: 'yes' }, /^the task returned {"success":"yes"} instead/],
    [circular, /^TypeError: Converting circular structure/],
    [{ success: true, metadata: 1n }, /^TypeError: /],
    [{ success: true, result: 'x'.repeat(70_000) }, /^the outcome has more than 64000 bytes$/]
  ]
  for (const [value, reason] of reasons) {
    const outcome = (await call({ tasks: { x: () => value as never } })({ task: 'x' })) as Outcome
    t.equal(outcome.success, false)
    t.ok(reason.test(outcome.error ?? ''), outcome.error ?? 'no error')
  }
  for (const [thrown, error] of [
    [new RangeError('out of paper'), 'RangeError: out of paper'],
    ['paper', 'the task threw paper'],
    [new Error(`\0\ud800${'😀'.repeat(3000)}`), `Error: \ufffd\ufffd${'😀'.repeat(1991)}`]
  ] as const) {
    const fail = async () => {
      throw thrown
    }
    t.strictSame(await call({ tasks: { x: fail } })({ task: 'x' }), { success: false, error })
  }
})

t.test('a task that does not return in time has failed, and its signal is aborted', async t => {
  const signals: AbortSignal[] = []
  const tasks = {
    x: ({ signal }: { signal: AbortSignal }) => {
      signals.push(signal)
      return new Promise<never>(() => {})
    }
  }
  t.strictSame(await call({ tasks, timeoutMs: 50 })({ task: 'x' }), { success: false, error: 'timed out after 0.05 s' })
  t.equal(signals[0]!.aborted, true)
})

t.test('runs an execution once, also while it runs, and gives each delivery its outcome', async t => {
  const ids: string[] = []
  let finish = () => {}
  const send = call({
    tasks: {
      slow: async ({ executionId }) => {
        ids.push(executionId)
        await new Promise<void>(resolve => {
          finish = resolve
        })
        return { success: true, result: String(ids.length) }
      }
    }
  })
  const executionId = randomUUID()
  const first = send({ task: 'slow' }, { executionId })
  await eventually(() => ids.length === 1)
  const second = send({ task: 'slow' }, { executionId })
  finish()
  t.strictSame([await first, await second, await send({ task: 'slow' }, { executionId })], Array(3).fill({ success: true, result: '1' }))
  const other = send({ task: 'slow' })
  await eventually(() => ids.length === 2)
  finish()
  t.strictSame(await other, { success: true, result: '2' })
})

t.test('a body that was parsed before is a server error, and says so in the log', async t => {
  const logged = t.capture(console, 'error', () => {})
  const make = await express()
  const hook = serve({ secret, tasks: { '*': () => ({ success: true }) } })
  const url = await listening(t, createServer(make().use(make.json()).post('/hook', hook.node)))
  t.equal((await fetch(url, signed({ task: 'x' }))).status, 500)
  t.match(String(logged()[0]!.args[1]), /mount serve before express\.json\(\)/)
})
