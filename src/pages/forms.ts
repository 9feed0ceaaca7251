/** What lets people's browsers talk to routes of the API: bodies of plain HTML forms are read, and a browser is answered with a page, also in refusal. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, toApiError } from '../errors.ts'
import { html } from './html.ts'
import { type Page, sendPage } from './page.ts'

const formType = 'application/x-www-form-urlencoded'

/** For the `consumes` of routes that take both. */
export const jsonOrForm = ['application/json', formType]

/** Lets the routes of a plugin take forms besides JSON. */
export const acceptForms = (app: Pick<FastifyInstance, 'addContentTypeParser'>): void => {
  app.addContentTypeParser(formType, { parseAs: 'string', bodyLimit: 16 * 1024 }, async (_: FastifyRequest, body: string) => {
    const fields = Object.fromEntries(new URLSearchParams(body))
    // PostgreSQL takes no NUL in a text.
    if (JSON.stringify(fields).includes('\\u0000')) throw new ApiError('validation_error', 'The form contains a NUL character.')
    return fields
  })
}

/** Whether a page is asked for, as browsers do when they follow a link or post a form. */
export const asksForPage = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean => /\btext\/html\b/i.test(headers.accept ?? '')

/**
 * The error handler of a route that people see: browsers are refused with a page, programs with JSON as everywhere. Who does not say what he
 * is gets a page where a GET would have given one, unless it is his query that is at fault.
 * `special` makes the page of some codes; what it gives nothing for gets the common one.
 */
export const pageErrors =
  (special: (error: ApiError, request: FastifyRequest) => Page | undefined = () => undefined) =>
  (thrown: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const error = toApiError(thrown)
    const isOpen = request.method === 'GET' && error.code !== 'validation_error' && /\*\/\*/.test(request.headers.accept ?? '*/*')
    if (!isOpen && !asksForPage(request)) throw thrown
    if (error.statusCode >= 500) request.log.error({ err: error.cause ?? error, code: error.code }, 'request failed')
    return sendPage(reply.headers(error.headers), error.statusCode, special(error, request) ?? common(error))
  }

const common = ({ code, headers }: ApiError): Page => {
  const minutes = Math.ceil(Number(headers['retry-after'] ?? 60) / 60)
  const [title, text] = (
    {
      rate_limit_exceeded: ['Too many attempts', `Please wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`}, then try again.`],
      unavailable: ['Temporarily unavailable', 'Nothing was changed. Please try again shortly.'],
      validation_error: ['This link is incomplete', 'Please open the complete link, from beginning to end.']
    } as Record<string, [string, string]>
  )[code] ?? ['Something went wrong', 'Nothing was changed. The error has been logged.']
  return { title, body: html`<p>${text}</p>` }
}
