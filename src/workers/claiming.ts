/** Claims of the next executions; concurrent requests share one statement. */
import { constants } from '../catalog.ts'
import { createBatches } from '../database/batched.ts'
import type { ClaimExecutionsRow, Functions } from '../database/functions.ts'

/** Passed to every function that grants a claim, and reported to workers, so that both always agree. As an interval. */
export const claimLease = `${constants.claimLeaseMs} milliseconds`

export type Wanted = { account_id: string; worker_id: string; tasks?: string[]; limit: number }

type Claims = ClaimExecutionsRow[]
const held = Symbol('held')

/** Returns a function that claims for one worker and resolves to an empty list if nothing is claimable. */
export const createClaiming = (fn: Pick<Functions, 'claimExecutions' | 'claimNext'>) => {
  const alone = (request: Wanted): Promise<Claims> => fn.claimExecutions({ ...request, lease: claimLease })
  const claim = createBatches<Wanted, Claims | typeof held>({
    single: alone,
    many: async requests => {
      const claims = Map.groupBy(await fn.claimNext({ claims: JSON.stringify(requests), lease: claimLease }), ({ claim }) => claim)
      return requests.map((_, n) => {
        const rows = (claims.get(n + 1) ?? []).map(({ claim, ...rest }) => rest)
        return rows[0]?.execution_id === null ? held : (rows as Claims)
      })
    }
  })
  return async (request: Wanted): Promise<Claims> => {
    const claims = await claim(request)
    return claims === held ? alone(request) : claims // which throws the refusal
  }
}
