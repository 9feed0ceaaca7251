/**
 * The operator's access to figures on all accounts: the bearer token OPERATOR_TOKEN, a cookie that a browser gets for it, or the account of an
 * embedded database, which is opened by the link that `npm start` prints.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { deriveKey } from '../deliveries/signature.ts'
import { hasToken, type TokenCheck } from '../metrics/access.ts'
import { readCookie, setCookie } from './cookies.ts'

const name = 'pgcue_operator'
const validSeconds = 12 * 3600

/** The address of the account of an embedded database; nobody can register it, and no mail reaches it. */
export const localEmail = 'you@localhost'

type Settings = Pick<Config, 'operatorToken' | 'embedded' | 'baseUrl'>

/** Whether a request has the operator's token, compared by `has`, or a cookie made with it. */
export const isFromOperator = (
  { headers, ip }: Pick<FastifyRequest, 'headers' | 'ip'>,
  config: Settings,
  now: Date,
  has: TokenCheck = hasToken
): boolean => {
  const { operatorToken } = config
  if (operatorToken === null) return false
  if (headers.authorization !== undefined) return has(headers.authorization, operatorToken, ip)
  const [expires = '', proof = ''] = readCookie(headers, name, config)?.split('.') ?? []
  const expected = proofOf(operatorToken, expires)
  return (
    Number(expires) * 1000 > now.getTime() &&
    proof.length === expected.length &&
    timingSafeEqual(Buffer.from(proof.padEnd(expected.length).slice(0, expected.length), 'latin1'), Buffer.from(expected, 'latin1'))
  )
}

/** Whether an account is that of an embedded database. */
export const isLocalOperator = (email: string, { embedded }: Settings): boolean => embedded && email === localEmail

/** A changed token makes all cookies invalid. */
export const setOperatorCookie = (reply: FastifyReply, config: Settings & { operatorToken: string }, now: Date): void => {
  const expires = String(Math.floor(now.getTime() / 1000) + validSeconds)
  setCookie(reply, { name, value: `${expires}.${proofOf(config.operatorToken, expires)}`, maxAge: validSeconds }, config)
}
export const clearOperatorCookie = (reply: FastifyReply, config: Settings): void => setCookie(reply, { name, value: '', maxAge: 0 }, config)

const proofOf = (token: string, expires: string): string =>
  createHmac('sha256', deriveKey(token, 'operator')).update(expires).digest('base64url')
