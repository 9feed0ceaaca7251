import ipaddr from 'ipaddr.js'
import { memoize } from '../cache/memoize.ts'

const longest = 64
const cached = 10_000

/**
 * The key of limits per address: an IPv4 address, also when mapped into IPv6, or the /64 of an IPv6 address, since one client
 * usually has all of it.
 */
export const subjectOf = (ip = ''): string => subjects(ip.slice(0, longest))

const subjects = memoize(cached, (ip: string): string => {
  if (!ipaddr.isValid(ip)) return ip
  const address = ipaddr.process(ip)
  return address.kind() === 'ipv4' ? address.toString() : `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toNormalizedString()}/64`)}/64`
})
