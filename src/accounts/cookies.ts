/** Cookies of browsers, above all the session's: a JWT that no script can read. Pages of other origins cannot change anything with it. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import { memoize } from '../cache/memoize.ts'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'
import { type Head, isLocalName, type Origins } from '../http/origins.ts'

const session = 'pgcue_session'
const year = 31_536_000
const halfDay = 12 * 3600

type Site = Pick<Config, 'baseUrl'>

/**
 * The cookies of a service. Browsers send those of a host to all its ports, which on loopback may be anybody's program, and only a name can keep
 * those of two services there apart. A name with `__Host-` requires `Path=/`, so the path is part of it, too.
 */
const formOf = memoize(16, (baseUrl: string) => {
  const { protocol, hostname, port, pathname } = new URL(baseUrl)
  const isSecure = protocol === 'https:'
  const isLocal = isLocalName(hostname)
  const suffix = `${isLocal ? `_${port || (isSecure ? 443 : 80)}` : ''}${pathname.replace(/\/$/, '').replace(/\W+/g, '_')}`
  return {
    nameOf: (name: string) => `${isSecure ? '__Host-' : ''}${name}${suffix}`,
    path: isSecure ? '/' : pathname.replace(/\/?$/, '/'),
    secure: isSecure ? '; Secure' : '',
    sessionSeconds: isLocal ? halfDay : year
  }
})

/** Seconds that a browser stays signed in. */
export const sessionSeconds = ({ baseUrl }: Site): number => formOf(baseUrl).sessionSeconds

/** The Authorization header as received, or made from the cookie. A header wins: programs send it on purpose. */
export const credentialOf = (headers: IncomingHttpHeaders, site: Site): { authorization: string | undefined; isCookie: boolean } => {
  const { authorization } = headers
  if (authorization !== undefined) return { authorization, isCookie: false }
  const jwt = readCookie(headers, session, site)
  return jwt ? { authorization: `Bearer ${jwt}`, isCookie: true } : { authorization: undefined, isCookie: false }
}

export const readCookie = ({ cookie }: IncomingHttpHeaders, name: string, { baseUrl }: Site): string | undefined => {
  if (cookie === undefined) return undefined
  const start = `${formOf(baseUrl).nameOf(name)}=`
  return cookie
    .split(/; */)
    .find(pair => pair.startsWith(start))
    ?.slice(start.length)
}

/** @throws ApiError cross_origin_refused unless the request comes from a page of this service, or from a program rather than a page */
export const refuseOtherOrigins = (request: Head, origins: Origins): void => {
  const { origin, 'sec-fetch-site': site } = request.headers
  // Browsers send an Origin with every request that changes something.
  if (site !== undefined ? site === 'same-origin' : origin === undefined || origins.isOwn(origin, request)) return
  throw new ApiError(
    'cross_origin_refused',
    'Refused: the session cookie is accepted from pages of this service only, at the address that BASE_URL names. Programs send an API key.'
  )
}

export const setSessionCookie = (reply: FastifyReply, jwt: string, site: Site): void =>
  setCookie(reply, { name: session, value: jwt, maxAge: sessionSeconds(site) }, site)
export const clearSessionCookie = (reply: FastifyReply, site: Site): void => setCookie(reply, { name: session, value: '', maxAge: 0 }, site)

/** Sets a cookie for the pages of this service, which no script can read. A `maxAge` of 0 removes it. */
export const setCookie = (
  reply: FastifyReply,
  { name, value, maxAge }: { name: string; value: string; maxAge: number },
  { baseUrl }: Site
): void => {
  const { nameOf, path, secure } = formOf(baseUrl)
  reply.header('set-cookie', `${nameOf(name)}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure}`)
}
