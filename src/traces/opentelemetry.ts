/** The SDK: what samples, gathers and exports spans. Loaded only if traces are on. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Span } from '@opentelemetry/api'
import { ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider
} from '@opentelemetry/sdk-trace'
import { ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions'
import type { FastifyBaseLogger } from 'fastify'
import { version } from '../config.ts'
import { createCallSpans } from './calls.ts'
import { createIds, traceOf } from './ids.ts'
import { createRequestSpans } from './requests.ts'
import type { TraceSettings } from './settings.ts'
import type { Traces } from './traces.ts'
import { createWebhookSpans } from './webhooks.ts'

/** Time for the last spans to be exported; less than a stopping process has left. */
const flushMs = 3000

type Log = Pick<FastifyBaseLogger, 'warn'>

export const createTraces = (settings: TraceSettings, log?: Log): Traces => {
  const ids = createIds()
  const provider = new TracerProvider({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last.
    resource: defaultResource()
      .merge(resourceFromAttributes({ [ATTR_SERVICE_NAME]: 'pgcue', [ATTR_SERVICE_VERSION]: version }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(settings),
    idGenerator: ids,
    spanProcessors: [
      new BatchSpanProcessor({ ...settings.batches, exporter: reporting(new OTLPTraceExporter({ url: settings.url }), log) })
    ]
  })
  const tracer = provider.getTracer('pgcue', version)
  const current = new AsyncLocalStorage<Span>()
  return {
    ...createRequestSpans(tracer, current),
    ...createCallSpans(tracer, current),
    ...createWebhookSpans(tracer, ids),
    line: createLine(current),
    stop: (withinMs = flushMs) => Promise.race([provider.shutdown().catch(() => {}), delay(withinMs)])
  }
}

const createLine =
  (current: AsyncLocalStorage<Span>): Traces['line'] =>
  members => {
    const span = current.getStore()?.spanContext()
    const trace_id = span ? span.traceId : traceOf((members as { execution_id?: unknown }).execution_id)
    return { ...members, ...(trace_id && { trace_id }), ...(span && { span_id: span.spanId }) }
  }

const samplerOf = ({ sampler, ratio }: TraceSettings): Sampler => {
  const name = sampler.replace('parentbased_', '')
  const root =
    name === 'always_on' ? new AlwaysOnSampler() : name === 'always_off' ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(ratio)
  return name === sampler ? root : new ParentBasedSampler({ root })
}

/** Logs when the collector starts and stops accepting spans. */
const reporting = (exporter: SpanExporter, log?: Log): SpanExporter => {
  let isFailing = false
  const note = (code: ExportResultCode, error?: Error) => {
    if (isFailing === (code === ExportResultCode.FAILED)) return
    isFailing = !isFailing
    // The error's other members include the response.
    if (isFailing) log?.warn({ reason: error?.message }, 'traces lost: the collector accepts none')
    else log?.warn('the collector accepts traces again')
  }
  return {
    export: (spans, done) =>
      exporter.export(spans, result => {
        note(result.code, result.error)
        done(result)
      }),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown()
  }
}
