/** Hosts that a service for this machine answers to, and origins whose pages may change something: no page on the web can act on either. */
import type { IncomingMessage } from 'node:http'
import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'

export type Head = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'rawHeaders'>
export type Origins = ReturnType<typeof createOrigins>

const safeMethods = ['GET', 'HEAD', 'OPTIONS', 'TRACE']

/** Whether an address, or `localhost`, is this machine. */
export const isLoopback = (address: string): boolean =>
  address === 'localhost' || (ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback')

/** Whether a host in a URL always is this machine. Whatever else resolves to it may be a page of somebody else, by DNS rebinding. */
export const isLocalName = (name: string): boolean =>
  /^(.+\.)?localhost$/.test(name) || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'))

export const createOrigins = ({ host, baseUrl, corsOrigins }: Pick<Config, 'host' | 'baseUrl' | 'corsOrigins'>) => {
  const base = new URL(baseUrl)
  const isLocal = isLoopback(host)
  const allowed: readonly string[] = corsOrigins
  const isOurs = (name: string) => isLocalName(name) || name === base.hostname
  return {
    /** Returns why nothing of a request may be read or done, if so. */
    refusalOf: (request: Head): ApiError | undefined => {
      if (request.rawHeaders.filter((name, i) => i % 2 === 0 && /^host$/i.test(name)).length > 1)
        return new ApiError('validation_error', 'Send one Host header.')
      if (isLocal && !isOurs(targetOf(request).name)) {
        return new ApiError(
          'misdirected_request',
          'This service answers only to localhost, loopback addresses and the host of BASE_URL. Set BASE_URL to the address that you use.'
        )
      }
      const { origin, 'sec-fetch-site': site = '' } = request.headers
      if (safeMethods.includes(request.method ?? '') || !/^(cross|same)-site$/.test(site) || allowed.includes(origin ?? ''))
        return undefined
      return new ApiError(
        'cross_origin_refused',
        "Pages of other sites can't change anything here, unless CORS_ORIGINS includes their origin."
      )
    },
    /** Whether an Origin is that of the service's own pages. On a loopback listener, they may have any of its names, at the port of the request. */
    isOwn: (origin: string, request: Head): boolean => {
      if (origin === base.origin) return true
      const { hostname, port } = URL.parse(origin) ?? {}
      return isLocal && hostname !== undefined && isOurs(hostname) && (port || '80') === (targetOf(request).port || '80')
    }
  }
}

/** The host and port that a request is for: those of an absolute-form target, or else of the Host header. An empty name if malformed. */
const targetOf = ({ url = '', headers }: Head): { name: string; port: string } => {
  const authority = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1] ?? headers.host ?? ''
  const [, name = '', port = ''] = /^([\w.-]+|\[[\da-f:.]+\])(?::(\d*))?$/i.exec(authority) ?? []
  return { name: name.toLowerCase(), port }
}
