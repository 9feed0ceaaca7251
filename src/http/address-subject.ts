import ipaddr from 'ipaddr.js'

const longest = 64

/**
 * The key of limits per address: an IPv4 address, also when mapped into IPv6, or the /64 of an IPv6 address, since one client
 * usually has all of it.
 */
export const subjectOf = (ip = ''): string => {
  if (!ipaddr.isValid(ip)) return ip.slice(0, longest)
  const address = ipaddr.process(ip)
  return address.kind() === 'ipv4' ? address.toString() : `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toNormalizedString()}/64`)}/64`
}
