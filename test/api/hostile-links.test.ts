import { createLinks } from '../../src/accounts/links.ts'
import { deriveKey, signId } from '../../src/deliveries/signature.ts'
import { exactly } from '../support/exactly.ts'
import { type Attack, afterSixty, noon, refused, times, tryAll } from '../support/hostile-stage.ts'
import { form, formHeaders, newDeviceCode } from '../support/sign-in.ts'
import { forOneCell } from '../support/two-cells.ts'

const attacks: Attack[] = [
  // Device codes ------------------------------------------------------------------------------------------------------------------------
  {
    name: 'enumerating accounts through sign-in',
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
    name: 'guessing device codes by polling',
    env: { RATE_LIMIT: 'on' },
    skip: forOneCell,
    attempt: async world => {
      const { fields, confirm } = { ...world, ...(await world.requestLink(world.victim.email)) }
      await confirm(fields)
      return afterSixty(() => world.send('POST', '/v1/auth/device-code/poll', { body: { device_code: newDeviceCode() } }))
    },
    expected: refused('rate_limit_exceeded', 429)
  },
  {
    name: 'taking over the code of a pending sign-in',
    attempt: async world => {
      const { device_code } = await world.requestLink(world.victim.email)
      return world.send('POST', '/v1/auth/device-code', { body: { device_code } })
    },
    expected: refused('device_code_exists', 409)
  },
  {
    name: 'replacing the address of a pending sign-in',
    attempt: async world => {
      const { device_code } = await world.requestLink(world.victim.email)
      return world.send('POST', '/v1/auth/device-code/submit-email', { body: { device_code, email: 'mallory@example.org' } })
    },
    expected: refused('invalid_status', 400),
    harmless: async ({ mails }, t) => t.same(await mails(), [])
  },
  {
    name: 'confirming a link for the code of another device',
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
    name: 'link tokens that are guessed, truncated or made for another purpose',
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
    name: 'reusing a link',
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
    name: 'taking an account by polling faster than its owner confirms',
    attempt: async world => {
      const { device_code } = await world.requestLink(world.victim.email)
      return times(20, () => world.send('POST', '/v1/auth/device-code/poll', { body: { device_code } }))
    },
    expected: { status: 200, body: { status: 'email_sent', session_token: undefined, api_key: undefined } }
  },
  {
    name: 'flooding a mailbox with sign-ins',
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
    name: 'deleting an account, or cancelling its deletion, by guessing ids without a valid signature',
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
    name: 'deleting an account without the confirmation header',
    attempt: world => times(1, () => world.send('DELETE', '/v1/auth/me', { bearer: world.account.api_key })),
    expected: refused('confirmation_required', 400)
  },
  // Pages and mails ---------------------------------------------------------------------------------------------------------------------
  {
    name: 'injecting markup into values that a page repeats',
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
    name: 'framing pages, running scripts on them, or leaking their URLs',
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
    name: 'injecting mail headers through an address',
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
    name: "injecting mail headers and markup through a cue's name",
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
    name: 'a NUL, a duplicate field or an extra field in a form',
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

tryAll(attacks)
