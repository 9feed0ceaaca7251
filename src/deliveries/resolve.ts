/** Resolves names to addresses. Answers are cached for a few seconds, so that a herd of deliveries to one host needs one lookup. */
import { promises as dns } from 'node:dns'

const REMEMBER_MS = 5000
const MAX_REMEMBERED = 10_000
const RENEW_MS = 30_000

/** Returns all addresses of a name. Rejects with the code `ENOTFOUND` if it has none, and with another one if the lookup failed. */
export type Resolve = (name: string) => Promise<string[]>

/** Resolves like other programs on the machine: hosts file, search domains, DNS. Each lookup occupies one of a few threads. */
export const createSystemResolve = (): Resolve =>
  remembering(async name => (await dns.lookup(name, { all: true })).map(({ address }) => address))

/**
 * Resolves by DNS only, without threads, so that hanging lookups delay no others.
 *
 * @param servers name servers, such as `10.0.0.2:53`; by default the machine's
 */
export const createDnsResolve = (servers?: readonly string[]): Resolve => {
  const connect = (): dns.Resolver => {
    const resolver = new dns.Resolver({ timeout: 1500, tries: 2 })
    if (servers) resolver.setServers(servers)
    return resolver
  }
  let resolver = connect()
  let connectedAt = performance.now()

  return remembering(async name => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
    if (addresses.length > 0) return addresses
    const missing = answers.every(answer => answer.status === 'fulfilled' || NO_ADDRESS.has(answer.reason.code))
    if (!missing && performance.now() - connectedAt > RENEW_MS) {
      // The machine may be on another network now, and only a new resolver reads the list of name servers again.
      resolver = connect()
      connectedAt = performance.now()
    }
    throw Object.assign(new Error(`cannot resolve ${name}`), { code: missing ? 'ENOTFOUND' : 'EAI_AGAIN' })
  })
}

const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

const remembering = (resolve: Resolve): Resolve => {
  const answers = new Map<string, { addresses: Promise<string[]>; until: number }>()
  return name => {
    const answer = answers.get(name)
    const now = performance.now()
    if (answer && answer.until > now) return answer.addresses
    if (answers.size >= MAX_REMEMBERED) answers.clear()
    const addresses = resolve(name)
    answers.set(name, { addresses, until: now + REMEMBER_MS })
    return addresses
  }
}
