/** Starts traces. Unless they are on, nothing of OpenTelemetry's SDK is loaded. */
import type { FastifyBaseLogger } from 'fastify'
import { loadTraceSettings } from './settings.ts'
import { type Traces, untraced } from './traces.ts'

/**
 * Starts exporting spans if the environment names a collector. Each thread has its own.
 *
 * @param log is warned when the collector accepts no spans, and when it does again
 * @throws {ConfigError} naming an invalid variable
 */
export const startTraces = async (env: NodeJS.ProcessEnv, log?: Pick<FastifyBaseLogger, 'warn'>): Promise<Traces> => {
  const settings = loadTraceSettings(env)
  if (!settings) return untraced
  const { createTraces } = await import('./opentelemetry.ts')
  return createTraces(settings, log)
}
