/** `client.worker`: the loop itself is tested with `pgcue worker`. */
import { spawn } from 'node:child_process'
import t, { type Test } from 'tap'
import type { WorkerOptions } from '../../src/client/index.ts'
import { Report } from '../../src/outcomes/schemas.ts'
import { eventually } from '../support/setup.ts'
import { workerStage } from '../support/worker-stage.ts'

const members = Object.keys(Report.properties)

const setup = async (t: Test) => {
  const stage = await workerStage(t)
  const work = (options: WorkerOptions) => {
    const stop = new AbortController()
    const done = stage.client.worker({ signal: stop.signal, drainMs: 0, log: () => {}, ...options })
    t.teardown(() => {
      stop.abort()
      return done.catch(() => {})
    })
    return { done, stop: () => stop.abort() }
  }
  const ended = (id: string) =>
    eventually(async () => {
      const execution = await stage.client.executions.get(id)
      return execution.outcome === null ? undefined : execution
    }, 20_000)
  return { ...stage, work, ended }
}

t.test('runs tasks and reports what they return, throw, or fail to return', async t => {
  const { execution, work, ended, client } = await setup(t)
  const seen: unknown[] = []
  const { done, stop } = work({
    concurrency: 5,
    timeoutMs: 300,
    tasks: {
      job: ({ signal, token, ...rest }) => {
        seen.push(rest)
        return { success: true, result: 'done', external_id: '42', metadata: { token: token.slice(0, 9), aborted: signal.aborted } }
      },
      throws: async () => {
        throw new Error('no paper')
      },
      nothing: (() => {}) as never,
      odd: () => ({ success: true, unknown: 1 }) as never,
      hangs: () => new Promise(() => {})
    }
  })
  const id = await execution({ payload: { task: 'job', rows: 3 } })
  const { outcome, cue_id, scheduled_for, claimed_by_worker } = await ended(id)
  t.strictSame(
    [outcome?.success, outcome?.result, outcome?.external_id, outcome?.metadata],
    [true, 'done', '42', { token: 'svc_sk_x_', aborted: false }]
  )
  t.strictSame(seen, [
    { executionId: id, cueId: cue_id, task: 'job', payload: { task: 'job', rows: 3 }, attempt: 1, scheduledFor: scheduled_for }
  ])
  t.match(claimed_by_worker, /^worker-[0-9a-f-]{36}$/)
  for (const [task, error] of [
    ['throws', 'Error: no paper'],
    ['nothing', 'the task returned undefined instead of an outcome, such as { success: true }'],
    ['odd', `report rejected: unknown: Unknown field. Allowed: ${members.join(', ')}`],
    ['hangs', 'timed out after 0.3 s']
  ]) {
    const { outcome } = await ended(await execution({ payload: { task } }))
    t.strictSame([outcome?.success, outcome?.error], [false, error])
  }
  stop()
  await done
  t.equal((await client.workers.list()).total, 0, 'a worker that has stopped is removed')
})

t.test('drains when the signal is aborted, then releases the rest', async t => {
  const { execution, work, client } = await setup(t)
  const running: string[] = []
  let finish = () => {}
  const tasks = {
    ends: async ({ executionId }: { executionId: string }) => {
      running.push(executionId)
      await new Promise<void>(resolve => {
        finish = resolve
      })
      return { success: true }
    },
    hangs: ({ executionId, signal }: { executionId: string; signal: AbortSignal }) => {
      running.push(executionId)
      signal.addEventListener('abort', () => running.push('aborted'))
      return new Promise<never>(() => {})
    }
  }
  const { done, stop } = work({ tasks, concurrency: 2, drainMs: 1000 })
  const [ends, hangs] = [await execution({ payload: { task: 'ends' } }), await execution({ payload: { task: 'hangs' } })]
  await eventually(() => running.length === 2)
  stop()
  finish()
  await done
  t.strictSame([running.at(-1), (await client.executions.get(ends)).status], ['aborted', 'success'])
  const { status, claimed_by_worker } = await client.executions.get(hangs)
  t.strictSame([status, claimed_by_worker], ['pending', null])
})

t.test('aborts a task whose claim is lost, and reports nothing', async t => {
  const { execution, work, client, pool } = await setup(t)
  const { promise, resolve } = Promise.withResolvers<string>()
  const tasks = {
    job: ({ executionId, signal }: { executionId: string; signal: AbortSignal }) => {
      signal.addEventListener('abort', () => resolve(executionId))
      return new Promise<never>(() => {})
    }
  }
  work({ tasks, leaseMs: 50 })
  const id = await execution()
  await eventually(async () => (await client.executions.get(id)).status === 'delivering')
  await pool.query('update cue.executions set claim_token = gen_random_uuid() where id = $1', [id])
  t.equal(await promise, id)
  t.equal((await client.executions.get(id)).outcome, null)
})

t.test('rejects with an invalid key, and for settings that make no sense', async t => {
  const { client, account, connect } = await setup(t)
  const tasks = { job: () => ({ success: true }) }
  await t.rejects(connect({ apiKey: `${account.api_key}x` }).worker({ tasks }), { code: 'invalid_api_key' })
  for (const options of [{ tasks: {} }, { tasks, concurrency: 0 }, { tasks, concurrency: 1.5 }, { tasks, timeoutMs: 2 ** 31 }])
    await t.rejects(client.worker(options), TypeError)
})

const program = `
  import { createClient } from '${new URL('../../src/client/index.ts', import.meta.url)}'
  const client = createClient({ baseUrl: process.env.PGCUE_BASE_URL, apiKey: process.env.PGCUE_API_KEY })
  await client.worker({
    workerId: 'w1',
    concurrency: 10,
    tasks: { job: async () => { console.log('.'); await new Promise(resolve => setTimeout(resolve, 20)); return { success: true } } }
  })
`

t.test('nothing is lost when a worker is killed at work', async t => {
  const { client, baseUrl, account } = await setup(t)
  const cue = await client.cues.create({ name: 'a job', cron: '@yearly', worker: true, payload: { task: 'job' } })
  await Promise.all(Array.from({ length: 10 }, () => client.cues.fire(cue.id)))
  const start = () => {
    const env = { ...process.env, PGCUE_BASE_URL: baseUrl, PGCUE_API_KEY: account.api_key }
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    return child
  }
  const killed = start()
  await new Promise(resolve => killed.stdout.once('data', resolve))
  killed.kill('SIGKILL')
  start()
  await eventually(async () => (await client.executions.list({ status: 'success', limit: 1 })).total === 10, 30_000)
})
