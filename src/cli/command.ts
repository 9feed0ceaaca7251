/** Defines commands and parses their arguments. */
import { parseArgs } from 'node:util'
import type { Client } from '../client/index.ts'
import { UsageError } from './exit-codes.ts'
import type { Io } from './io.ts'
import type { Output } from './output.ts'

export type Option = {
  type: 'string' | 'boolean'
  short?: string
  multiple?: true /** Stands for the value in help. */
  value?: string
  help: string
}
type Options = Record<string, Option>
type Given<O extends Options> = {
  [Name in keyof O]?: O[Name] extends { multiple: true } ? string[] : O[Name] extends { type: 'boolean' } ? boolean : string
}

export type Context<O extends Options = Options> = {
  /** Arguments after the command, in order. */
  args: string[]
  options: Given<O>
  /** Creates a client with the key from the environment or the stored one. @throws CliError if there is neither */
  connect: () => Promise<Client>
  /** Returns the address of the service. */
  baseUrl: () => Promise<string>
  out: Output
  io: Io
}

export type Command<O extends Options = Options> = {
  /** Usage text after the command's name, such as `ID [options]`. */
  args?: string
  summary: string
  /** Additional help below the options. */
  notes?: string
  options?: O
  /** Command-line names of members of API requests: `callback.url` is `--url`. */
  names?: Readonly<Record<string, string>>
  /** Handles interruption itself; other commands end immediately. */
  longRunning?: true
  /** Returns an exit code, or nothing for 0. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands return nothing
  run: (context: Context<O>) => Promise<number | void>
}

/** Types a command's options. */
export const command = <const O extends Options>(definition: Command<O>): Command => definition as unknown as Command

export const globalOptions = {
  json: { type: 'boolean', help: 'print JSON instead of text, including errors' },
  'base-url': { type: 'string', value: 'URL', help: 'address of the service; overrides PGCUE_BASE_URL' },
  help: { type: 'boolean', help: 'show help for this command' },
  version: { type: 'boolean', help: 'show the version' }
} as const satisfies Options

export type Globals = Given<typeof globalOptions>

/** The first words that are not options, with their positions. */
export const wordsOf = (argv: string[]) => {
  const { tokens, values } = parseArgs({ args: argv, options: globalOptions, strict: false, allowPositionals: true, tokens: true })
  const words = tokens.flatMap(token => (token.kind === 'positional' ? [{ word: token.value, index: token.index }] : []))
  return { words, values: values as Globals }
}

/** @throws UsageError naming the invalid argument */
export const parse = (argv: string[], options: Options) => {
  try {
    const { values, positionals } = parseArgs({
      args: argv,
      options: { ...globalOptions, ...options },
      allowPositionals: true,
      strict: true
    })
    return { options: values as Given<Options> & Globals, args: positionals }
  } catch (error) {
    throw new UsageError((error as Error).message.replace(/\. To specify a positional.*$/s, ''))
  }
}

/** Returns the only argument of a command that takes one. */
export const only = ({ args }: Pick<Context, 'args'>, name: string): string => {
  if (args.length !== 1 || !args[0])
    throw new UsageError(args.length > 1 ? `expected one ${name}, got several` : `missing argument ${name}`)
  return args[0]
}

export const none = ({ args }: Pick<Context, 'args'>): undefined => {
  if (args.length) throw new UsageError(`unexpected argument ${args[0]}`)
}

/** Parses an integer within bounds; undefined if not given. */
export const integer = (value: string | undefined, name: string, min: number, max: number): number | undefined => {
  if (value === undefined) return undefined
  if (!/^\d+$/.test(value) || Number(value) < min || Number(value) > max)
    throw new UsageError(`--${name} must be a whole number from ${min} to ${max}`)
  return Number(value)
}
