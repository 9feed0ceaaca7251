// Admission: reads the bearer token and checks key, scope, rate limit and usage with one database query.
import type { FastifyBaseLogger } from 'fastify'
import pg from 'pg'
import { enums } from '../catalog.ts'
import type { Config, Limits, Plan } from '../config.ts'
import { createBatches } from '../database/batched.ts'
import type { Functions } from '../database/functions.ts'
import { deriveKey, readExecutionToken } from '../deliveries/signature.ts'
import { type ErrorCode, isLost } from '../errors.ts'
import { subjectOf } from '../http/address-subject.ts'
import { limitCallers } from './callers.ts'
import { hashKey, isKey } from './keys.ts'
import { createSessions } from './sessions.ts'

export const scopes = enums.keyScope
export type Scope = (typeof scopes)[number]
/** The scope a route requires. */
export type Needed = Scope | 'any' | readonly Scope[]

/**
 * The caller. Spread last into the arguments of SQL functions, so it must not share member names with paths or bodies, such as key_id or
 * scopes.
 */
export type Caller = {
  account_id: string
  /** `key:<uuid>`, `session:<uuid>` or `execution:<uuid>`, as in the audit log. */
  actor: string
  ip: string
  /** Whether the credential has the scope `approve`. */
  may_approve: boolean
}

/** A result row of the SQL function `admit`. */
export type Admission = {
  /** `unavailable`: its rate window is locked by another session. */
  error: Refusal | 'unavailable' | null
  account_id: string | null
  actor: string | null
  scopes: Scope[] | null
  plan: Plan | null
  /** The account's overrides. */
  limits: Partial<Limits> | null
  usage_warning: boolean
  /** Null: the account has no limit. */
  rate_limit: number | null
  rate_remaining: number | null
  rate_reset: number
  retry_after: number | null
}

type Answer = Admission & { error: Refusal | null }

export type Admitted = {
  error: Refusal | null
  /** Null when refused, and on public routes. */
  caller: Caller | null
  /** Scopes of the credential; empty without one. */
  scopes: Scope[]
  /** The plan of the caller's account. */
  plan: Plan | null
  /** The account's own, instead of those of its plan. */
  limits: Partial<Limits> | null
  /** `reset`, in epoch seconds, is when the oldest request leaves the window. Without a limit, the first two are null. */
  rate: { limit: number | null; remaining: number | null; reset: number }
  /** Seconds; set with `rate_limit_exceeded`. */
  retry_after: number | null
  /** The account has used at least 80 % of its monthly executions. */
  usage_warning: boolean
}

export const refusals = {
  rate_limit_exceeded: 'Rate limit exceeded. Retry after the number of seconds in Retry-After.',
  not_authenticated: 'Not authenticated. Send the header Authorization: Bearer <API key>, or sign in again if your session has expired.',
  invalid_api_key: 'Invalid API key: mistyped, unknown or revoked.',
  insufficient_scope: 'This key lacks the required scope. Use a key that has it; the API reference shows the scope of each call.'
} as const satisfies Partial<Record<ErrorCode, string>>
export type Refusal = keyof typeof refusals

type Options = {
  fn: Pick<Functions, 'admit'>
  config: Config
  log: Pick<FastifyBaseLogger, 'error'>
  /** The clock for the expiry of session JWTs, and for refusals. */
  now?: () => Date
  /** Aborted when the service begins to stop. */
  closing?: AbortSignal
}

type Question = {
  key_hash: Buffer | null
  session_id: string | null
  execution_id: string | null
  address: string
  scope: Scope | 'any' | null
}

const columns = (questions: Question[]) => ({
  key_hashes: questions.map(({ key_hash }) => key_hash),
  session_ids: questions.map(({ session_id }) => session_id),
  execution_ids: questions.map(({ execution_id }) => execution_id),
  addresses: questions.map(({ address }) => address),
  scopes: questions.map(({ scope }) => scope)
})

type Asked = {
  /** The Authorization header as received. */
  authorization: string | undefined
  /** Whether it is made from the session cookie of a browser. */
  isCookie?: boolean
  /** The peer's IP address. */
  address: string
  /** The required scope, or one of a list; `any` for any credential, null if the credential is ignored. */
  scope: Needed | null
  /** The execution in the path, if the route accepts its token. */
  execution_id?: string | null
  /** Part of a request that was counted before. */
  isCounted?: boolean
}

/** Creates the check that runs before every request. It rejects only if the database is unavailable. */
export const createAdmission = ({ fn, config, log, now = () => new Date(), closing }: Options) => {
  const tokenKey = deriveKey(config.sessionSecret, 'execution-token')
  const sessions = createSessions(config.sessionSecret)

  const withLimits = async <T>(ask: (limited: boolean) => Promise<T>): Promise<T> => {
    try {
      return await ask(config.rateLimit)
    } catch (error) {
      // The server responds with an error. The rate limits are the only writes, so without them the check is read-only and may succeed.
      if (!(error instanceof pg.DatabaseError) || isLost(error) || !config.rateLimit) throw error
      const answer = await ask(false)
      log.error({ err: error }, 'rate limits skipped')
      return answer
    }
  }

  const ask = async (questions: Question[], limited: boolean) => (await fn.admit({ ...columns(questions), limited })) as Admission[]
  const uncounted = async (question: Question) => (await ask([question], false))[0] as Answer
  const batched = createBatches<Question, Answer>({
    many: async questions => {
      const answers = await withLimits(limited => ask(questions, limited))
      return answers.map(answer => (answer.error === 'unavailable' ? null : (answer as Answer)))
    }
  })
  // With the address, because an invalid credential counts towards it.
  const callerOf = (question: Question) => `${credentialOf(question)} ${question.address}`
  const admit = limitCallers(batched, { callerOf, now, closing })

  return async ({ authorization, isCookie = false, address, scope, execution_id = null, isCounted = false }: Asked): Promise<Admitted> => {
    const bearer = scope === null ? '' : (/^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? '')
    const key_hash = isKey(bearer) ? hashKey(bearer) : null
    const tokenOf = readExecutionToken(tokenKey, bearer) ?? null
    const { error, account_id, actor, ...rest } = await (isCounted ? uncounted : admit)({
      key_hash,
      session_id: key_hash ? null : await sessions.read(bearer, now(), isCookie),
      execution_id: tokenOf,
      address: subjectOf(address),
      scope: isOneOf(scope) ? 'any' : scope
    })
    const refusal =
      error === 'not_authenticated' && bearer.startsWith('svc_sk_')
        ? 'invalid_api_key'
        : error === null &&
            ((tokenOf !== null && tokenOf !== execution_id?.toLowerCase()) ||
              (isOneOf(scope) && !scope.some(acceptable => rest.scopes?.includes(acceptable))))
          ? 'insufficient_scope'
          : error
    return {
      error: refusal,
      caller:
        refusal === null && account_id !== null && actor !== null
          ? { account_id, actor, ip: address, may_approve: rest.scopes?.includes('approve') ?? false }
          : null,
      scopes: refusal === null ? (rest.scopes ?? []) : [],
      plan: refusal === null ? rest.plan : null,
      limits: rest.limits,
      rate: { limit: rest.rate_limit, remaining: rest.rate_remaining, reset: rest.rate_reset },
      retry_after: rest.retry_after,
      usage_warning: rest.usage_warning
    }
  }
}

const credentialOf = ({ key_hash, session_id, execution_id, address }: Question) =>
  key_hash?.toString('latin1') ?? session_id ?? execution_id ?? address

/** Whether any scope of a list is enough. The SQL function compares with one scope only, so the list is checked here. */
const isOneOf = (scope: Needed | null): scope is readonly Scope[] => Array.isArray(scope)
