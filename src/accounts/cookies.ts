/** The session cookie of browsers: a session JWT that no script can read. Pages of other origins cannot change anything with it. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'

const name = 'pgcue_session'
const year = 31_536_000

type Site = Pick<Config, 'baseUrl'>

/** The Authorization header as received, or made from the cookie. A header wins: programs send it on purpose. */
export const credentialOf = (headers: IncomingHttpHeaders): { authorization: string | undefined; isCookie: boolean } => {
  const { authorization, cookie } = headers
  if (authorization !== undefined || !cookie) return { authorization, isCookie: false }
  const jwt = cookie
    .split(/; */)
    .find(one => one.startsWith(`${name}=`))
    ?.slice(name.length + 1)
  return jwt ? { authorization: `Bearer ${jwt}`, isCookie: true } : { authorization: undefined, isCookie: false }
}

/** @throws ApiError cross_origin_refused unless the request comes from a page of this service, or from a program rather than a page */
export const refuseOtherOrigins = ({ headers }: { headers: IncomingHttpHeaders }, { baseUrl }: Site): void => {
  const { origin, host, 'sec-fetch-site': site } = headers
  if (site !== undefined ? site === 'same-origin' : isOwn(origin, host, baseUrl)) return
  throw new ApiError(
    'cross_origin_refused',
    'Refused: the session cookie is accepted from pages of this service only. Programs send an API key.'
  )
}

/** Browsers send an Origin with every request that changes something. A proxy may replace the host. */
const isOwn = (origin: string | undefined, host: string | undefined, baseUrl: string): boolean =>
  origin === undefined || origin === new URL(baseUrl).origin || (URL.canParse(origin) && new URL(origin).host === host)

export const setSessionCookie = (reply: FastifyReply, jwt: string, site: Site): void =>
  void reply.header('set-cookie', cookie(jwt, year, site))
export const clearSessionCookie = (reply: FastifyReply, site: Site): void => void reply.header('set-cookie', cookie('', 0, site))

const cookie = (value: string, maxAge: number, { baseUrl }: Site): string => {
  const { protocol, pathname } = new URL(baseUrl)
  const secure = protocol === 'https:' ? '; Secure' : ''
  return `${name}=${value}; Path=${pathname.replace(/\/?$/, '/')}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure}`
}
