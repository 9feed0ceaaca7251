// Session JWTs and one-time tokens as text. The database knows which of them are valid.
import { randomBytes } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
import { cellDigit, cellOfDigit } from '../cells/ids.ts'
import { deriveKey } from '../deliveries/signature.ts'

const ISSUER = 'pgcue'
/** Audience of the JWTs in cookies, which are refused as bearers. */
const COOKIE = 'cookie'
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

type Session = { session_id: string; account_id: string; expires_at: Date }

/** Signs and verifies session JWTs, with a key derived from SESSION_SECRET for this purpose only. */
export const createSessions = (sessionSecret: string) => {
  const key = deriveKey(sessionSecret, 'session')
  return {
    /** Signs with HS256; `jti` is the session's id and `sub` the account's. */
    sign: ({ session_id, account_id, expires_at }: Session, now: Date, isCookie = false) =>
      new SignJWT(isCookie ? { aud: COOKIE } : {})
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
        .setIssuer(ISSUER)
        .setSubject(account_id)
        .setJti(session_id)
        .setIssuedAt(now)
        .setExpirationTime(expires_at)
        .sign(key),
    /**
     * Returns the session's id, or null unless it is an unexpired JWT of ours, made for a cookie or for bearers. Does not check whether the
     * session was revoked.
     */
    read: async (jwt: string, now: Date, isCookie = false): Promise<string | null> => {
      const parts = jwt.split('.')
      // base64url has several spellings of the same bytes; accept only the canonical one.
      if (parts.length !== 3 || parts.some(part => Buffer.from(part, 'base64url').toString('base64url') !== part)) return null
      try {
        const { payload } = await jwtVerify(jwt, key, {
          algorithms: ['HS256'],
          issuer: ISSUER,
          requiredClaims: ['exp', 'sub', 'jti'],
          currentDate: now
        })
        return ID.test(payload.jti!) && payload.aud === (isCookie ? COOKIE : undefined) ? payload.jti! : null
      } catch {
        return null
      }
    }
  }
}

/** Creates a one-time token: the cell and 256 random bits. */
export const createToken = (cell = 1): string => cellDigit(cell) + randomBytes(32).toString('base64url')

/** The cell of a one-time token; 1 for a text that names none. */
export const cellOfToken = (token: string): number => cellOfDigit(token) || 1
