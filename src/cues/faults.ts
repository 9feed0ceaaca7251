/** All faults of a request in one refusal. */
import type { FastifyRequest } from 'fastify'
import { type ApiError, type Detail, type ErrorCode, invalid, toApiError } from '../errors.ts'
import { isObject } from '../json/canonical-json.ts'

const MAX_FAULTS = 1000

export type Faults = { code: ErrorCode; detail: Detail[] }
type Place = (string | number)[]

/** The entries of `detail` for a refusal. @throws the error unless it is one */
export const faultsOf = (error: unknown, place: Place = ['body']): Faults => {
  const { code, message, detail, statusCode } = toApiError(error)
  if (statusCode >= 500) throw error
  const placed = detail?.map(entry => ({ ...entry, loc: [...place, ...entry.loc.slice(1)] }))
  return { code, detail: placed ?? [faultOf(place, code, message)] }
}

/** A refusal whose message may begin with the field. */
export const faultOf = (place: Place, type: ErrorCode, message: string): Detail => {
  const [start = '', field, colon] = /^((?:schedule|callback|on_failure)\b[.\w]*)(: )?/.exec(message) ?? []
  const path = field?.split('.') ?? (type === 'invalid_payload_size' ? ['payload'] : [])
  return { type, loc: [...place, ...path], msg: colon ? message.slice(start.length) : message, input: null }
}

/** One refusal with the code that all share; otherwise it is validation_error, and the type of each entry names its code. */
export const together = (faults: readonly Faults[]): ApiError => {
  const codes = new Set(faults.map(({ code }) => code))
  return invalid(faults.flatMap(({ detail }) => detail).slice(0, MAX_FAULTS), codes.size === 1 ? faults[0]!.code : undefined)
}

/** Options of a route whose handler calls `checkTogether`: it gets bodies that the schema refuses, but no other such request. */
export const allFaults = {
  attachValidation: true,
  preHandler: async (request: FastifyRequest) => {
    const { validationError, body } = request
    if (!validationError) return
    if (validationError.validationContext !== 'body' || !isObject(body)) throw validationError
    // Fastify has stopped at the body.
    for (const part of ['querystring', 'headers'] as const) {
      const { error } = (request.getValidationFunction(part)?.(part === 'headers' ? request.headers : request.query) ?? {}) as {
        error?: Error
      }
      if (error) throw error
    }
  }
}

/**
 * Makes checks of a body whose route has `allFaults`. If its schema or a check refuses it, makes the `remaining` one as well, so that all
 * faults are reported at once.
 *
 * @throws ApiError
 */
export const checkTogether = async (
  { body, validationError }: Pick<FastifyRequest, 'body' | 'validationError'>,
  checks: readonly (() => unknown)[],
  remaining: () => unknown
): Promise<void> => {
  const error = validationError as ApiError | null | undefined
  if (error && !error.detail) throw error
  const errors: unknown[] = error ? [error] : []
  if (error) removeFaulty(body as object, error.detail!)
  const attempt = async (check: () => unknown) => {
    try {
      await check()
    } catch (thrown) {
      faultsOf(thrown) // anything but a refusal ends the request
      // Whether the cue exists is not a fault of the body.
      if (toApiError(thrown).statusCode !== 404) errors.push(thrown)
    }
  }
  for (const check of checks) await attempt(check)
  if (errors.length === 0) return
  await attempt(remaining)
  if (errors.length === 1) throw errors[0]
  const seen = new Set<string>()
  const faults = errors
    .map(thrown => faultsOf(thrown))
    .filter(({ detail }) => {
      const subjects = detail.map(subjectOf)
      const isNew = subjects.some(subject => !seen.has(subject))
      for (const subject of subjects) seen.add(subject)
      return isNew
    })
  throw together(faults)
}

/** A refused member of a schedule must not be reported a second time as missing; likewise of a callback. */
const subjects: Record<string, string> = {
  cron: 'schedule',
  crons: 'schedule',
  every: 'schedule',
  at: 'schedule',
  timezone: 'schedule',
  callback_url: 'callback',
  worker: 'callback',
  transport: 'callback'
}
const subjectOf = ({ loc: [, name = ''] }: Detail): string => subjects[name] ?? String(name)

/** Removes members that are faulty, or contain what is. */
const removeFaulty = (body: object, detail: readonly Detail[]): void => {
  for (const { loc } of detail) if (loc[1] !== undefined) delete (body as Record<string | number, unknown>)[loc[1]]
}
