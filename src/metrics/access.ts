/** Who may read the metrics: machines in private networks, and holders of the token; and the comparison of such tokens of the service. */
import { createHash, timingSafeEqual } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import { createRecent } from '../cache/recent.ts'
import { ApiError } from '../errors.ts'
import { subjectOf } from '../http/address-subject.ts'

const ranges = ['loopback', 'private', 'uniqueLocal', 'linkLocal']

/** Whether an address is this machine or in a private network. */
export const isNear = (address: string): boolean => ipaddr.isValid(address) && ranges.includes(ipaddr.process(address).range())

type Peer = {
  /** Addresses of the peer and, as far as proxies are trusted, of those behind it. */
  ips: readonly string[]
  /** Whether the peer forwards the request for somebody else. */
  forwards: boolean
}

/** Whether a request comes from a private network: all its known addresses do. One forwarded by an untrusted proxy may come from anywhere. */
export const comesFromNear = ({ ips, forwards }: Peer): boolean => ips.every(isNear) && (!forwards || ips.length > 1)

/** Whether an Authorization header has the token. Compares in constant time. */
export const hasToken = (authorization: string | undefined, token: string | null): boolean => {
  const bearer = bearerOf(authorization)
  return token !== null && bearer !== undefined && timingSafeEqual(hash(bearer), hash(token))
}

const bearerOf = (authorization = '') => /^Bearer +(\S+) *$/i.exec(authorization)?.[1]

export type TokenCheck = (authorization: string | undefined, token: string | null, ip: string) => boolean

const guesses = { most: 10, windowMs: 60_000 }
const addresses = 10_000

/**
 * Makes `hasToken` for one replica, which refuses an address after ten wrong tokens within a minute, whatever it then sends: nobody can guess a token,
 * with or without a database. An API key is none.
 */
export const createTokenCheck = ({ rateLimit }: { rateLimit: boolean }, now: () => Date): TokenCheck => {
  const wrong = createRecent<string, { count: number; untilMs: number }>(addresses)
  return (authorization, token, ip) => {
    const bearer = bearerOf(authorization)
    if (!rateLimit || token === null || bearer === undefined || bearer.startsWith('svc_sk_')) return hasToken(authorization, token)
    const subject = subjectOf(ip)
    const nowMs = now().getTime()
    const before = wrong.get(subject)
    const { count, untilMs } = before && before.untilMs > nowMs ? before : { count: 0, untilMs: nowMs + guesses.windowMs }
    if (count >= guesses.most)
      throw new ApiError(
        'rate_limit_exceeded',
        'Too many wrong tokens from this address. Retry after the number of seconds in Retry-After.',
        {
          headers: { 'retry-after': String(Math.ceil((untilMs - nowMs) / 1000)) }
        }
      )
    const isRight = hasToken(authorization, token)
    if (!isRight) wrong.set(subject, { count: count + 1, untilMs })
    return isRight
  }
}

const hash = (text: string): Buffer => createHash('sha256').update(text).digest()
