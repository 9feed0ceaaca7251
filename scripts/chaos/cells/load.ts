/** What users do while their cell moves, and whether all of it is there afterwards. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { hashKey } from '../../../src/accounts/keys.ts'
import { createToken } from '../../../src/accounts/sessions.ts'
import { quantile } from '../../bench/figures.ts'
import type { Send } from '../receiver.ts'

type Options = {
  /** Of replicas that serve all cells; calls alternate between them. */
  addresses: string[]
  /** Of the cell, where it is at first. */
  pool: pg.Pool
  cell: number
  accounts: number
  /** Of each account; every third is refused once by its receiver. */
  cues: number
  hook: string
}

type Account = { id: string; api_key: string }
// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Answer = { status: number; body: any }

const patienceMs = 60_000

const createCall = (addresses: string[]) => {
  let calls = 0
  /** Null: no answer. */
  return async (method: string, path: string, key?: string, body?: object): Promise<Answer | null> => {
    const address = addresses[calls++ % addresses.length]
    try {
      const answer = await fetch(`${address}${path}`, {
        method,
        headers: { ...(key && { authorization: `Bearer ${key}` }), ...(body && { 'content-type': 'application/json' }) },
        signal: AbortSignal.timeout(20_000),
        ...(body && { body: JSON.stringify(body) })
      })
      return { status: answer.status, body: await answer.json().catch(() => null) }
    } catch {
      return null
    }
  }
}

/** Registers accounts, which must be made in the cell, and begins. */
export const startLoad = async ({ addresses, pool, cell, accounts: count, cues, hook }: Options) => {
  const call = createCall(addresses)
  /** As a client that takes 503 for "again, later". Every other answer is final. */
  const insist = async (...args: Parameters<typeof call>): Promise<Answer> => {
    for (const end = Date.now() + patienceMs; ; await delay(50)) {
      const answer = await call(...args)
      if (answer && answer.status !== 503) return answer
      if (Date.now() > end) throw new Error(`${args[0]} ${args[1]}: no success within ${patienceMs / 1000} s`)
    }
  }
  const must = async (status: number, ...args: Parameters<typeof call>) => {
    const answer = await insist(...args)
    if (answer.status !== status) throw new Error(`${args[0]} ${args[1]}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  const accounts: Account[] = []
  for (let n = 0; n < count; n++) {
    const { api_key } = await must(201, 'POST', '/v1/auth/register', undefined, { email: `moved-${n}-${Date.now()}@example.com` })
    const { id } = (await pool.query('select account_id as id from cue.api_keys where key_hash = $1', [hashKey(api_key)])).rows[0]
    accounts.push({ id, api_key })
  }
  const ticking: string[] = []
  for (const [n, { api_key }] of Array.from({ length: count * cues }, (_, n) => [n, accounts[n % count]!] as const)) {
    const callback_url = `${hook}/${n % 3 === 2 ? 500 : 200}/${20 + (n % 5) * 30}`
    ticking.push((await must(201, 'POST', '/v1/cues', api_key, { name: 'tick', cron: '* * * * * *', callback_url })).id)
  }
  await pool.query("update cue.cues set retry_backoff_minutes = '{0.005}'")
  const [owner] = accounts as [Account]
  const edited: string = (await must(201, 'POST', '/v1/cues', owner.api_key, { name: 'edited', cron: '@yearly', worker: true })).id
  const worked: string = (
    await must(201, 'POST', '/v1/cues', owner.api_key, {
      name: 'worked',
      cron: '* * * * * *',
      transport: 'worker',
      payload: { task: 'work' }
    })
  ).id
  const tokens = Array.from({ length: 100 }, () => createToken(cell))
  for (const token of tokens) await pool.query('select cue.insert_session_token($1, $2, now())', [owner.id, hashKey(token)])

  const wrong: string[] = []
  const acknowledged = { edit: 0, cues: [] as string[], codes: [] as string[], outcomes: [] as string[], sessions: 0 }
  const latencies: number[] = []
  let longestGapMs = 0
  let refusals = 0
  let stopping = false
  const loop = async (everyMs: number, work: (n: number) => Promise<unknown>) => {
    for (let n = 1; !stopping; n++) {
      await work(n).catch(error => wrong.push(error.message))
      await delay(everyMs)
    }
  }

  let editedAt = performance.now()
  const loops = [
    loop(20, async n => {
      const startedAt = performance.now()
      const answer = await call('PATCH', `/v1/cues/${edited}`, owner.api_key, { description: String(n) })
      if (answer?.status === 503) refusals++
      if (answer?.status !== 200) return
      latencies.push(performance.now() - startedAt)
      longestGapMs = Math.max(longestGapMs, performance.now() - editedAt)
      editedAt = performance.now()
      acknowledged.edit = n
    }),
    loop(100, async n => {
      const { id } = await must(201, 'POST', '/v1/cues', accounts[n % count]!.api_key, { name: `made ${n}`, cron: '@yearly', worker: true })
      acknowledged.cues.push(id)
    }),
    loop(200, async n => {
      const device_code = `moving-${n}-${Date.now()}`
      await must(201, 'POST', '/v1/auth/device-code', undefined, { device_code })
      acknowledged.codes.push(device_code)
      const token = tokens.pop()
      if (token) await must(200, 'POST', '/v1/auth/session', undefined, { token })
      acknowledged.sessions += token ? 1 : 0
    }),
    loop(10, async () => {
      const { status, body } = await insist('POST', '/v1/executions/claim', owner.api_key, { worker_id: 'w1', tasks: ['work'], wait: 1 })
      if (status === 409) return
      const { execution_id } = body
      const report = { success: true, result: execution_id }
      const reported = await insist('POST', `/v1/executions/${execution_id}/outcome`, owner.api_key, report)
      if (reported.status === 200 || reported.body.error.code === 'outcome_already_reported') acknowledged.outcomes.push(execution_id)
      else wrong.push(`outcome: ${reported.status} ${JSON.stringify(reported.body)}`)
    })
  ]

  return {
    /** The longest time between two acknowledged edits since this was last asked. */
    longestGap: () => {
      const ms = Math.round(longestGapMs)
      longestGapMs = 0
      return ms
    },
    /** Ends it, and compares what was acknowledged with what is there. `where` is the cell where it is now. */
    stop: async (where: pg.Pool, sends: () => Promise<Send[]>) => {
      stopping = true
      await Promise.all(loops)
      for (const [n, id] of [...ticking, worked].entries())
        await must(200, 'PATCH', `/v1/cues/${id}`, id === worked ? owner.api_key : accounts[n % count]!.api_key, { status: 'paused' })
      await settle(where, ticking)

      const { rows: found } = await where.query(
        'select id, cue_id, floor(extract(epoch from scheduled_for) * 1000)::float8 as slot, status, outcome_success, result from cue.executions'
      )
      const requests = await sends()
      const slots = judgeSlots(ticking, found, requests, wrong)
      const { body } = await insist('GET', `/v1/cues/${edited}`, owner.api_key)
      if (!(Number(body.description) >= acknowledged.edit)) wrong.push(`edit ${acknowledged.edit} is lost: ${body.description}`)
      const { rows: made } = await where.query('select id from cue.cues')
      const ids = new Set(made.map(({ id }) => id))
      const lost = acknowledged.cues.filter(id => !ids.has(id))
      if (lost.length > 0) wrong.push(`${lost.length} acknowledged cues are lost`)
      for (const device_code of acknowledged.codes) {
        const { body } = await insist('POST', '/v1/auth/device-code/poll', undefined, { device_code })
        if (body.status !== 'pending') wrong.push(`a device code is ${body.status}`)
      }
      for (const token of tokens.slice(0, 5)) await must(200, 'POST', '/v1/auth/session', undefined, { token })
      const reported = new Set(found.filter(row => row.outcome_success && row.result === row.id).map(({ id }) => id))
      const unreported = acknowledged.outcomes.filter(id => !reported.has(id))
      if (unreported.length > 0) wrong.push(`${unreported.length} acknowledged outcomes are lost`)
      const twice = acknowledged.outcomes.length - new Set(acknowledged.outcomes).size
      if (twice > 0) wrong.push(`${twice} executions were claimed twice`)
      const worker = found.filter(row => row.cue_id === worked)
      if (new Set(worker.map(({ slot }) => slot)).size !== worker.length) wrong.push('a slot of the worker is there twice')
      latencies.sort((a, b) => a - b)
      const figures = {
        slots,
        sends: requests.length,
        edits: acknowledged.edit,
        cues: acknowledged.cues.length,
        sign_ins: acknowledged.codes.length + acknowledged.sessions,
        outcomes: acknowledged.outcomes.length,
        refusals,
        write_p50_ms: Math.round(quantile(latencies, 0.5))
      }
      return { figures, wrong }
    }
  }
}

type Row = { id: string; cue_id: string; slot: number; status: string }

/** Every second has its slot, its one execution and its one delivery; a refused one a second request. */
const judgeSlots = (ticking: string[], found: Row[], sends: Send[], wrong: string[]): number => {
  const keyOf = (cue: string, slot: number) => `${cue} ${slot}`
  const executions = Map.groupBy(found, row => keyOf(row.cue_id, row.slot))
  const requests = Map.groupBy(sends, send => keyOf(send.cue_id, send.scheduled_for))
  let slots = 0
  for (const cue of ticking) {
    const own = found.filter(row => row.cue_id === cue).map(({ slot }) => slot)
    const [first, last] = [Math.min(...own), Math.max(...own)]
    for (let slot = first; slot <= last; slot += 1000) {
      slots++
      const rows = executions.get(keyOf(cue, slot)) ?? []
      const sent = requests.get(keyOf(cue, slot)) ?? []
      const delivered = sent.filter(({ status }) => status === 200).length
      const refused = sent.filter(({ status }) => status === 500).length
      const name = `slot ${new Date(slot).toISOString()} of ${cue}`
      if (rows.length !== 1) wrong.push(`${name} has ${rows.length} executions`)
      else if (rows[0]!.status !== 'success') wrong.push(`${name} is ${rows[0]!.status}`)
      if (delivered !== 1 || sent.length !== 1 + refused) wrong.push(`${name} was sent ${sent.length} times, ${delivered} with success`)
    }
  }
  const known = new Set([...executions.keys()])
  const unknown = [...requests].filter(([key]) => !known.has(key)).length
  if (unknown > 0) wrong.push(`${unknown} slots were sent that the cell does not know`)
  return slots
}

const settle = async (pool: pg.Pool, ticking: string[]) => {
  for (const end = Date.now() + patienceMs; ; await delay(100)) {
    const { rows } = await pool.query('select count(*)::int as open from cue.executions where cue_id = any ($1) and ended_at is null', [
      ticking
    ])
    if (rows[0].open === 0) return
    if (Date.now() > end) throw new Error(`${rows[0].open} deliveries do not end`)
  }
}
