// Session JWTs, and the one-time tokens they are given for, as text. Which of them are good, the database knows.
import { randomBytes } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
import { deriveKey } from '../deliveries/signature.ts'

const ISSUER = 'pgcue'
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Signs and reads session JWTs with a key that is derived from SESSION_SECRET for them alone. */
export const createSessions = (sessionSecret: string) => {
  const key = deriveKey(sessionSecret, 'session')
  return {
    /** HS256, with the session's id as `jti` and the account's as `sub`. */
    sign: ({ session_id, account_id, expires_at }: { session_id: string; account_id: string; expires_at: Date }, now: Date) =>
      new SignJWT()
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
        .setIssuer(ISSUER)
        .setSubject(account_id)
        .setJti(session_id)
        .setIssuedAt(now)
        .setExpirationTime(expires_at)
        .sign(key),
    /** The id of the session, or null for anything but an unexpired JWT of ours. Whether it was revoked is not known here. */
    read: async (jwt: string, now: Date): Promise<string | null> => {
      const parts = jwt.split('.')
      // Base64 has several spellings of the same bytes, of which a JWT has one.
      if (parts.length !== 3 || parts.some(part => Buffer.from(part, 'base64url').toString('base64url') !== part)) return null
      try {
        const { payload } = await jwtVerify(jwt, key, {
          algorithms: ['HS256'],
          issuer: ISSUER,
          requiredClaims: ['exp', 'sub', 'jti'],
          currentDate: now
        })
        return ID.test(payload.jti!) ? payload.jti! : null
      } catch {
        return null
      }
    }
  }
}

/** A one-time token: 256 random bits. */
export const createToken = (): string => randomBytes(32).toString('base64url')
