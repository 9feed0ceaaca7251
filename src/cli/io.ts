/** The process as commands see it, which tests replace, and what they read from it: JSON whose numbers keep all their digits. */
import { readFileSync } from 'node:fs'
import { parseExactly as parseCanonical } from '../json/canonical-json.ts'
import { UsageError } from './exit-codes.ts'

export { isObject } from '../json/canonical-json.ts'

export type Io = {
  env: Record<string, string | undefined>
  stdin: AsyncIterable<Uint8Array | string> & { isTTY?: boolean }
  stdout: Sink
  stderr: Sink
  /** Aborted by the first SIGINT or SIGTERM. */
  stopping: AbortSignal
  /** Aborted by the second. */
  dying: AbortSignal
}
export type Sink = { write: (text: string) => unknown; isTTY?: boolean }

/** Asks on a terminal. @throws UsageError if there is none */
export const confirms = async (io: Io, question: string): Promise<boolean> => {
  if (!io.stdin.isTTY) throw new UsageError('to confirm without a terminal, give --yes')
  io.stderr.write(`${question} [y/N] `)
  for await (const line of io.stdin) return /^y(es)?\s*$/i.test(String(line))
  return false
}

/** Parses JSON, also after a byte order mark, with which editors and shells on Windows begin a file or a stream. */
export const parseExactly = (text: string): unknown => parseCanonical(text.replace(/^\ufeff/, ''))

/** Reads an option's JSON: the value itself, `@file`, or `-` for standard input. */
export const readJson = async (value: string, name: string, io: Pick<Io, 'stdin'>): Promise<unknown> => {
  const isSource = value === '-' || value.startsWith('@')
  return parsed(isSource ? await readSource(value.replace(/^@/, ''), `--${name}: `, io) : value, `--${name}`)
}

/** @throws UsageError that begins with `what` */
export const parsed = (text: string, what: string): unknown => {
  try {
    return parseExactly(text)
  } catch (error) {
    throw new UsageError(`${what} is not valid JSON: ${(error as Error).message}`)
  }
}

/** Reads a file, or standard input for `-`. @throws UsageError that begins with `what` */
export const readSource = async (file: string, what: string, { stdin }: Pick<Io, 'stdin'>): Promise<string> => {
  try {
    return file === '-' ? await readAll(stdin) : readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${what}${(error as Error).message}`)
  }
}

export const readAll = async (stdin: Io['stdin']): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}
