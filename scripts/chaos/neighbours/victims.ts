/** Well-behaved accounts, each with a webhook cue every second and occasional API calls, whose latency is measured. */
import { setTimeout as delay } from 'node:timers/promises'
import { call, insist } from '../../stage/client.ts'
import type { Account } from '../../stage/seed.ts'

/** An API call. Instants in epoch milliseconds. */
type Call = { at: number; ms: number; status: number }

const callEveryMs = 50
const job = { name: 'made', cron: '0 9 1 1 *', worker: true }

export const startVictims = async (address: string, accounts: Account[], hook: string) => {
  const calls: Call[] = []
  const underWay = new Set<Promise<unknown>>()
  let isStopped = false
  const measure = async (...args: [string, string, string, object?]) => {
    const at = Date.now()
    const { status, ms, body } = await call(address, ...args)
    // There may be nothing to claim.
    calls.push({ at, ms, status: status === 409 ? 200 : status })
    return body
  }
  const cues = new Map<Account, string>()
  for (const account of accounts) {
    const cue = { name: 'every second', cron: '* * * * * *', callback_url: `${hook}/hook`, payload: { of: 'a neighbour' } }
    cues.set(account, (await insist(201, address, 'POST', '/v1/cues', account.api_key, cue)).id)
  }
  /** The calls of an account, in turn. */
  const kinds = [
    (account: Account) => measure('GET', `/v1/cues/${cues.get(account)}`, account.api_key),
    (account: Account) => measure('GET', '/v1/executions?limit=10', account.api_key),
    (account: Account) => measure('POST', '/v1/executions/claim', account.api_key, { worker_id: 'victim' }),
    async ({ api_key }: Account) => {
      const { id } = await measure('POST', '/v1/cues', api_key, job)
      if (id) await call(address, 'DELETE', `/v1/cues/${id}`, api_key)
    }
  ]
  const run = async () => {
    for (let n = 0; !isStopped; n++) {
      const calling = kinds[Math.floor(n / accounts.length) % kinds.length]!(accounts[n % accounts.length]!)
      underWay.add(calling)
      void calling.finally(() => underWay.delete(calling))
      await delay(callEveryMs)
    }
  }
  void run()
  return {
    calls,
    stop: async () => {
      isStopped = true
      await Promise.all([...underWay])
    }
  }
}
