/** One-time tokens of the link that an embedded start prints, accepted from the same machine only. */
import { ApiError } from '../errors.ts'
import { isLoopback } from '../http/origins.ts'
import { hashKey } from './keys.ts'
import { createToken } from './sessions.ts'

const prefix = 'local-'

/** The token is in the fragment, which browsers send to no server. */
export const signInLink = ({ baseUrl }: { baseUrl: string }, token: string): string => `${baseUrl}/dashboard#token=${token}`

export const createLocalToken = (): string => prefix + createToken()

/** The hash of any one-time token. The prefix is hashed, too, so it cannot be removed. @throws ApiError for a local one from another machine */
export const hashToken = (token: string, ip: string): Buffer => {
  if (token.startsWith(prefix) && !isLoopback(ip))
    throw new ApiError('not_authenticated', 'This link works only on the machine that the service runs on.')
  return hashKey(token)
}
