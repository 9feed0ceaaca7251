import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace'

const uuid = /^([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?:_failed)?$/

/** The trace of an execution or alert, if this is its id or that of the execution's on_failure webhook. */
export const traceOf = (id: unknown): string | undefined => (typeof id === 'string' ? uuid.exec(id)?.[1]?.replaceAll('-', '') : undefined)

export type Ids = ReturnType<typeof createIds>

/** Makes random ids, except that the trace of an execution or an alert has its id: whichever replica sends an attempt, all are in one trace. */
export const createIds = () => {
  const random = new RandomIdGenerator()
  let traceId: string | undefined
  return {
    generateTraceId: () => traceId ?? random.generateTraceId(),
    generateSpanId: () => random.generateSpanId(),
    /** Calls `begin`, which begins a span, for the trace of this id if it has one. */
    within: <T>(id: string | undefined, begin: () => T): T => {
      traceId = traceOf(id)
      try {
        return begin()
      } finally {
        traceId = undefined
      }
    }
  } satisfies IdGenerator & { within: unknown }
}
