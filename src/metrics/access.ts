/** Who may read the metrics: machines in private networks, and holders of the token. */
import { createHash, timingSafeEqual } from 'node:crypto'
import ipaddr from 'ipaddr.js'

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
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  return token !== null && given !== undefined && timingSafeEqual(hash(given), hash(token))
}

const hash = (text: string): Buffer => createHash('sha256').update(text).digest()
