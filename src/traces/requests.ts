/** A span for each request to the API, which continues the caller's trace. */
import type { AsyncLocalStorage } from 'node:async_hooks'
import { defaultTextMapGetter, defaultTextMapSetter, ROOT_CONTEXT, type Span, SpanKind, type Tracer, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_URL_SCHEME
} from '@opentelemetry/semantic-conventions'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { accountId, codeOf, fail, idsIn } from './attributes.ts'
import type { Traces } from './traces.ts'

const propagator = new W3CTraceContextPropagator()

/** Headers that continue a span's trace. */
export const headersOf = (span: Span): Record<string, string> => {
  const headers = {}
  propagator.inject(trace.setSpan(ROOT_CONTEXT, span), headers, defaultTextMapSetter)
  return headers
}

export const createRequestSpans = (tracer: Tracer, current: AsyncLocalStorage<Span>): Pick<Traces, 'requests' | 'headers'> => {
  const spans = new WeakMap<FastifyRequest, Span>()
  const errors = new WeakMap<FastifyRequest, string>()

  const begin = (request: FastifyRequest): Span => {
    const { method, headers, protocol, routeOptions, id } = request
    // The route's pattern rather than the path, which may contain a token.
    const route = routeOptions.url
    const attributes = {
      [ATTR_HTTP_REQUEST_METHOD]: method,
      [ATTR_URL_SCHEME]: protocol,
      'pgcue.request.id': id,
      ...(route !== undefined && { [ATTR_HTTP_ROUTE]: route })
    }
    const name = route === undefined ? method : `${method} ${route}`
    return tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter))
  }

  return {
    requests: fp(
      async (app: FastifyInstance) => {
        app.addHook('onRequest', (request, _reply, done) => {
          const span = begin(request)
          spans.set(request, span)
          current.run(span, done)
        })
        app.addHook('onError', async (request, _reply, error) => void errors.set(request, codeOf(error)))
        // The hooks that follow, which log the request, are within its span too.
        app.addHook('onResponse', (request, { statusCode }, done) => {
          const span = spans.get(request)!
          span.setAttributes({
            [ATTR_HTTP_RESPONSE_STATUS_CODE]: statusCode,
            ...(request.caller && { [accountId]: request.caller.account_id, ...idsIn(request.params) })
          })
          if (statusCode >= 500) fail(span, errors.get(request) ?? String(statusCode))
          span.end()
          current.run(span, done)
        })
        app.addHook('onRequestAbort', (request, done) => {
          const span = spans.get(request)!
          fail(span, 'aborted')
          span.end()
          current.run(span, done)
        })
      },
      { name: 'traces' }
    ),
    headers: () => {
      const span = current.getStore()
      return span ? headersOf(span) : {}
    }
  }
}
