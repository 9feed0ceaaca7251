/** Well-behaved accounts, each with a webhook cue every second and occasional API calls. Their lateness and latency are measured. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Account } from '../../bench/cues.ts'

/** An API call. Instants in epoch milliseconds. */
export type Call = { name: string; at: number; ms: number; status: number }

type Options = { url: string; accounts: Account[]; hook: string }

const callEveryMs = 50
const callLimitMs = 30_000

export const createVictims = ({ url, accounts, hook }: Options) => {
  const calls: Call[] = []
  const underWay = new Set<Promise<void>>()
  let stopped = false

  const request = async (account: Account, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${account.api_key}`, ...(body && { 'content-type': 'application/json' }) }
    const init = { method, headers, signal: AbortSignal.timeout(callLimitMs), ...(body && { body: JSON.stringify(body) }) }
    const response = await fetch(url + path, init)
    return { status: response.status, body: (response.status === 204 ? null : await response.json()) as { id: string } | null }
  }

  const measured = async (name: string, call: () => Promise<{ status: number }>) => {
    const at = Date.now()
    const startedAt = performance.now()
    const status = await call().then(
      answer => answer.status,
      () => 0
    )
    calls.push({ name, at, ms: performance.now() - startedAt, status })
  }

  const cueIds: string[] = []
  /** The calls of an account, in turn: read its cue, create another, fire and claim one, list executions. */
  const turn = async (n: number) => {
    const account = accounts[n % accounts.length]!
    const id = cueIds[n % accounts.length]!
    const kind = Math.floor(n / accounts.length) % 4
    if (kind === 0) return measured('read', () => request(account, 'GET', `/v1/cues/${id}`))
    if (kind === 1) return measured('list', () => request(account, 'GET', '/v1/executions?limit=10'))
    if (kind === 2)
      return measured('claim', () => request(account, 'POST', '/v1/executions/claim', { worker_id: 'victim' }).then(accept409))
    let made: string | undefined
    await measured('create', async () => {
      const answer = await request(account, 'POST', '/v1/cues', { name: 'made', cron: '0 9 1 1 *', worker: true })
      made = answer.body?.id
      return answer
    })
    if (made) await request(account, 'DELETE', `/v1/cues/${made}`).catch(() => {})
  }

  /** There may be nothing to claim. */
  const accept409 = (answer: { status: number }) => (answer.status === 409 ? { status: 200 } : answer)

  const run = async () => {
    for (let n = 0; !stopped; n++) {
      const call = turn(n)
      underWay.add(call)
      void call.finally(() => underWay.delete(call)).catch(() => {})
      await delay(callEveryMs)
    }
  }

  return {
    calls,
    start: async () => {
      for (const account of accounts) {
        const cue = { name: 'every second', cron: '* * * * * *', callback_url: `${hook}/hook`, payload: { of: 'a neighbour' } }
        const { status, body } = await request(account, 'POST', '/v1/cues', cue)
        if (status !== 201) throw new Error(`a victim's cue is refused: ${JSON.stringify(body)}`)
        cueIds.push(body!.id)
      }
      void run()
    },
    stop: async () => {
      stopped = true
      await Promise.allSettled([...underWay])
    }
  }
}
