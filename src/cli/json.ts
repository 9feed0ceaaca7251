/** JSON input and output that keeps all digits of numbers JavaScript cannot represent. */
import { readFileSync } from 'node:fs'
import { UsageError } from './exit-codes.ts'
import type { Io } from './io.ts'

const { rawJSON } = JSON as unknown as { rawJSON?: (literal: string) => unknown }

const keepLiteral = (_key: string, value: unknown, context?: { source: string }): unknown =>
  typeof value === 'number' && context && String(value) !== context.source ? rawJSON!(context.source) : value

/**
 * Parses JSON so that `JSON.stringify` writes long numbers unchanged. Node 20 lacks the feature and rounds them. A byte order mark, with which
 * editors and shells on Windows begin a file or a stream, is skipped.
 */
export const parseExactly = (text: string): unknown => {
  const json = text.replace(/^\ufeff/, '')
  return rawJSON && /\d{16}|\.0|\de/i.test(json) ? JSON.parse(json, keepLiteral) : JSON.parse(json)
}

/** Reads an option's JSON: the value itself, `@file`, or `-` for standard input. */
export const readJson = async (value: string, name: string, { stdin }: Pick<Io, 'stdin'>): Promise<unknown> => {
  const text = value === '-' ? await readAll(stdin) : value.startsWith('@') ? readText(value.slice(1), name) : value
  try {
    return parseExactly(text)
  } catch (error) {
    throw new UsageError(`--${name} is not valid JSON: ${(error as Error).message}`)
  }
}

const readText = (file: string, name: string) => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--${name}: ${(error as Error).message}`)
  }
}

export const readAll = async (stdin: Io['stdin']): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
