/** Logger options: what log lines may contain. */
import { isAway } from '../errors.ts'

/** Options for all loggers. Lines contain no headers, bodies or query strings, and only the useful part of errors. */
export const loggerOptions = (level: string) => ({
  level,
  serializers: { err: serializeError },
  redact: { paths: ['authorization', '*.authorization', 'headers', '*.headers', 'body', '*.body'], remove: true }
})

type Loggable = Error & { code?: string; where?: string }
type Logged = { type: string; message: string; stack: string; [key: string]: unknown }

/** Omits the fields of database errors that repeat values of rows. */
const serializeError = (error: Loggable): Logged => ({
  type: error.name,
  message: error.message,
  code: error.code,
  where: error.where,
  stack: isAway(error) || error.code === 'unavailable' ? '' : (error.stack ?? ''), // the stack of a lost connection is useless
  cause: error.cause instanceof Error ? serializeError(error.cause) : undefined
})

/** A write per line would cost as much as the rest of a request. */
const together = { characters: 8192, ms: 100 }

/** Passes lines on many at a time, at most 100 ms late. `flush` passes on those that wait. */
export const gatherLines = (pass: (lines: string) => void) => {
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (lines) pass(lines)
    lines = ''
  }
  const write = (line: string) => {
    lines += line
    if (lines.length >= together.characters) flush()
    else timer ??= setTimeout(flush, together.ms)
  }
  return { write, flush }
}
