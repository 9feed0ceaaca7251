/** The directory as a Citus reference table, while one node after the other is down: what continues, what returns 503, and that nothing is lost. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { cellOfKey } from '../../../src/accounts/keys.ts'
import type { Send } from '../receiver.ts'
import type { Cluster } from './citus.ts'
import { openStage, withDatabase } from './stage.ts'

const downMs = 6000
const patienceMs = 60_000

type Account = { cell: number; email: string; key: string; cue: string }

export const playDirectory = async (cluster: Cluster): Promise<boolean> => {
  await cluster.empty()
  const stage = await openStage({ durable: true, databases: cluster.databases })
  try {
    const faults: string[] = []
    const pools = stage.cells.map(stage.connect)
    await distribute(cluster.databases)
    const { address } = await stage.startReplica(stage.cells, { REGISTER_CELLS: '1,2' })
    const hook = await stage.receive()
    const { call, register, insist } = caller(address)

    const accounts: Account[] = []
    for (let n = 0; accounts.length < 2; n++) {
      const email = `account-${n}@example.com`
      const { status, key } = await register(email)
      if (status !== 201) throw new Error(`registration: ${status}`)
      const cell = cellOfKey(key)!
      if (accounts.some(account => account.cell === cell)) continue
      const { body } = await call('POST', '/v1/cues', key, { name: 'tick', cron: '* * * * * *', callback_url: `${hook.url}/200/0` })
      accounts.push({ cell, email, key, cue: body.id })
      await delay(1100) // the number of accounts per cell is a second old at most
    }
    const statusOf = async ({ key }: Account) => (await call('GET', '/v1/cues', key)).status
    const delivered = (sends: Send[], { cue }: Account, since: number) =>
      sends.filter(send => send.cue_id === cue && send.at > since).length

    const expect = (what: string, got: unknown, ...wanted: unknown[]) => {
      if (!wanted.includes(got)) faults.push(`${what}: ${got}, not ${wanted.join(' or ')}`)
    }
    const figures: Record<string, number> = {}
    for (const [node, down] of [
      ['worker1', 2],
      ['coordinator', 1]
    ] as const) {
      const [lost, alive] = [accounts.find(({ cell }) => cell === down)!, accounts.find(({ cell }) => cell !== down)!]
      const added = `during-${node}@example.com`
      await cluster.node(node, 'stop')
      const since = Date.now()
      expect(`a list in the other cell while ${node} is down`, await statusOf(alive), 200)
      expect(`a list in its own cell while ${node} is down`, await statusOf(lost), 503)
      expect(`registration of a known address of the other cell while ${node} is down`, (await register(alive.email)).status, 409)
      const startedAt = performance.now()
      // Each claim of an address needs every node.
      expect(`registration of a new address while ${node} is down`, (await register(added)).status, 503)
      figures[`refusal_ms_without_${node}`] = Math.round(performance.now() - startedAt)
      await delay(downMs)
      const before = delivered(await hook.sends(), alive, since)
      if (before < downMs / 1000 - 1) faults.push(`${before} deliveries of the other cell in ${downMs} ms while ${node} is down`)
      const backAt = Date.now()
      await cluster.node(node, 'start')
      await insist(`${node} is back`, async () => (await statusOf(lost)) === 200)
      await insist(`registration after ${node} is back`, async () => (await register(added)).status === 201)
      await insist(`deliveries after ${node} is back`, async () => delivered(await hook.sends(), lost, backAt) > 2)
      figures[`recovered_ms_after_${node}`] = Date.now() - backAt
      expect('a second registration of the same address', (await register(added)).status, 409)
    }
    faults.push(...(await compare(pools)))
    console.log(`\ndirectory as a reference table, one node down: ${faults.length > 0 ? `FAILED\n  ${faults.join('\n  ')}` : 'well'}`)
    console.log(JSON.stringify({ scenario: 'directory', figures, faults }))
    return faults.length === 0
  } finally {
    await stage.close()
  }
}

/** As README describes it. */
const distribute = async ([coordinator, ...workers]: readonly string[]) => {
  for (const worker of workers) await withDatabase(worker, 'create schema if not exists cue; drop table if exists cue.directory')
  await withDatabase(coordinator!, `select create_reference_table('cue.directory')`)
}

const caller = (address: string) => {
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  const call = async (method: string, path: string, key?: string, body?: object): Promise<{ status: number; body: any }> => {
    const answer = await fetch(`${address}${path}`, {
      method,
      headers: { ...(key && { authorization: `Bearer ${key}` }), ...(body && { 'content-type': 'application/json' }) },
      signal: AbortSignal.timeout(40_000),
      ...(body && { body: JSON.stringify(body) })
    })
    return { status: answer.status, body: await answer.json() }
  }
  return {
    call,
    register: async (email: string) => {
      const { status, body } = await call('POST', '/v1/auth/register', undefined, { email })
      return { status, key: body.api_key as string }
    },
    insist: async (what: string, done: () => Promise<boolean>) => {
      for (const end = Date.now() + patienceMs; !(await done()); await delay(100))
        if (Date.now() > end) throw new Error(`${what}: not within ${patienceMs / 1000} s`)
    }
  }
}

/** Every address has one account, in the cell that the directory names on each node. */
const compare = async (pools: readonly pg.Pool[]): Promise<string[]> => {
  const faults: string[] = []
  const homes = new Map<string, number>()
  for (const [index, pool] of pools.entries()) {
    const { rows } = await pool.query(
      `select a.email, d.cell from cue.accounts a left join cue.directory d on d.email_hash = cue.email_hash(a.email)`
    )
    for (const { email, cell } of rows) {
      if (homes.has(email)) faults.push(`${email} has two accounts`)
      homes.set(email, index + 1)
      if (cell !== index + 1) faults.push(`${email} of cell ${index + 1}: its directory says ${cell}`)
    }
  }
  return faults
}
