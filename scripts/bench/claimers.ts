/** Fifty workers claim the same executions over HTTP from three replicas; counts executions claimed twice. */

import type pg from 'pg'
import { Pool } from 'undici'
import type { Account } from './cues.ts'

const claimerCount = 50
/** Executions contended for at a time. */
const front = 5

type Options = { pool: pg.Pool; account: Account; urls: string[]; ids: string[]; attempts: number }

/** Makes claim attempts, most of them by id, the others for the next execution. Each execution may be claimed once. */
export const fightForClaims = async ({ pool, account, urls, ids, attempts }: Options) => {
  const replicas = urls.map(url => new Pool(url, { connections: Math.ceil(claimerCount / urls.length), pipelining: 1 }))
  const headers = { authorization: `Bearer ${account.api_key}`, 'content-type': 'application/json' }
  const holders = new Map<string, string>()
  let done = 0
  let given = 0
  let twice = 0
  const claimer = async (n: number) => {
    const body = JSON.stringify({ worker_id: `worker ${n}` })
    while (done < attempts) {
      const at = Math.floor((done++ / attempts) * ids.length + Math.random() * front)
      const path = Math.random() < 0.9 ? `/v1/executions/${ids[Math.min(at, ids.length - 1)]}/claim` : '/v1/executions/claim'
      const answer = await replicas[n % replicas.length]!.request({ method: 'POST', path, headers, body })
      const claim = (await answer.body.json()) as { execution_id: string; claim_token: string }
      if (answer.statusCode === 409) continue
      if (answer.statusCode !== 200) throw new Error(`a claim was answered ${answer.statusCode}`)
      given++
      if (holders.has(claim.execution_id)) twice++
      holders.set(claim.execution_id, claim.claim_token)
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: claimerCount }, (_, n) => claimer(n)))
  const seconds = (performance.now() - startedAt) / 1000
  await Promise.all(replicas.map(replica => replica.close()))

  // Compares the workers' responses with the database.
  const { rows } = await pool.query('select id, claim_token, attempts from cue.executions where account_id = $1 and attempts > 0', [
    account.id
  ])
  const wrong = rows.filter(({ id, claim_token, attempts }) => holders.get(id) !== claim_token || attempts !== 1).length
  return { attempts_per_s: attempts / seconds, given, double_claims: twice + wrong + Math.abs(rows.length - holders.size) }
}
