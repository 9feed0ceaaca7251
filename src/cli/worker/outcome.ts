/** Builds the report from a handler's exit and the outcome file it may have written. */
import { readFileSync, statSync } from 'node:fs'
import type { Evidence, Report } from '../../client/index.ts'
import { JsonError } from '../../json/canonical-json.ts'
import { isObject, parseExactly } from '../json.ts'
import type { Ending } from './process.ts'

/** Members a handler may write to SERVICE_OUTCOME_FILE. */
export type Said = Partial<Report> & { result_ref?: string }
export type OutcomeFile = { said: Said; broken: string | null; ignored: string[] }

const mostBytes = 1024 * 1024
const mostMetadata = 10 * 1024
const mostCharacters = 2000

type Check = (value: unknown) => string | null
const text =
  (most: number): Check =>
  value =>
    typeof value !== 'string' ? 'is not a string' : [...value].length > most ? `has more than ${most} characters` : null
const anyText = text(Number.POSITIVE_INFINITY)

const checks: Record<string, Check> = {
  success: value => (typeof value === 'boolean' ? null : 'is neither true nor false'),
  result: anyText,
  error: anyText,
  summary: anyText,
  external_id: text(255),
  result_url: text(2048),
  result_ref: text(255),
  result_type: text(50),
  artifacts: value => (Array.isArray(value) ? null : 'is not a list'),
  metadata: value =>
    !isObject(value) ? 'is not an object' : Buffer.byteLength(JSON.stringify(value)) > mostMetadata ? 'has more than 10 KB' : null
}

/** Reads the outcome file, which need not exist. Null and unknown members are ignored. */
export const readOutcomeFile = (file: string): OutcomeFile => {
  const none = { said: {}, ignored: [] }
  let content: unknown
  try {
    if (statSync(file).size > mostBytes) return { ...none, broken: 'it has more than 1 MB' }
    const bytes = readFileSync(file)
    content = parseExactly(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { ...none, broken: null }
    return { ...none, broken: error instanceof JsonError ? `it is not valid JSON: ${error.message}` : (error as Error).message }
  }
  if (!isObject(content)) return { ...none, broken: 'it is not a JSON object' }
  const given = Object.entries(content).filter(([, value]) => value !== null)
  for (const [name, value] of given) {
    const wrong = Object.hasOwn(checks, name) ? checks[name]!(value) : null
    if (wrong) return { ...none, broken: `${name} ${wrong}` }
  }
  const [known, unknown] = [true, false].map(wanted => given.filter(([name]) => Object.hasOwn(checks, name) === wanted))
  return { said: Object.fromEntries(known!), broken: null, ignored: unknown!.map(([name]) => name) }
}

/**
 * Returns the report about a handler that has ended. Exit code 0 is a success unless the file says otherwise; any other code is a failure
 * whatever the file says. Without a result or error in the file, the end of the handler's output is used; for a failure, it follows the
 * reason.
 */
export const reportOf = (ending: Ending, timedOutAfterMs: number | null, { said, broken }: OutcomeFile, file: string) => {
  const { success: claimed, result, error, summary, result_ref, ...rest } = said
  const reason = broken === null ? failureOf(ending, timedOutAfterMs) : `invalid outcome file: ${broken}; kept as ${file}`
  const success = reason === null && claimed !== false
  const written = ending.stdout || ending.stderr
  const report: Report = { success, ...rest }
  const shown = success ? (result ?? written) : (result ?? (ending.stderr ? ending.stdout : ''))
  if (shown) report.result = cutStart(shown)
  if (!success)
    report.error = failureText(reason ?? (error ? null : 'the outcome file reports a failure'), error ?? (ending.stderr || ending.stdout))
  if (summary) report.summary = cutEnd(summary, 500)
  const evidence: Evidence | undefined = result_ref ? { result_ref: cutEnd(result_ref, 255) } : undefined
  return { report, ...(evidence && { evidence }) }
}

const failureOf = ({ code, signal, failure }: Ending, timedOutAfterMs: number | null): string | null => {
  if (timedOutAfterMs !== null) return `timed out after ${timedOutAfterMs / 1000} s`
  if (failure !== null) return `the command could not be started: ${failure}`
  if (signal !== null) return `ended by ${signal}`
  return code === 0 ? null : `exit code ${code}`
}

/** The complete reason, followed by as much of the rest as fits. */
const failureText = (reason: string | null, rest: string): string => {
  const start = cutEnd(reason ?? '', mostCharacters)
  const room = mostCharacters - start.length - 1
  return [start, room > 0 ? cutStart(rest, room) : ''].filter(Boolean).join('\n')
}

/** Replaces what the service rejects: NUL and lone surrogates. */
const clean = (value: string) => value.toWellFormed().replaceAll('\0', '\ufffd')
const cutEnd = (value: string, most: number) => clean(value.slice(0, most))
const cutStart = (value: string, most = mostCharacters) => clean(value.slice(-most))
