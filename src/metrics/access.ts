/** Who may read the metrics: machines of one's own network, and whoever has the token. */
import { createHash, timingSafeEqual } from 'node:crypto'
import ipaddr from 'ipaddr.js'

const ranges = ['loopback', 'private', 'uniqueLocal', 'linkLocal']

/** Whether an address is this machine or in a private network. */
export const isNear = (address: string): boolean => ipaddr.isValid(address) && ranges.includes(ipaddr.process(address).range())

type Peer = {
  /** The peer and, as far as proxies are trusted, those behind it. */
  ips: readonly string[]
  /** Whether the peer says that it asks for somebody else. */
  forwards: boolean
}

/**
 * Whether a request comes from near: every address that is known of its way. One that a proxy passes on, and nobody said to trust that, may come
 * from anywhere.
 */
export const comesFromNear = ({ ips, forwards }: Peer): boolean => ips.every(isNear) && (!forwards || ips.length > 1)

/** Compares in constant time. */
export const hasToken = (authorization: string | undefined, token: string | null): boolean => {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  return token !== null && given !== undefined && timingSafeEqual(hash(given), hash(token))
}

const hash = (text: string): Buffer => createHash('sha256').update(text).digest()
