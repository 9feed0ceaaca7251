/** Spans of the statements of a request: SQL functions, and queries of views. */
import type { AsyncLocalStorage } from 'node:async_hooks'
import { type Attributes, ROOT_CONTEXT, type Span, SpanKind, type Tracer, trace } from '@opentelemetry/api'
import {
  ATTR_DB_COLLECTION_NAME,
  ATTR_DB_OPERATION_NAME,
  ATTR_DB_RESPONSE_STATUS_CODE,
  ATTR_DB_STORED_PROCEDURE_NAME,
  ATTR_DB_SYSTEM_NAME,
  DB_SYSTEM_NAME_VALUE_POSTGRESQL
} from '@opentelemetry/semantic-conventions'
import type { LogEvent } from 'kysely'
import pg from 'pg'
import type { Functions } from '../database/functions.ts'
import { codeOf, executionId, fail, idsIn } from './attributes.ts'
import type { Call, Traces } from './traces.ts'

const postgres = { [ATTR_DB_SYSTEM_NAME]: DB_SYSTEM_NAME_VALUE_POSTGRESQL }

/** `cue.fire_cue` for `fireCue`. */
const sqlName = (name: string) => `cue.${name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)}`

/** Begins the span of a SQL function, in the trace of its parent or in a new one. */
export const beginCall = (tracer: Tracer, name: string, parent?: Span, attributes: Attributes = {}): Span => {
  const context = parent ? trace.setSpan(ROOT_CONTEXT, parent) : ROOT_CONTEXT
  const described = { ...postgres, [ATTR_DB_STORED_PROCEDURE_NAME]: sqlName(name), ...attributes }
  return tracer.startSpan(sqlName(name), { kind: SpanKind.CLIENT, attributes: described }, context)
}

/** Ends a span with the call that it is for. */
export const endWith = async <T>(span: Span, result: Promise<T>): Promise<T> => {
  try {
    return await result
  } catch (error) {
    failCall(span, error)
    throw error
  } finally {
    span.end()
  }
}

const failCall = (span: Span, error: unknown) => {
  fail(span, codeOf(error))
  if (error instanceof pg.DatabaseError) span.setAttribute(ATTR_DB_RESPONSE_STATUS_CODE, codeOf(error))
}

export const createCallSpans = (tracer: Tracer, current: AsyncLocalStorage<Span>): Pick<Traces, 'functions' | 'call' | 'queries'> => {
  const traced =
    (name: string, call: Call): Call =>
    (...args) => {
      const parent = current.getStore()
      // What runs in the background, and requests that are not sampled.
      if (!parent?.isRecording()) return call(...args)
      const span = beginCall(tracer, name, parent, idsIn(args[0]))
      return endWith(
        span,
        call(...args).then(result => {
          // An execution that was created or changed: its attempts are in the trace of its id.
          if (typeof result?.cue_id === 'string' && typeof result.id === 'string') span.setAttribute(executionId, result.id)
          return result
        })
      )
    }

  return {
    functions: fn => {
      const spans = new Map<string, Call>()
      // Not a copy: a transaction's functions are a proxy themselves.
      return new Proxy(fn, {
        get: (target, name: keyof Functions) => {
          const call = target[name] as Call | undefined
          if (!call) return call
          const span = spans.get(name) ?? traced(name, call)
          spans.set(name, span)
          return span
        }
      })
    },
    call: (name, call) => traced(name, call) as typeof call,
    queries: ({ query, queryDurationMillis, ...event }: LogEvent) => {
      const parent = current.getStore()
      if (!parent?.isRecording()) return
      const view = /\bfrom "cue"\."(\w+)"/.exec(query.sql)?.[1]
      const attributes = { ...postgres, [ATTR_DB_OPERATION_NAME]: 'SELECT', ...(view && { [ATTR_DB_COLLECTION_NAME]: `cue.${view}` }) }
      const startTime = performance.timeOrigin + performance.now() - queryDurationMillis
      const context = trace.setSpan(ROOT_CONTEXT, parent)
      const span = tracer.startSpan(view ? `SELECT cue.${view}` : 'SELECT', { kind: SpanKind.CLIENT, attributes, startTime }, context)
      if (event.level === 'error') failCall(span, event.error)
      span.end()
    }
  }
}
