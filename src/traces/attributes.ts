/** Attributes of pgcue's own, and how spans fail. Payloads, headers, paths of callbacks and error messages may be secret: none is in a span. */
import { type Attributes, type Span, SpanStatusCode } from '@opentelemetry/api'
import { ATTR_ERROR_TYPE } from '@opentelemetry/semantic-conventions'

export const accountId = 'pgcue.account.id'
export const cueId = 'pgcue.cue.id'
export const executionId = 'pgcue.execution.id'

/** The ids among the members of a request's path, or of a function's arguments. */
export const idsIn = (members: unknown): Attributes => {
  const { cue_id, execution_id } = (members ?? {}) as Record<string, unknown>
  return {
    ...(typeof cue_id === 'string' && { [cueId]: cue_id.slice(0, 100) }),
    ...(typeof execution_id === 'string' && { [executionId]: execution_id.slice(0, 100) })
  }
}

/** The code of an error: the SQLSTATE, the API's code, or that of the system; otherwise its class. */
export const codeOf = (error: unknown): string => {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return typeof code === 'string' ? code : String(name ?? '_OTHER')
}

/** @param message must contain nothing secret */
export const fail = (span: Span, type: string, message?: string): void => {
  span.setAttribute(ATTR_ERROR_TYPE, type)
  span.setStatus({ code: SpanStatusCode.ERROR, message })
}
