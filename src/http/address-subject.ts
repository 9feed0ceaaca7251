import ipaddr from 'ipaddr.js'

/**
 * What limits per address count by: an IPv4 address, also where it is mapped into IPv6, or the /64 that an IPv6 address lies in, since
 * everyone who has one of those has all the others too.
 */
export const subjectOf = (ip = ''): string => {
  if (!ipaddr.isValid(ip)) return ip.slice(0, 64)
  const address = ipaddr.process(ip)
  return address.kind() === 'ipv4' ? address.toString() : `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toNormalizedString()}/64`)}/64`
}
