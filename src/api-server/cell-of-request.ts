/** The cell of a request: that of its credential, without a lookup. Requests that name no cell go to the first, the home cell. */
import { cellOfKey, isKey } from '../accounts/keys.ts'
import { cellOfToken } from '../accounts/sessions.ts'
import { MAX_EVENT_BODY } from '../billing/routes.ts'
import { cellOfId } from '../cells/ids.ts'
import { idInSigned, idInToken } from '../deliveries/signature.ts'
import { MAX_BODY } from '../http/body.ts'
import { splitUrl } from '../http/http.ts'
import type { Directory } from './directory.ts'

type Body = Record<string, unknown>

/** PostgreSQL stores no NUL in text. The route rejects what is empty here. */
const text = (value: unknown): string => (typeof value === 'string' && !value.includes('\0') ? value : '')

type Kind = 'browser' | 'token' | 'session_token' | 'link' | 'event' | 'email' | 'code' | 'sign-in'

/** POST requests whose body names the cell. */
const bodies: Record<string, Kind> = {
  '/v1/auth/register': 'email',
  '/v1/auth/device-code': 'code',
  '/v1/auth/device-code/poll': 'code',
  '/v1/auth/device-code/submit-email': 'sign-in',
  '/v1/auth/verify': 'code',
  '/v1/auth/session': 'token',
  '/v1/auth/browser-session': 'browser',
  '/v1/auth/mcp-exchange': 'session_token',
  '/v1/auth/me/cancel-deletion': 'link',
  '/auth/confirm-email': 'link',
  '/auth/confirm-address': 'link',
  '/auth/not-me': 'link',
  '/approval': 'link',
  '/v1/billing/webhook': 'event'
}
/** Pages that links lead to, and the query parameter that names the cell. */
const pages: Record<string, string> = {
  '/auth/cancel-deletion': 'token',
  '/auth/confirm-email': 'token',
  '/auth/confirm-address': 'token',
  '/auth/not-me': 'token',
  '/approval': 'token',
  '/auth/device': 'code',
  '/v1/auth/verify': 'device_code'
}

const kindOf = (url: string): Kind => bodies[splitUrl(url).path]!

/** `count` is the number of cells; the home cell refuses requests that name another. */
export const createCellOf = (count: number, directory: Directory) => {
  const existing = (cell: number | undefined) => (cell !== undefined && cell >= 1 && cell <= count ? cell : 1)
  const ofId = (id: string | undefined) => (id === undefined ? 1 : existing(cellOfId(id)))

  const ofBearer = (authorization: string | undefined): number => {
    const bearer = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
    if (!bearer) return 1
    if (isKey(bearer)) return existing(cellOfKey(bearer))
    return ofId(idInToken(bearer) ?? accountInJwt(bearer))
  }

  /** Null means every cell, as the event names none. */
  const ofEvent = (event: Body): number | null => {
    const id = accountInEvent(event)
    return id ? ofId(id) : null
  }

  return {
    /** By URL and headers; `body` if the body names the cell. */
    ofHead: (method: string, url: string, authorization: string | undefined): number | Promise<number> | 'body' => {
      const { path, query } = splitUrl(url)
      if (method === 'POST' && Object.hasOwn(bodies, path)) return 'body'
      if (Object.hasOwn(pages, path)) {
        const value = new URLSearchParams(query).get(pages[path]!) ?? ''
        return pages[path] === 'token' ? ofId(idInSigned(value)) : directory.cellOfCode(value)
      }
      return ofBearer(authorization)
    },
    /** Maximum bytes of that body: the route's limit. */
    bodyLimit: (url: string): number => (kindOf(url) === 'event' ? MAX_EVENT_BODY : MAX_BODY),
    /** By the body, if `ofHead` returned `body`. */
    ofBody: (url: string, body: Buffer): number | null | Promise<number> => {
      const kind = kindOf(url)
      const parsed = parse(body.toString())
      const code = text(parsed.device_code)
      if (kind === 'email') return directory.cellOfEmail(text(parsed.email))
      if (kind === 'code') return directory.cellOfCode(code)
      if (kind === 'sign-in') return directory.cellOfSignIn(code, text(parsed.email))
      if (kind === 'event') return ofEvent(parsed)
      if (kind === 'browser')
        return isKey(text(parsed.api_key)) ? ofBearer(`Bearer ${parsed.api_key}`) : existing(cellOfToken(text(parsed.token)))
      if (kind === 'link') return ofId(idInSigned(text(parsed.token)))
      return existing(cellOfToken(text(parsed[kind])))
    }
  }
}
export type CellOf = ReturnType<typeof createCellOf>

const parse = (body: string): Body => {
  try {
    const parsed: unknown = JSON.parse(body)
    return typeof parsed === 'object' && parsed !== null ? (parsed as Body) : {}
  } catch {
    return Object.fromEntries(new URLSearchParams(body))
  }
}

/** Not verified: the cell does that. */
const accountInJwt = (jwt: string): string | undefined => {
  const parts = jwt.split('.')
  return parts.length === 3 ? text(parse(Buffer.from(parts[1]!, 'base64url').toString()).sub) : undefined
}

const accountInEvent = (event: Body): string | undefined => {
  const at = (value: unknown, ...path: string[]): unknown =>
    path.reduce((member, name) => (member as Body | null | undefined)?.[name], value)
  const object = at(event, 'data', 'object')
  const subscription = at(object, 'parent', 'subscription_details') ?? at(object, 'subscription_details')
  return (
    text(at(object, 'metadata', 'account_id') ?? at(object, 'client_reference_id') ?? at(subscription, 'metadata', 'account_id')) ||
    undefined
  )
}
