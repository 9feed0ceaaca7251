/**
 * Where callbacks may go. A URL is checked when it is set, so that its owner sees an error, and again for every connection, by the address that
 * is dialed. Only the latter protects the network around us, since a name can change its addresses.
 */
import { isIP, type LookupFunction } from 'node:net'
import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js'
import { inTime } from '../errors.ts'
import { badPorts } from './bad-ports.ts'
import { createDnsResolve, createSystemResolve, type Resolve } from './resolve.ts'

const MAX_URL_LENGTH = 2048
const SET_TIME_PATIENCE_MS = 3000

/** IPv4 ranges that are not global: IANA's special-purpose registry, multicast, and Azure's host service, whose address looks global. */
const BLOCKED_V4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
  192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32`
  .split(/\s+/)
  .map(range => ipaddr.IPv4.parseCIDR(range))

/** All global unicast IPv6 is in this range; loopback, link-local, unique local, multicast and mapped addresses are not. */
const GLOBAL_V6 = ipaddr.IPv6.parseCIDR('2000::/3')

/** Exceptions in that range: protocol assignments with Teredo, 6to4, and documentation. */
const BLOCKED_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map(range => ipaddr.IPv6.parseCIDR(range))

/** The Fetch standard's bad ports, and those of databases, caches and container engines. */
const BLOCKED_PORTS = new Set([...badPorts, ...'2375 2376 3306 5432 6379 9200 11211 27017'.split(' ')])

/** Why nothing is sent to a URL. The message is a sentence for the cue's owner. */
export class AddressError extends Error {
  override name = 'AddressError'
  readonly code: 'EBLOCKED' | 'ENOTFOUND' | 'EAI_AGAIN'

  constructor(code: AddressError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/**
 * `unresolved` says why the host could not be looked up. Such a URL is accepted: the name may exist soon, and nothing is sent to it before an
 * address has been checked.
 */
export type CheckedUrl = { ok: true; url: string; unresolved: string | null } | { ok: false; reason: string }

export interface AddressRules {
  /** Checks a URL that is about to be stored: its form, and every address its host has now. Never throws. */
  checkUrl(url: string): Promise<CheckedUrl>
  /**
   * Checks everything about a URL that needs no lookup, and parses it.
   * @throws AddressError
   */
  parseUrl(url: string): URL
  /** Whether an IPv4 or IPv6 address may be dialed. */
  allows(address: string): boolean
  /** For `net.connect`, which must not resolve names itself: returns only allowed addresses, or fails with an AddressError. */
  lookup: LookupFunction
}

export interface AddressOptions {
  /** Ranges that may be dialed although they are not global, such as `10.0.0.0/8`. */
  allowCidrs: readonly string[]
  allowHttp: boolean
  /**
   * Returns all addresses of a name. The default is DNS only, where one slow name server delays no other lookup. If ranges are exempt, it is the
   * machine's resolver, since the hosts file or search domains may contain their names.
   */
  resolve?: Resolve
}

/** Makes the rules. @throws Error if a CIDR range is invalid */
export const createAddressRules = ({ allowCidrs, allowHttp, resolve }: AddressOptions): AddressRules => {
  const exempt = allowCidrs.map(range => unmappedRange(ipaddr.parseCIDR(range)))
  const addressesOf = resolve ?? (exempt.length > 0 ? createSystemResolve() : createDnsResolve())

  const isExempt = (address: string): boolean => {
    const ip = isAddress(address) && ipaddr.process(address)
    return ip && exempt.some(([network, bits]) => network.kind() === ip.kind() && ip.match(network, bits))
  }
  const allows = (address: string): boolean => isExempt(address) || isGlobal(address)

  const parseUrl = (text: string): URL => {
    const url = wellFormed(text)
    if (url.protocol === 'http:' && !allowHttp) throw blocked('must start with https://')
    if (BLOCKED_PORTS.has(url.port)) throw blocked(`port ${url.port} is not allowed`)
    const host = hostOf(url)
    if (isIP(host)) {
      if (!allows(host)) throw blocked(`${host} is not a public address`)
    } else if (isLocal(host) && exempt.length === 0) {
      throw blocked(`${host} is a local name`)
    }
    return url
  }

  /** All addresses of a name, if all of them are allowed. */
  const resolveSafely = async (host: string): Promise<string[]> => {
    const addresses = await addressesOf(host).catch(error => {
      throw unresolved(host, error)
    })
    if (addresses.length === 0) throw unresolved(host, { code: 'ENOTFOUND' })
    // No address in the message: it would reveal those of names in the network around us.
    if (!addresses.every(isLocal(host) ? isExempt : allows)) throw blocked(`${host} resolves to an address that is not public`)
    return addresses
  }

  return {
    allows,
    parseUrl,
    async checkUrl(url) {
      let host = ''
      try {
        host = hostOf(parseUrl(url))
        if (!isIP(host)) await inTime(resolveSafely(host), SET_TIME_PATIENCE_MS, () => unresolved(host, { code: 'EAI_AGAIN' }))
        return { ok: true, url, unresolved: null }
      } catch (error) {
        if (!(error instanceof AddressError)) throw error
        if (error.code === 'EBLOCKED') return { ok: false, reason: error.message }
        return isLocal(host) ? { ok: false, reason: `${host} is a local name` } : { ok: true, url, unresolved: error.message }
      }
    },
    lookup(host, options, callback) {
      resolveSafely(host).then(
        addresses => {
          const all = addresses.map(address => ({ address, family: isIP(address) }))
          const usable = options.family === 4 || options.family === 6 ? all.filter(({ family }) => family === options.family) : all
          if (usable.length === 0) callback(unresolved(host, { code: 'ENOTFOUND' }), '')
          else if (options.all) callback(null, usable)
          else callback(null, usable[0]!.address, usable[0]!.family)
        },
        error => callback(error, '')
      )
    }
  }
}

const blocked = (message: string): AddressError => new AddressError('EBLOCKED', message)

const unresolved = (host: string, { code }: { code?: string }): AddressError =>
  code === 'ENOTFOUND'
    ? new AddressError('ENOTFOUND', `DNS: ${host} was not found`)
    : new AddressError('EAI_AGAIN', `DNS: lookup of ${host} failed`)

/** Parses a URL that every parser would read in the same way. */
const wellFormed = (text: string): URL => {
  if (text.length > MAX_URL_LENGTH) throw blocked(`must not be longer than ${MAX_URL_LENGTH} characters`)
  // The parser drops tabs and line breaks, trims, and reads `\` as `/`.
  if (/[\0- \\\x7f-\xa0]/.test(text)) throw blocked('must not contain spaces, control characters or backslashes')
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1]
  if (authority === undefined) throw blocked('must start with https:// and include a host')
  if (authority.includes('@')) throw blocked('must not contain a user name or password')
  const url = URL.parse(text)
  const labels = url && hostOf(url).replace(/\.$/, '').split('.')
  if (!labels?.every(label => label.length > 0 && label.length <= 63) || labels.join('.').length > 253) throw blocked('not a valid URL')
  return url!
}

/** The host as it is dialed: canonical, so that `0x7f.1` becomes `127.0.0.1`, and without the brackets of IPv6. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

/** Names that mean something else on each network. They are allowed only if all their addresses are exempt. */
const isLocal = (host: string): boolean => /^(.*\.)?(localhost|local|internal)\.?$|^[^.]*\.?$/i.test(host)

/** `ipaddr` alone would accept `10` and `0x7f.1`, too. */
const isAddress = (text: string): boolean => isIP(text) !== 0 && ipaddr.isValid(text)

const isGlobal = (address: string): boolean => {
  if (!isAddress(address)) return false
  const ip = ipaddr.parse(address)
  if (ip.kind() === 'ipv4') return !BLOCKED_V4.some(range => (ip as IPv4).match(range))
  const v6 = ip as IPv6
  if (v6.zoneId !== undefined) return false
  return v6.match(GLOBAL_V6) && !BLOCKED_V6.some(range => v6.match(range))
}

/** The IPv4 range of a range of IPv4-mapped IPv6 addresses; any other range unchanged. */
const unmappedRange = ([network, bits]: [IPv4 | IPv6, number]): [IPv4 | IPv6, number] =>
  network.kind() === 'ipv6' && (network as IPv6).isIPv4MappedAddress() && bits >= 96
    ? [(network as IPv6).toIPv4Address(), bits - 96]
    : [network, bits]
