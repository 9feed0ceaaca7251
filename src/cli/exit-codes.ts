/** Exit codes and error messages of `pgcue`. */
import { PgcueError } from '../client/index.ts'
import { printable } from './printable.ts'

export const exitCodes = { ok: 0, refused: 1, usage: 2, not_found: 3, unreachable: 4, differs: 6 } as const

export const exitCodeHelp = `Exit codes
  0  done
  1  refused by the service, or failed
  2  invalid arguments, or a missing, invalid or insufficient key
  3  not found
  4  the service is unreachable or unavailable
  ${exitCodes.differs}  something differs (apply --exit-code)`

/** An error with a message for people that says what to do. */
export class CliError extends Error {
  override name = 'CliError'
  readonly exitCode: number
  readonly code: string

  constructor(message: string, exitCode: number = exitCodes.refused, code = 'failed') {
    super(message)
    this.exitCode = exitCode
    this.code = code
  }
}

export class UsageError extends CliError {
  override name = 'UsageError'

  constructor(message: string) {
    super(message, exitCodes.usage, 'usage')
  }
}

const bad = ['invalid_api_key', 'not_authenticated', 'insufficient_scope', 'unsendable']

export const exitCodeOf = (error: unknown): number => {
  if (error instanceof CliError) return error.exitCode
  if (!(error instanceof PgcueError)) return exitCodes.refused
  if (bad.includes(error.code)) return exitCodes.usage
  if (error.status === 404) return exitCodes.not_found
  return ['unreachable', 'timeout', 'unavailable'].includes(error.code) ? exitCodes.unreachable : exitCodes.refused
}

/** Command-line names of members of API requests. */
export type Names = Readonly<Record<string, string>>

/** Returns an error's message, one line per invalid field, and what to do. Request members get their command-line names. */
export const explain = (error: unknown, names: Names = {}): string => {
  if (!(error instanceof PgcueError)) return (error as Error).message
  // A line each, whatever they quote. The message repeats the first of the details.
  const lines = error.detail?.length
    ? error.detail.map(({ loc, msg }) => `${nameOf(loc.slice(1).join('.') || String(loc[0]), names)}: ${msg}`)
    : [error.message.replace(/^[a-z_]+(\.\w+)*(?=: )/, member => nameOf(member, names))]
  if (['invalid_api_key', 'not_authenticated', 'unsendable'].includes(error.code))
    lines.push('Set PGCUE_API_KEY to a valid key, or run: pgcue login')
  if (error.code === 'unreachable') lines.push('Check that it is running. Set its address with PGCUE_BASE_URL or --base-url.')
  if (error.retryAfter !== null && error.status === 429) lines.push(`Retry in ${Math.ceil(error.retryAfter)} s.`)
  if (error.status >= 500 && error.requestId) lines.push(`Request id in the service's log: ${error.requestId}.`)
  return lines.map(line => printable(line)).join('\n')
}

/** Members without an option of their own are part of --data, if the command has it. */
const nameOf = (member: string, names: Names): string => {
  for (let path = member; path; path = path.slice(0, Math.max(path.lastIndexOf('.'), 0))) {
    if (Object.hasOwn(names, path)) return names[path]! + member.slice(path.length)
  }
  return names.data ? `${member} (in ${names.data})` : member
}

/** The error as JSON, in the same form as the service's errors. */
export const errorBody = (error: unknown) => {
  const { message } = error as Error
  if (!(error instanceof PgcueError)) return { error: { code: error instanceof CliError ? error.code : 'failed', message, status: 0 } }
  const { code, status, detail } = error
  return { error: { code, message, status }, ...(detail && { detail }) }
}
