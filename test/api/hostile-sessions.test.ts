/** Attacks on bodies, sessions and keys. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { decodeJwt, SignJWT } from 'jose'
import { createKey } from '../../src/accounts/keys.ts'
import { deriveKey, executionToken } from '../../src/deliveries/signature.ts'
import { exactly } from '../support/exactly.ts'
import { type Attack, afterSixty, noon, refused, times, tryAll, type World } from '../support/hostile-stage.ts'
import { newDeviceCode } from '../support/sign-in.ts'

const json = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const sessionKey = ({ config }: World) => deriveKey(config.sessionSecret, 'session')
const jwtOf = (world: World) => world.openSession(world.victim.email)
/** The claims of an existing session, signed again. */
const resign = (jwt: string, { key, alg = 'HS256', claims = {} }: { key: KeyObject; alg?: string; claims?: object }) =>
  new SignJWT({ ...decodeJwt(jwt), ...claims }).setProtectedHeader({ alg }).sign(key)

const attacks: Attack[] = [
  // Bodies that cost more to parse than to send -------------------------------------------------------------------------------------------
  {
    name: 'two megabytes of nested lists, without a key',
    attempt: async world => {
      const lists = `[${Array(17_000).fill('['.repeat(60) + ']'.repeat(60))}]`
      return Promise.all([
        world.nobody.call('POST', '/v1/auth/register', `{"email": "a@b.example", "x": ${lists}}`),
        world.nobody.call('POST', '/v1/auth/device-code', lists),
        world.nobody.call('POST', '/v1/auth/verify', lists)
      ])
    },
    expected: refused('payload_too_large', 413)
  },
  // Sessions ---------------------------------------------------------------------------------------------------------------------------
  {
    name: 'a JWT with alg none',
    attempt: async world => {
      const [, claims] = (await jwtOf(world)).split('.')
      const heads = ['none', 'None', 'NONE', 'nOnE', ''].map(alg => json({ alg, typ: 'JWT' }))
      return Promise.all(heads.flatMap(head => [`${head}.${claims}.`, `${head}.${claims}.x`]).map(world.asSession))
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'a JWT signed with another key, with the secret itself, or with a key for other purposes',
    attempt: async world => {
      const secret = world.config.sessionSecret
      const keys = [
        createSecretKey(Buffer.alloc(32)),
        createSecretKey(Buffer.from(secret)),
        deriveKey(secret, 'execution-token'),
        deriveKey(secret, 'link verify')
      ]
      const jwt = await jwtOf(world)
      return Promise.all(keys.map(async key => world.asSession(await resign(jwt, { key }))))
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'a JWT signed with the right key and another algorithm',
    attempt: async world => {
      const [, claims] = (await jwtOf(world)).split('.')
      const sign = (alg: string, digest: string) => {
        const text = `${json({ alg })}.${claims}`
        return `${text}.${createHmac(digest, sessionKey(world)).update(text).digest('base64url')}`
      }
      return Promise.all(
        [sign('HS1', 'sha1'), sign('HS384', 'sha384'), sign('HS512', 'sha512'), sign('RS256', 'sha256')].map(world.asSession)
      )
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'a JWT with changed claims and the old signature',
    attempt: async world => {
      const [head, claims, signature] = (await jwtOf(world)).split('.')
      const other = json({ ...JSON.parse(Buffer.from(claims!, 'base64url').toString()), exp: 9_999_999_999 })
      return world.asSession(`${head}.${other}.${signature}`)
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'a JWT with a valid signature and invalid claims',
    attempt: async world => {
      const jwt = await jwtOf(world)
      const wrong = [
        { exp: undefined },
        { jti: undefined },
        { sub: undefined },
        { iss: 'other' },
        { iss: undefined },
        { jti: "' or 1=1 --" },
        { jti: 5 }
      ]
      const unknown = { jti: '01b92571-ea00-4b28-ab40-bfe46301811f' }
      const stale = { exp: Date.parse(noon) / 1000 - 1 }
      const early = { nbf: Date.parse(noon) / 1000 + 3600 }
      return Promise.all(
        [...wrong, unknown, stale, early].map(async claims => world.asSession(await resign(jwt, { key: sessionKey(world), claims })))
      )
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'replaying a session after signing out',
    attempt: async world => {
      const jwt = await jwtOf(world)
      await world.withSession(jwt).del('/v1/auth/session')
      return Promise.all([world.asSession(jwt), world.send('POST', '/v1/auth/session/refresh', { bearer: jwt })])
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'refreshing an expired session',
    attempt: async world => {
      const jwt = await jwtOf(world)
      world.clock.advance('366 days')
      return world.send('POST', '/v1/auth/session/refresh', { bearer: jwt })
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'using a JWT as a one-time token, and a one-time token as a bearer token',
    attempt: async world => {
      const { session_token } = await world.signIn(world.victim.email)
      const jwt = await jwtOf(world)
      return Promise.all([world.send('POST', '/v1/auth/session', { body: { token: jwt.slice(0, 200) } }), world.asSession(session_token)])
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'an execution token where an account is required',
    attempt: async world => {
      const { id } = await world.post('/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true })
      const execution = await world.post(`/v1/cues/${id}/fire`)
      const bearer = executionToken(deriveKey(world.config.sessionSecret, 'execution-token'), execution.id)
      return Promise.all([
        world.send('DELETE', '/v1/auth/me', { bearer }),
        world.send('POST', '/v1/auth/session/refresh', { bearer }),
        world.send('GET', '/v1/auth/key', { bearer })
      ])
    },
    expected: refused('insufficient_scope', 403)
  },
  {
    name: 'guessing one-time tokens',
    env: { RATE_LIMIT: 'on' },
    attempt: async world => {
      await world.signIn(world.victim.email)
      // Tokens name their cell, and each cell counts for itself.
      return afterSixty(() => world.send('POST', '/v1/auth/session', { body: { token: `1${newDeviceCode()}` } }))
    },
    expected: refused('rate_limit_exceeded', 429)
  },
  {
    name: 'guessing keys',
    env: { RATE_LIMIT: 'on' },
    attempt: world => afterSixty(() => world.send('GET', '/v1/auth/me', { bearer: createKey() })),
    expected: refused('rate_limit_exceeded', 429)
  },
  // Keys for clients ---------------------------------------------------------------------------------------------------------------------
  {
    name: 'a key exchange by an unapproved client with a valid token',
    env: { MCP_CLIENT_IDS: 'desk' },
    attempt: async world => {
      const { session_token } = await world.signIn(world.victim.email)
      return times(3, i =>
        world.send('POST', '/v1/auth/mcp-exchange', { body: { session_token, client_id: ['Desk', 'desk ', 'desk,'][i] } })
      )
    },
    expected: refused('client_not_approved', 403),
    harmless: async ({ get }, t) => exactly(t, await get('/v1/auth/keys'), { keys: [{}] })
  },
  {
    name: 'calling account routes with an exchanged key',
    env: { MCP_CLIENT_IDS: 'desk' },
    attempt: async world => {
      const { session_token } = await world.signIn(world.victim.email)
      const { body } = await world.send('POST', '/v1/auth/mcp-exchange', { body: { session_token, client_id: 'desk' } })
      const bearer = (body as { api_key: string }).api_key
      return Promise.all([
        world.send('GET', '/v1/auth/key', { bearer }),
        world.send('GET', '/v1/auth/webhook-secret', { bearer }),
        world.send('DELETE', '/v1/auth/session?all=true', { bearer }),
        world.send('POST', '/v1/auth/keys', { bearer, body: { label: 'x' } })
      ])
    },
    expected: refused('insufficient_scope', 403)
  }
]

tryAll(attacks)
