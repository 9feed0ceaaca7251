/** Lets browsers use API routes: parses HTML forms, and responds with pages, also for errors. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, toApiError } from '../errors.ts'
import { html } from './html.ts'
import { type Page, sendPage } from './page.ts'

const formType = 'application/x-www-form-urlencoded'

/** For `consumes` of routes that accept both. */
export const jsonOrForm = ['application/json', formType]

/** Makes the routes of a plugin accept forms as well as JSON. */
export const acceptForms = (app: Pick<FastifyInstance, 'addContentTypeParser'>): void => {
  app.addContentTypeParser(formType, { parseAs: 'string', bodyLimit: 16 * 1024 }, async (_: FastifyRequest, body: string) => {
    const fields = Object.fromEntries(new URLSearchParams(body))
    // PostgreSQL text cannot contain NUL.
    if (JSON.stringify(fields).includes('\\u0000')) throw new ApiError('validation_error', 'The form contains a NUL character.')
    return fields
  })
}

/** Whether the client asks for a page, as browsers do for links and forms. */
export const asksForPage = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean => /\btext\/html\b/i.test(headers.accept ?? '')

/**
 * Creates the error handler of a route with pages: browsers get a page, programs get JSON. A client that states no preference gets a page
 * for GET requests, except for query errors. `special` returns the page for some codes; for others it returns undefined, and the default
 * page is sent.
 */
export const pageErrors =
  (special: (error: ApiError, request: FastifyRequest) => Page | undefined = () => undefined) =>
  (thrown: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const error = toApiError(thrown, request.method)
    const isOpen = request.method === 'GET' && error.code !== 'validation_error' && /\*\/\*/.test(request.headers.accept ?? '*/*')
    if (!isOpen && !asksForPage(request)) throw thrown
    if (error.statusCode >= 500) request.log.error({ err: error.cause ?? error, code: error.code }, 'request failed')
    return sendPage(reply.headers(error.headers), error.statusCode, special(error, request) ?? common(error))
  }

const common = ({ code, headers, message }: ApiError): Page => {
  const effect = message.includes('unknown') ? 'It is unknown whether this took effect.' : 'Nothing was changed.'
  const minutes = Math.ceil(Number(headers['retry-after'] ?? 60) / 60)
  const [title, text] = (
    {
      rate_limit_exceeded: ['Too many attempts', `Please wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`}, then try again.`],
      unavailable: ['Temporarily unavailable', `${effect} Please try again shortly.`],
      validation_error: ['This link is incomplete', 'Please open the complete link, from beginning to end.']
    } as Record<string, [string, string]>
  )[code] ?? ['Something went wrong', 'The error has been logged.']
  return { title, body: html`<p>${text}</p>` }
}
