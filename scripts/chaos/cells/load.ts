/** What users do while their cell moves, and whether all of it is there afterwards. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { hashKey } from '../../../src/accounts/keys.ts'
import { createToken } from '../../../src/accounts/sessions.ts'
import { call, insist } from '../../stage/client.ts'
import { quantile, sorted } from '../../stage/figures.ts'
import type { Stage } from '../../stage/stage.ts'
import { createCallers } from '../callers.ts'
import { startTicks } from '../ticks.ts'

type Options = {
  /** Of replicas that serve all cells; calls alternate between them. */
  addresses: string[]
  /** Of cell 2, where it is at first, and where new accounts are created. */
  pool: pg.Pool
  accounts: number
  /** Of each account; every third is refused once by its receiver. */
  cues: number
}

export const startLoad = async ({ receiver, connect }: Stage, { addresses, pool, accounts, cues }: Options) => {
  let calls = 0
  const address = () => addresses[calls++ % addresses.length]!
  /** As a client that takes 503 for "again, later". Every other answer is final. */
  const must = (status: number, method: string, path: string, key?: string, body?: object) =>
    insist(status, address(), method, path, key, body)

  const callers = await createCallers(addresses[0]!, ['create'])
  const key = callers.api_key
  const api_keys = [key]
  while (api_keys.length < accounts) api_keys.push((await createCallers(address(), [])).api_key)
  const hook = receiver.url
  const ticks = await startTicks({ address: addresses[0]!, api_keys, count: accounts * cues, hook }, ['/200/20', '/200/80', '/500/50'])
  await pool.query("update cue.cues set retry_backoff_minutes = '{0.005}'")
  const edited = (await must(201, 'POST', '/v1/cues', key, { name: 'edited', cron: '@yearly', worker: true })).id
  const work = { name: 'worked', cron: '* * * * * *', worker: true, payload: { task: 'work' } }
  const worked = (await must(201, 'POST', '/v1/cues', key, work)).id
  const { rows } = await pool.query('select account_id as id from cue.api_keys where key_hash = $1', [hashKey(key)])
  const tokens = Array.from({ length: 100 }, () => createToken(2))
  for (const token of tokens) await pool.query('select cue.insert_session_token($1, $2, now())', [rows[0].id, hashKey(token)])

  const wrong: string[] = []
  const acknowledged = { edit: 0, codes: [] as string[], outcomes: [] as string[], sessions: 0 }
  const latencies: number[] = []
  let [longestGapMs, refusals, editedAt, isStopping] = [0, 0, performance.now(), false]
  const repeat = async (everyMs: number, work: (n: number) => Promise<unknown>) => {
    for (let n = 1; !isStopping; n++) {
      await work(n).catch(error => wrong.push(error.message))
      await delay(everyMs)
    }
  }
  const edit = async (n: number) => {
    const { status, ms } = await call(address(), 'PATCH', `/v1/cues/${edited}`, key, { description: String(n) })
    if (status === 503) refusals++
    if (status !== 200) return
    latencies.push(ms)
    longestGapMs = Math.max(longestGapMs, performance.now() - editedAt)
    editedAt = performance.now()
    acknowledged.edit = n
  }
  const signIn = async (n: number) => {
    const device_code = `moving-${n}-${Date.now()}`
    await must(201, 'POST', '/v1/auth/device-code', '', { device_code })
    acknowledged.codes.push(device_code)
    const token = tokens.pop()
    if (token) await must(200, 'POST', '/v1/auth/session', '', { token })
    acknowledged.sessions += token ? 1 : 0
  }
  const claim = async () => {
    const { status, body } = await call(address(), 'POST', '/v1/executions/claim', key, { worker_id: 'w1', tasks: ['work'], wait: 1 })
    if (status !== 200) return // nothing to claim, or unavailable
    const { execution_id } = body
    // Repeated without an answer, an outcome may be there already.
    await must(200, 'POST', `/v1/executions/${execution_id}/outcome`, key, { success: true, result: execution_id }).catch(error => {
      if (!error.message.includes('outcome_already_reported')) throw error
    })
    acknowledged.outcomes.push(execution_id)
  }
  const loops = [repeat(20, edit), repeat(200, signIn), repeat(10, claim)]
  for (const replica of addresses) callers.enter(replica)

  return {
    /** The longest time between two acknowledged edits since this was last asked. */
    longestGap: () => {
      const ms = Math.round(longestGapMs)
      longestGapMs = 0
      return ms
    },

    /** Ends it, and compares what was acknowledged with the database where the cell is now. */
    stop: async (databaseUrl: string) => {
      isStopping = true
      await Promise.all(loops)
      const [made, ticked] = [await callers.stop(databaseUrl), await ticks.stop(databaseUrl, receiver.sends)]
      wrong.push(...made.faults, ...ticked.faults)
      const { description } = await must(200, 'GET', `/v1/cues/${edited}`, key)
      if (!(Number(description) >= acknowledged.edit)) wrong.push(`edit ${acknowledged.edit} is lost: ${description}`)
      for (const device_code of acknowledged.codes) {
        const { status } = await must(200, 'POST', '/v1/auth/device-code/poll', '', { device_code })
        if (status !== 'pending') wrong.push(`a device code is ${status}`)
      }
      for (const token of tokens.slice(0, 5)) await must(200, 'POST', '/v1/auth/session', '', { token })
      const { rows } = await connect(databaseUrl).query(
        'select id, scheduled_for::text as slot, outcome_success and result = id::text as is_reported from cue.executions where cue_id = $1',
        [worked]
      )
      const reported = new Set(rows.filter(row => row.is_reported).map(({ id }) => id))
      const unreported = acknowledged.outcomes.filter(id => !reported.has(id))
      if (unreported.length > 0) wrong.push(`${unreported.length} acknowledged outcomes are lost`)
      const twice = acknowledged.outcomes.length - new Set(acknowledged.outcomes).size
      if (twice > 0) wrong.push(`${twice} executions were claimed twice`)
      if (new Set(rows.map(({ slot }) => slot)).size !== rows.length) wrong.push('a slot of the worker is there twice')
      const figures = {
        slots: ticked.figures.slots,
        sends: (await receiver.sends()).length,
        edits: acknowledged.edit,
        cues: callers.answers.filter(({ status }) => status === 201).length,
        sign_ins: acknowledged.codes.length + acknowledged.sessions,
        outcomes: acknowledged.outcomes.length,
        refusals,
        write_p50_ms: Math.round(quantile(sorted(latencies), 0.5))
      }
      return { figures, wrong }
    }
  }
}
