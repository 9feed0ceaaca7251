/** What log lines may contain. */
import { isAway } from '../errors.ts'

/** Options of every logger. Lines carry no headers, bodies or query strings, and of errors only what a developer needs. */
export const loggerOptions = (level: string) => ({
  level,
  serializers: { err: serializeError },
  redact: { paths: ['authorization', '*.authorization', 'headers', '*.headers', 'body', '*.body'], remove: true }
})

type Loggable = Error & { code?: string; where?: string }
type Logged = { type: string; message: string; stack: string; [key: string]: unknown }

/** Not the fields of a database error that repeat a row's values. */
const serializeError = (error: Loggable): Logged => ({
  type: error.name,
  message: error.message,
  code: error.code,
  where: error.where,
  stack: isAway(error) ? '' : (error.stack ?? ''), // where a lost database was missed says nothing
  cause: error.cause instanceof Error ? serializeError(error.cause) : undefined
})

/** Log lines are written in batches of up to 100 ms: one write per line would cost as much as the rest of a request. */
export const together = { bytes: 8192, ms: 100 }
