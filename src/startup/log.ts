/** Logger options: what log lines may contain. */
import { isUnavailable } from '../errors.ts'

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
  stack: isUnavailable(error) || error.code === 'unavailable' ? '' : (error.stack ?? ''), // the stack of a lost connection is useless
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

/** Messages of level info that people want: both are about a failure, or a mail to open. */
const shown = new Set(['attempt ended', 'mail written to the outbox; set SMTP_URL to send mails'])
const detailed = ['debug', 'trace']
const levels: Record<number, string> = { 40: 'warning: ', 50: 'error: ', 60: 'fatal: ' }
type Entry = { level: number; time: number; msg?: string; err?: Logged; [field: string]: unknown }

/** Entries of a log for a terminal: one line each, and unless the level is debug or trace only what asks for attention. */
export const prettyLines = (lines: string, level: string): string =>
  lines
    .split('\n')
    .map(line => (line === '' ? '' : prettyLine(line, detailed.includes(level))))
    .join('')

const prettyLine = (line: string, isDetailed: boolean): string => {
  let entry: Entry
  try {
    entry = JSON.parse(line)
  } catch {
    return `${line}\n`
  }
  const { level, time, msg = '', err, pid: _, hostname: __, trace_id: ___, span_id: ____, ...fields } = entry
  const isFailure = msg === 'signed webhook ended' && fields.error !== null
  if (level < 40 && !isDetailed && !isFailure && !shown.has(msg)) return ''
  const words = Object.entries(fields).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const text = [msg === 'attempt ended' && level === 30 ? 'delivery failed' : msg, err?.message, ...words].filter(Boolean).join('  ')
  return `${new Date(time).toTimeString().slice(0, 8)} ${levels[level] ?? ''}${text}\n`
}
