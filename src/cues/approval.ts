/** The approval of a cue, as it is stored. */
import { fault, invalid } from '../errors.ts'
import { isLength, lengthOf } from '../schedule/offset.ts'
import type { CreateCue } from './schemas.ts'
import type { StoredCue } from './stored.ts'

type Approval = StoredCue['approval']

const [SHORTEST, LONGEST] = [lengthOf('1m'), lengthOf('31d')]
const isWithin = (length: string) => isLength(length) && lengthOf(length) >= SHORTEST && lengthOf(length) <= LONGEST

/**
 * What a request sets, otherwise what is stored, otherwise the default.
 * @throws ApiError validation_error
 */
export const approvalOf = (request: NonNullable<CreateCue['approval']> | null, stored?: Approval): Approval => {
  if (request === null) return null
  const approval = { expires: '24h', on_expiry: 'skip', message: null, ...stored, ...request } as NonNullable<Approval>
  const { expires } = approval
  if (expires !== null && !isWithin(expires))
    throw invalid([
      fault(['approval', 'expires'], 'must be a whole number and a unit, such as 30m, 24h or 7d, from 1m to 31d; or null for never')
    ])
  return approval
}
