/** Sign-in by device code: the device creates a code and polls; a person enters an email address and confirms with a link. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { outboxOf } from '../directories.ts'
import { ApiError } from '../errors.ts'
import { subjectOf } from '../http/address-subject.ts'
import { acceptForms, asksForPage, jsonOrForm, pageErrors } from '../pages/forms.ts'
import { sendPage } from '../pages/page.ts'
import * as pages from '../pages/sign-in.ts'
import { createKey, decryptKey, encryptKey, hashKey, storedKey } from './keys.ts'
import { createLinks } from './links.ts'
import { createToken } from './sessions.ts'
import * as schemas from './sign-in-schemas.ts'

const path = '/v1/auth/device-code'

const routes: FastifyPluginAsyncTypebox = async app => {
  const { config, fn } = app
  const links = createLinks(config)
  const root = new URL(config.baseUrl).pathname.replace(/\/$/, '')
  acceptForms(app)

  app.post(
    path,
    {
      config: { public: true, errors: ['device_code_exists'] },
      schema: {
        operationId: 'createDeviceCode',
        summary: 'Start the sign-in of a device',
        description: 'The device makes up the code, shows `verification_url` to a person, and polls `POST /v1/auth/device-code/poll`.',
        body: schemas.CreateDeviceCode,
        response: { 201: schemas.CreatedDeviceCode }
      }
    },
    async (request, reply) => {
      const { device_code } = request.body
      const address = config.rateLimit ? subjectOf(request.ip) : null
      await fn.createDeviceCode({ code_hash: hashKey(device_code), address, ip: request.ip })
      return reply.code(201).send({
        device_code,
        verification_url: `${config.baseUrl}/auth/device?${new URLSearchParams({ code: device_code })}`,
        expires_in: 900
      })
    }
  )

  app.post(
    `${path}/poll`,
    {
      config: { public: true },
      schema: {
        operationId: 'pollDeviceCode',
        summary: 'Poll the status of a device sign-in',
        description: 'Once approved, the response has a one-time token, once.',
        body: schemas.PollDeviceCode,
        response: { 200: schemas.Polled }
      }
    },
    async request => {
      const session_token = createToken(config.cell)
      const { status, email, account_id, key_ciphertext } = await fn.pollDevice({
        code_hash: hashKey(request.body.device_code),
        token_hash: hashKey(session_token),
        limited: config.rateLimit
      })
      if (status !== 'approved' || !email) return { status }
      const api_key = key_ciphertext ? decryptKey(config.encryptionKeys, key_ciphertext, `api_key ${account_id}`) : undefined
      return { status, email, session_token, api_key }
    }
  )

  app.get(
    '/auth/device',
    {
      config: { exempt: true, anyQuery: asksForPage },
      schema: {
        operationId: 'showDevicePage',
        summary: 'Page where a person enters an email address',
        description: 'The address that a device shows.',
        querystring: schemas.DevicePage,
        response: { 200: schemas.HtmlPage }
      },
      errorHandler: pageErrors(problem)
    },
    async (request, reply) => {
      const { code: device_code } = request.query
      const status = await fn.deviceCodeStatus({ code_hash: hashKey(device_code) })
      if (status === 'expired') throw new ApiError('device_code_expired', 'Device code unknown or expired. Start the sign-in again.')
      if (status === 'email_sent') return sendPage(reply, 200, pages.mailSent(outboxOf(app.config)))
      if (status !== 'pending') return sendPage(reply, 200, pages.signedIn)
      return sendPage(reply, 200, pages.askEmail({ action: `${root}${path}/submit-email`, device_code }))
    }
  )

  app.post(
    `${path}/submit-email`,
    {
      config: { public: true, errors: ['device_code_not_found', 'device_code_expired', 'invalid_status'] },
      schema: {
        operationId: 'submitEmail',
        summary: 'Send the link that confirms the sign-in',
        description: 'The device is signed in when the person presses the button on the page of that link.',
        consumes: jsonOrForm,
        body: schemas.SubmitEmail,
        response: { 200: schemas.EmailSent }
      },
      errorHandler: pageErrors((error, request) => {
        if (error.code === 'invalid_status') return pages.mailSent(outboxOf(app.config))
        const { device_code, email } = (request.body ?? {}) as { device_code?: string; email?: string }
        const text = askAgain[error.code]
        if (!text || !device_code) return problem(error)
        return pages.askEmail({ action: `${root}${path}/submit-email`, device_code, email, problem: text })
      })
    },
    async (request, reply) => {
      const { device_code, email } = request.body
      const code_hash = hashKey(device_code)
      const code_ciphertext = encryptKey(config.encryptionKeys, device_code, `device_code ${code_hash.toString('hex')}`)
      await fn.sendDeviceLink({ code_hash, email, code_ciphertext })
      return asksForPage(request) ? sendPage(reply, 200, pages.mailSent(outboxOf(app.config), email)) : { status: 'email_sent' as const }
    }
  )

  app.get(
    '/v1/auth/verify',
    {
      config: { exempt: true, anyQuery: asksForPage },
      schema: {
        operationId: 'showVerifyPage',
        summary: 'Page of the mailed link, with a button that confirms the sign-in. Opening it changes nothing',
        description: 'Mail programs may open links by themselves; only the button signs in.',
        querystring: schemas.VerifyLink,
        response: { 200: schemas.HtmlPage }
      },
      errorHandler: pageErrors(problem)
    },
    async (request, reply) => {
      const { token, device_code } = request.query
      const link = await fn.deviceLink({ code_hash: hashKey(device_code), link_id: linkId(token) })
      if (!link) throw unknownLink()
      if (link.status === 'expired') throw new ApiError('device_code_expired', 'This link has expired. Start the sign-in again.')
      if (link.status !== 'email_sent') throw new ApiError('invalid_status', 'This link was already used. Start the sign-in again.')
      return sendPage(reply, 200, pages.confirmSignIn({ action: `${root}/v1/auth/verify`, token, device_code, link }))
    }
  )

  app.post(
    '/v1/auth/verify',
    { config: { public: true }, schema: { hide: true, body: schemas.ConfirmLink }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      const { token, device_code } = request.body
      const api_key = createKey(config.cell)
      const account_id = await fn.newAccountId({})
      await fn.approveDevice({
        account_id,
        code_hash: hashKey(device_code),
        link_id: linkId(token),
        ...storedKey(config.encryptionKeys, api_key, account_id),
        ip: request.ip
      })
      return sendPage(reply, 200, pages.signedIn)
    }
  )

  function linkId(token: string): string {
    const id = links.read('verify', token)
    if (!id) throw unknownLink()
    return id
  }
}

export default routes

const unknownLink = () => new ApiError('device_code_not_found', 'Link not found. Start the sign-in again on the device.')

const problem = ({ code }: ApiError) =>
  code === 'device_code_not_found'
    ? pages.signInUnknown
    : code === 'device_code_expired'
      ? pages.signInExpired
      : code === 'invalid_status'
        ? pages.linkUsed
        : undefined

/** Errors after which the form is shown again, with this text. */
const askAgain: Partial<Record<ApiError['code'], string>> = {
  validation_error: 'Enter a valid email address.',
  rate_limit_exceeded: 'Too many sign-in mails. Please wait, then try again.'
}
