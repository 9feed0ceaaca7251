/** The variables of OpenTelemetry that pgcue reads itself; the exporter reads OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION and _CERTIFICATE. */
import { readers } from '../config.ts'

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio'
] as const

export type TraceSettings = NonNullable<ReturnType<typeof loadTraceSettings>>

/**
 * Returns null unless a collector is named.
 * @throws {ConfigError} for the first invalid variable
 */
export const loadTraceSettings = (env: NodeJS.ProcessEnv) => {
  const { read, integer, webUrl } = readers(env)
  const base = webUrl('OTEL_EXPORTER_OTLP_ENDPOINT', null)
  const url = webUrl('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', base && `${base}/v1/traces`)
  if (url === null) return null
  for (const name of ['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'])
    read(name, null, 'must be http/protobuf, the protocol that pgcue sends traces with', value => value === 'http/protobuf' || undefined)
  const queue = integer('OTEL_BSP_MAX_QUEUE_SIZE', 2048, 1, 1_000_000)
  return {
    url,
    sampler: read('OTEL_TRACES_SAMPLER', 'parentbased_always_on', `must be one of ${samplers.join(', ')}`, value =>
      samplers.find(name => name === value)
    ),
    ratio: read('OTEL_TRACES_SAMPLER_ARG', 1, 'must be a number from 0 to 1', value => {
      const ratio = Number(value)
      return ratio >= 0 && ratio <= 1 ? ratio : undefined
    }),
    /** How finished spans are gathered for the exporter; those beyond the queue are dropped. */
    batches: {
      maxQueueSize: queue,
      maxExportBatchSize: integer('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', Math.min(512, queue), 1, queue),
      scheduledDelayMillis: integer('OTEL_BSP_SCHEDULE_DELAY', 5000, 1, 3_600_000),
      exportTimeoutMillis: integer('OTEL_BSP_EXPORT_TIMEOUT', 30_000, 1, 3_600_000)
    }
  }
}
