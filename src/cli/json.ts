/** JSON from options, files and standard input; numbers keep all their digits. */
import { readFileSync } from 'node:fs'
import { parseExactly as parseCanonical } from '../json/canonical-json.ts'
import { UsageError } from './exit-codes.ts'
import type { Io } from './io.ts'

export { isObject } from '../json/canonical-json.ts'

/** Parses JSON, also after a byte order mark, with which editors and shells on Windows begin a file or a stream. */
export const parseExactly = (text: string): unknown => parseCanonical(text.replace(/^\ufeff/, ''))

/** Reads an option's JSON: the value itself, `@file`, or `-` for standard input. */
export const readJson = async (value: string, name: string, io: Pick<Io, 'stdin'>): Promise<unknown> => {
  const text = value === '-' || value.startsWith('@') ? await readSource(value.replace(/^@/, ''), `--${name}: `, io) : value
  try {
    return parseExactly(text)
  } catch (error) {
    throw new UsageError(`--${name} is not valid JSON: ${(error as Error).message}`)
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
