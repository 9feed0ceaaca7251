/** Builds the report from a handler's exit and the outcome file it may have written. */
import { readFileSync, statSync } from 'node:fs'
import type { Evidence, Report } from '../../client/index.ts'
import { timedOutAfter } from '../../client/tasks.ts'
import { JsonError } from '../../json/canonical-json.ts'
import { isObject, parseExactly } from '../io.ts'
import type { Ending } from './process.ts'

/** What a handler wrote to SERVICE_OUTCOME_FILE. The service checks the values. */
type Said = Partial<Report & Evidence>
type OutcomeFile = { said: Said; broken: string | null; ignored: string[] }

const mostBytes = 1024 * 1024
const mostCharacters = 2000
const names = `success result error summary external_id result_url result_ref result_type artifacts metadata costs`.split(' ')

/** Reads the outcome file, which need not exist. Null and unknown members are ignored. */
export const readOutcomeFile = (file: string): OutcomeFile => {
  const none = (broken: string | null) => ({ said: {}, ignored: [], broken })
  let content: unknown
  try {
    if (statSync(file).size > mostBytes) return none('it has more than 1 MB')
    content = parseExactly(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return none(null)
    return none(error instanceof JsonError ? `it is not valid JSON: ${error.message}` : (error as Error).message)
  }
  if (!isObject(content)) return none('it is not a JSON object')
  const members = Object.entries(content).filter(([, value]) => value !== null)
  const isMember = ([name]: [string, unknown]) => names.includes(name)
  const ignored = members.filter(member => !isMember(member)).map(([name]) => name)
  return { said: Object.fromEntries(members.filter(isMember)), broken: null, ignored }
}

/**
 * Returns the report about a handler that has ended. Exit code 0 is a success unless the file says otherwise; any other code is a failure
 * whatever the file says. Without a result or error in the file, the end of the handler's output is used; for a failure, it follows the
 * reason.
 */
export const reportOf = (ending: Ending, timedOutAfterMs: number | null, { said, broken }: OutcomeFile, file: string) => {
  const { success: claimed = true, result, error, summary, result_ref, ...rest } = said
  const reason = broken === null ? failureOf(ending, timedOutAfterMs) : `invalid outcome file: ${broken}; kept as ${file}`
  const success = reason === null && claimed
  const written = ending.stdout || ending.stderr
  const report: Report = { success, ...rest }
  const shown = success ? (result ?? written) : (result ?? (ending.stderr ? ending.stdout : ''))
  if (shown) report.result = cutStart(shown)
  if (!success)
    report.error = failureText(reason ?? (error ? null : 'the outcome file reports a failure'), error ?? (ending.stderr || ending.stdout))
  if (summary) report.summary = cutEnd(summary, 500)
  return { report, ...(result_ref && { evidence: { result_ref } }) }
}

const failureOf = ({ code, signal, failure }: Ending, timedOutAfterMs: number | null): string | null => {
  if (timedOutAfterMs !== null) return timedOutAfter(timedOutAfterMs)
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

/** Replaces what the service rejects: NUL and lone surrogates. Anything but text is left to the service to reject. */
const cut = (value: string, start: number, end?: number) =>
  typeof value === 'string' ? value.slice(start, end).toWellFormed().replaceAll('\0', '\ufffd') : value
const cutEnd = (value: string, most: number) => cut(value, 0, most)
const cutStart = (value: string, most = mostCharacters) => cut(value, -most)
