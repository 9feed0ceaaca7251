/** Cookies of browsers, above all the session's: a JWT that no script can read. Pages of other origins cannot change anything with it. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { Head, Origins } from '../http/origins.ts'

const name = 'pgcue_session'
const year = 31_536_000

type Site = Pick<Config, 'baseUrl'>

/** The Authorization header as received, or made from the cookie. A header wins: programs send it on purpose. */
export const credentialOf = (headers: IncomingHttpHeaders): { authorization: string | undefined; isCookie: boolean } => {
  const { authorization } = headers
  if (authorization !== undefined) return { authorization, isCookie: false }
  const jwt = readCookie(headers, name)
  return jwt ? { authorization: `Bearer ${jwt}`, isCookie: true } : { authorization: undefined, isCookie: false }
}

export const readCookie = ({ cookie }: IncomingHttpHeaders, name: string): string | undefined =>
  cookie
    ?.split(/; */)
    .find(one => one.startsWith(`${name}=`))
    ?.slice(name.length + 1)

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
  setCookie(reply, { name, value: jwt, maxAge: year }, site)
export const clearSessionCookie = (reply: FastifyReply, site: Site): void => setCookie(reply, { name, value: '', maxAge: 0 }, site)

/** Sets a cookie for the pages of this service, which no script can read. A `maxAge` of 0 removes it. */
export const setCookie = (
  reply: FastifyReply,
  { name, value, maxAge }: { name: string; value: string; maxAge: number },
  site: Site
): void => {
  const { protocol, pathname } = new URL(site.baseUrl)
  const secure = protocol === 'https:' ? '; Secure' : ''
  reply.header(
    'set-cookie',
    `${name}=${value}; Path=${pathname.replace(/\/?$/, '/')}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure}`
  )
}
