/** Claims of whatever is next, for workers who ask at the same time in one statement. */
import { createBatches, type Turns } from '../database/batched.ts'
import type { ClaimExecutionsRow, Functions } from '../database/functions.ts'

export type Wanted = { account_id: string; worker_id: string; tasks?: string[]; limit: number }

/** Makes a function that claims for one worker; it gives nothing when there is nothing. */
export const createClaiming = (fn: Pick<Functions, 'claimExecutions' | 'claimNext'>, turns?: Turns) =>
  createBatches<Wanted, ClaimExecutionsRow[]>({
    one: wanted => fn.claimExecutions(wanted),
    many: async wanted => {
      const claims = Map.groupBy(await fn.claimNext({ claims: JSON.stringify(wanted) }), ({ claim }) => claim)
      return wanted.map((_, n) => (claims.get(n + 1) ?? []).map(({ claim, ...rest }) => rest))
    },
    ownerOf: ({ account_id }) => account_id,
    turns,
    isDurable: true
  })
