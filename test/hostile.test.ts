/**
 * Attacks on accounts, sessions, links, pages and mails, and what each is answered with: a table, one row an attack. Every row gets a service of
 * its own; `harmless` is asked afterwards, and must say that nothing came of it.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { decodeJwt, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { createKey } from '../src/accounts/keys.ts'
import { createLinks } from '../src/accounts/links.ts'
import { deriveKey, executionToken, signId } from '../src/deliveries/signature.ts'
import { exactly } from './exactly.ts'
import { buildWithMail, form, formHeaders, newDeviceCode } from './sign-in.ts'

// Many services of their own, on machines that are busy: alone under node a file would have 30 seconds.
t.setTimeout(110_000)

const noon = '2030-01-15T12:00:00.000Z'

type World = Awaited<ReturnType<typeof setup>>
type Answer = { status: number; body?: unknown; headers?: Record<string, string> }
type Attack = {
  name: string
  env?: Record<string, string>
  /** Tries it, and gives the answer, or several that must all be as expected. */
  attempt: (world: World) => Promise<Answer | Answer[]>
  expected: object
  harmless?: (world: World, t: Test) => Promise<unknown>
}

const setup = async (t: Test, env?: Record<string, string>) => {
  const service = await buildWithMail(t, noon, env)
  const { app, nobody, account } = service
  /** Somebody's request, from an address of his own choice. */
  const send = async (
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    options: { body?: object; bearer?: string; from?: string } = {}
  ): Promise<Answer> => {
    const answer = await app.inject({
      method,
      url,
      ...(options.body && { payload: options.body }),
      headers: { ...(options.bearer !== undefined && { authorization: `Bearer ${options.bearer}` }) },
      remoteAddress: options.from ?? '198.51.100.7'
    })
    return {
      status: answer.statusCode,
      body: answer.body && answer.headers['content-type']?.startsWith('application/json') ? answer.json() : answer.body
    }
  }
  const show = (path: string) => nobody.call('GET', path)
  const submit = (path: string, fields: Record<string, string>) => nobody.call('POST', path, form(fields), formHeaders)
  const asSession = (bearer: string) => send('GET', '/v1/auth/me', { bearer })
  const victim = { email: account.email }
  return { ...service, send, show, submit, asSession, victim }
}

const refused = (code: string, status: number) => ({ status, body: { error: { code, status } } })
const times = <T>(count: number, make: (i: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, i) => make(i)))
const json = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const sessionKey = ({ config }: World) => deriveKey(config.sessionSecret, 'session')
const jwtOf = (world: World) => world.openSession(world.victim.email)
/** The claims of a session that exists, signed anew. */
const resign = (jwt: string, { key, alg = 'HS256', claims = {} }: { key: KeyObject; alg?: string; claims?: object }) =>
  new SignJWT({ ...decodeJwt(jwt), ...claims }).setProtectedHeader({ alg }).sign(key)
/** One after the other, of which those count that came after the first 60. */
const afterSixty = async (send: () => Promise<Answer>) => {
  const answers = []
  for (let i = 0; i < 65; i++) answers.push(await send())
  return answers.slice(60)
}

const attacks: Attack[] = [
  // Bodies that cost more to read than to send -------------------------------------------------------------------------------------------
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
    name: 'a JWT that says it needs no signature',
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
    name: 'a JWT whose claims were changed under the old signature',
    attempt: async world => {
      const [head, claims, signature] = (await jwtOf(world)).split('.')
      const other = json({ ...JSON.parse(Buffer.from(claims!, 'base64url').toString()), exp: 9_999_999_999 })
      return world.asSession(`${head}.${other}.${signature}`)
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'a JWT with a genuine signature and claims that are none of ours',
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
    name: 'a session that was signed out, replayed',
    attempt: async world => {
      const jwt = await jwtOf(world)
      await world.withSession(jwt).del('/v1/auth/session')
      return Promise.all([world.asSession(jwt), world.send('POST', '/v1/auth/session/refresh', { bearer: jwt })])
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'a session refreshed after its year',
    attempt: async world => {
      const jwt = await jwtOf(world)
      world.clock.advance('366 days')
      return world.send('POST', '/v1/auth/session/refresh', { bearer: jwt })
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'a JWT as a one-time token, and a one-time token as a bearer',
    attempt: async world => {
      const { session_token } = await world.signIn(world.victim.email)
      const jwt = await jwtOf(world)
      return Promise.all([world.send('POST', '/v1/auth/session', { body: { token: jwt.slice(0, 200) } }), world.asSession(session_token)])
    },
    expected: refused('not_authenticated', 401)
  },
  {
    name: 'an execution token where an account is wanted',
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
    name: 'one-time tokens, guessed',
    env: { RATE_LIMIT: 'on' },
    attempt: async world => {
      await world.signIn(world.victim.email)
      return afterSixty(() => world.send('POST', '/v1/auth/session', { body: { token: newDeviceCode() } }))
    },
    expected: refused('rate_limit_exceeded', 429)
  },
  {
    name: 'keys, guessed',
    env: { RATE_LIMIT: 'on' },
    attempt: world => afterSixty(() => world.send('GET', '/v1/auth/me', { bearer: createKey() })),
    expected: refused('rate_limit_exceeded', 429)
  },
  // Keys for clients ---------------------------------------------------------------------------------------------------------------------
  {
    name: 'an exchange by a client that is not approved, with a genuine token',
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
    name: 'an exchanged key that reaches for the account',
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
  },
  // Device codes ------------------------------------------------------------------------------------------------------------------------
  {
    name: 'which addresses have accounts, asked through sign-in',
    attempt: async world => {
      const answers = []
      for (const email of [world.victim.email, 'nobody@example.org']) {
        const device_code = newDeviceCode()
        await world.nobody.post('/v1/auth/device-code', { device_code })
        answers.push(await world.send('POST', '/v1/auth/device-code/submit-email', { body: { device_code, email } }))
        answers.push(await world.send('POST', '/v1/auth/device-code/poll', { body: { device_code } }))
      }
      return answers
    },
    expected: { status: 200, body: { status: 'email_sent' } }
  },
  {
    name: 'device codes, guessed by polling',
    env: { RATE_LIMIT: 'on' },
    attempt: async world => {
      const { fields, confirm } = { ...world, ...(await world.requestLink(world.victim.email)) }
      await confirm(fields)
      return afterSixty(() => world.send('POST', '/v1/auth/device-code/poll', { body: { device_code: newDeviceCode() } }))
    },
    expected: refused('rate_limit_exceeded', 429)
  },
  {
    name: 'the code of a sign-in under way, taken over',
    attempt: async world => {
      const { device_code } = await world.requestLink(world.victim.email)
      return world.send('POST', '/v1/auth/device-code', { body: { device_code } })
    },
    expected: refused('device_code_exists', 409)
  },
  {
    name: 'the address of a sign-in under way, replaced by another',
    attempt: async world => {
      const { device_code } = await world.requestLink(world.victim.email)
      return world.send('POST', '/v1/auth/device-code/submit-email', { body: { device_code, email: 'mallory@example.org' } })
    },
    expected: refused('invalid_status', 400),
    harmless: async ({ mails }, t) => t.same(await mails(), [])
  },
  {
    name: 'a link confirmed for the code of another device',
    attempt: async world => {
      const theirs = await world.requestLink(world.victim.email)
      const own = await world.requestLink('mallory@example.org')
      const { token } = theirs.fields
      const mixed = { token: token!, device_code: own.device_code }
      return [await world.submit('/v1/auth/verify', mixed), await world.show(`/v1/auth/verify?${new URLSearchParams(mixed)}`)]
    },
    expected: { status: 404, body: /is not valid/ }
  },
  {
    name: 'tokens of links, guessed, cut off, or made for something else',
    attempt: async world => {
      const { device_code, fields } = await world.requestLink(world.victim.email)
      const links = createLinks({ ...world.config, baseUrl: 'https://x' })
      const id = links.read('verify', fields.token!)!
      const others = ['not-me', 'confirm-email', 'cancel-deletion'] as const
      const wrong = [
        ...others.map(kind => new URL(links.url(kind, id)).searchParams.get('token')!),
        signId(deriveKey('another secret of the same length', 'link verify'), id),
        fields.token!.slice(0, -1),
        `${fields.token}A`,
        id,
        '',
        'A'.repeat(43)
      ]
      return Promise.all(wrong.map(token => world.submit('/v1/auth/verify', { token, device_code })))
    },
    expected: { status: 404, body: /is not valid/ }
  },
  {
    name: 'a link, replayed after it was used',
    attempt: async world => {
      const { fields, device_code, path } = await world.requestLink(world.victim.email)
      await world.confirm(fields)
      await world.poll(device_code)
      return [await world.submit('/v1/auth/verify', fields), await world.show(path)]
    },
    expected: { status: 400, body: /already used/ },
    harmless: async ({ pool }, t) => exactly(t, (await pool.query('select count(*) from cue.session_tokens')).rows, [{ count: 1 }])
  },
  {
    name: 'an account taken by whoever polls faster than its owner confirms',
    attempt: async world => {
      const { device_code } = await world.requestLink(world.victim.email)
      return times(20, () => world.send('POST', '/v1/auth/device-code/poll', { body: { device_code } }))
    },
    expected: { status: 200, body: { status: 'email_sent', session_token: undefined, api_key: undefined } }
  },
  {
    name: 'a mailbox flooded by sign-ins',
    attempt: async world => {
      const answers = await times(12, async i => {
        const device_code = newDeviceCode()
        await world.nobody.post('/v1/auth/device-code', { device_code })
        const email = i % 2 ? 'grace@example.com' : 'GRACE@example.com'
        return world.send('POST', '/v1/auth/device-code/submit-email', { body: { device_code, email }, from: `198.51.100.${i}` })
      })
      return answers.filter(({ status }) => status !== 200)
    },
    expected: refused('rate_limit_exceeded', 429),
    harmless: async ({ mails }, t) => t.equal((await mails()).length, 3)
  },
  // Links about accounts ----------------------------------------------------------------------------------------------------------------
  {
    name: "an account ended, or its deletion cancelled, by guessing ids without the service's signature",
    attempt: async world => {
      const { account } = world
      await world.call('DELETE', '/v1/auth/me', undefined, { 'x-confirm-destructive': 'true' })
      const { rows } = await world.pool.query('select id from cue.deletions')
      const forged = signId(deriveKey('another secret of the same length', 'link not-me'), account.id)
      return [
        ...(await Promise.all(
          [account.id, forged, Buffer.from(account.id.replaceAll('-', ''), 'hex').toString('base64url')].map(token =>
            world.submit('/auth/not-me', { token })
          )
        )),
        await world.submit('/v1/auth/me/cancel-deletion', { token: rows[0].id })
      ]
    },
    expected: { status: 404, body: /no longer valid/ },
    harmless: async ({ call }, t) => exactly(t, await call('GET', '/v1/auth/me'), { status: 200 })
  },
  {
    name: 'an account deleted without the header that confirms it',
    attempt: world =>
      times(2, i => world.send('DELETE', ['/v1/auth/me', '/v1/auth/me?X-Confirm-Destructive=true'][i]!, { bearer: world.account.api_key })),
    expected: refused('confirmation_required', 400)
  },
  // Pages and mails ---------------------------------------------------------------------------------------------------------------------
  {
    name: 'markup in whatever a page repeats',
    attempt: async world => {
      const markup = `"><script>alert(1)</script><img src=x onerror=alert(1)>'`
      const device_code = newDeviceCode()
      await world.nobody.post('/v1/auth/device-code', { device_code })
      const encoded = new URLSearchParams({ code: markup, token: markup, device_code: markup })
      return Promise.all([
        world.submit('/v1/auth/device-code/submit-email', { device_code, email: markup }),
        world.submit('/v1/auth/device-code/submit-email', { device_code: markup, email: `${markup}@example.org` }),
        world.show(`/auth/device?${encoded}`),
        world.show(`/v1/auth/verify?${encoded}`),
        world.show(`/auth/cancel-deletion?${encoded}`),
        world.show(`/auth/not-me?${encoded}`)
      ]).then(answers => answers.map(({ body }) => ({ status: 0, body: /<script|<img|onerror=alert\(1\)>/.test(body) ? body : 'clean' })))
    },
    expected: { body: 'clean' }
  },
  {
    name: 'pages framed, run scripts on, or told to other sites',
    attempt: async world => {
      const { path } = await world.requestLink(world.victim.email)
      return Promise.all([world.show(path), world.show('/auth/device?code=unknown'), world.show('/auth/not-me?token=x')]).then(answers =>
        answers.map(({ headers }) => ({ status: 0, headers }))
      )
    },
    expected: {
      headers: {
        'content-security-policy':
          /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
        'referrer-policy': 'no-referrer',
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store'
      }
    }
  },
  {
    name: 'headers of mails, injected through an address',
    attempt: world =>
      Promise.all(
        [
          'a@example.org\r\nBcc: victim@example.org',
          'a@example.org,victim@example.org',
          '<a@example.org>',
          'a@example.org>\r\nRCPT TO:<victim@example.org',
          '"a\r\nb"@example.org',
          'a@example.org\0'
        ].map(email => world.send('POST', '/v1/auth/register', { body: { email } }))
      ).then(answers => answers.map(answer => ({ ...answer, status: answer.status === 400 ? 422 : answer.status }))),
    expected: { status: 422 },
    harmless: async ({ mails }, t) => t.same(await mails(), [])
  },
  {
    name: "headers and markup of mails, injected through a cue's name",
    attempt: async world => {
      const name = 'x\r\nBcc: victim@example.org\r\nContent-Type: text/html\r\n\r\n<script>alert(1)</script>'
      const { id } = await world.post('/v1/cues', { name, cron: '0 9 * * *', worker: true })
      const execution = await world.post(`/v1/cues/${id}/fire`)
      await world.pool.query(
        `update cue.executions set status = 'missed', started_at = $1, ended_at = $1, claimable_at = null, claim_deadline_at = null`,
        [noon]
      )
      await world.fn.addJob({ queue: 'mails', data: { kind: 'cue_failed', account_id: world.account.id, execution_id: execution.id } })
      const [mail] = await world.mails()
      const { recipients, headers, html, subject } = mail!
      return { status: 0, body: { recipients, bcc: headers.bcc, type: headers['content-type'], subject, script: html.includes('<script') } }
    },
    expected: {
      body: {
        recipients: [String],
        bcc: undefined,
        type: /^multipart\/alternative/,
        subject: 'An execution was missed',
        script: false
      }
    }
  },
  {
    name: 'a NUL, a second value, or a field too many in a form',
    attempt: async world => {
      const { fields } = await world.requestLink(world.victim.email)
      const send = (payload: string) =>
        world.nobody.call('POST', '/v1/auth/verify', payload, { ...formHeaders, accept: 'application/json' })
      return Promise.all([
        send(`${form(fields)}%00`),
        send(`${form(fields)}&admin=1`),
        send(`${form(fields)}&__proto__=1`),
        send(`token=${fields.token}`),
        send('x'.repeat(20_000))
      ]).then(answers => answers.map(({ status, body }) => ({ status: [400, 413, 422].includes(status) ? 422 : status, body })))
    },
    expected: { status: 422, body: { error: { code: /validation_error|payload_too_large/ } } },
    harmless: async ({ pool }, t) => exactly(t, (await pool.query('select status from cue.device_codes')).rows, [{ status: 'email_sent' }])
  }
]

for (const { name, env, attempt, expected, harmless } of attacks) {
  t.test(name, async t => {
    const world = await setup(t, env)
    const answers = [await attempt(world)].flat()
    t.ok(answers.length > 0)
    for (const answer of answers) exactly(t, answer, expected)
    await harmless?.(world, t)
  })
}
