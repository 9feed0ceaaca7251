/** Parses the arguments and runs the command. */
import { createClient } from '../client/index.ts'
import { type Command, parse, wordsOf } from './command.ts'
import { commands } from './commands.ts'
import { apiKeyOf, baseUrlOf } from './credentials.ts'
import { errorBody, exitCodeOf, explain, UsageError } from './exit-codes.ts'
import { helpOf, overview } from './help.ts'
import type { Io } from './io.ts'
import { parseExactly } from './json.ts'
import { createOutput } from './output.ts'
import { printable } from './printable.ts'
import { userAgent, version } from './version.ts'

/** Runs a command and returns its exit code. Errors are printed to stderr, never thrown. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const { words, values } = wordsOf(argv)
  const json = values.json === true
  const named = find(words.map(({ word }) => word))
  try {
    return await dispatch(argv, words, named, values.version === true, io)
  } catch (error) {
    const text = json ? printable(JSON.stringify(errorBody(error))) : printable(`pgcue: ${explain(error, named?.command.names)}`, '\n')
    io.stderr.write(`${text}\n`)
    return exitCodeOf(error)
  }
}

const dispatch = async (
  argv: string[],
  words: { word: string; index: number }[],
  named: ReturnType<typeof find>,
  wantsVersion: boolean,
  io: Io
): Promise<number> => {
  if (!named) {
    if (wantsVersion) return print(io, argv.includes('--json') ? JSON.stringify({ version }) : version)
    const [first, second] = words
    if (!first || first.word === 'help') return help(words.slice(1), io)
    const group = Object.keys(commands).filter(name => name.startsWith(`${first.word} `))
    if (argv.includes('--help') && group.length) return help(words, io)
    if (group.length === 0) throw new UsageError(`unknown command ${first.word}; pgcue help lists all commands`)
    const choices = group.map(name => name.split(' ')[1]).join(', ')
    throw new UsageError(`pgcue ${first.word} ${second ? `has no command ${second.word}; it has` : 'needs a command'}: ${choices}`)
  }

  const { name, command, length } = named
  const places = words.slice(0, length).map(({ index }) => index)
  try {
    return await runCommand(
      name,
      command,
      argv.filter((_, index) => !places.includes(index)),
      io
    )
  } catch (error) {
    if (error instanceof UsageError && !argv.includes('--json')) error.message += `\nSee: pgcue help ${name}`
    throw error
  }
}

const runCommand = async (name: string, command: Command, argv: string[], io: Io): Promise<number> => {
  const { options, args } = parse(argv, command.options ?? {})
  if (options.help) return print(io, helpOf(name, command))
  if (!command.longRunning) io.stopping.addEventListener('abort', () => process.exit(130), { once: true })
  const colours = Boolean(io.stdout.isTTY) && !io.env.NO_COLOR && io.env.TERM !== 'dumb'
  const baseUrl = async () => baseUrlOf(io.env, options['base-url'])
  const connect = async () => {
    const url = await baseUrl()
    const apiKey = apiKeyOf(io.env, url, ({ email }) => {
      if (!options.json) io.stderr.write(`Using the local account ${email} at ${url}\n`)
    })
    return createClient({ baseUrl: url, apiKey, parse: parseExactly, userAgent })
  }
  const out = createOutput(io.stdout, { json: options.json === true, colours })
  return (await command.run({ args, options, baseUrl, connect, out, io })) ?? 0
}

/** Finds the command named by the first words, preferring names of two words. */
const find = ([first = '', second = '']: string[]) => {
  const name = [`${first} ${second}`, first].find(one => Object.hasOwn(commands, one))
  return name === undefined ? undefined : { name, command: commands[name]!, length: name.split(' ').length }
}

const help = (words: { word: string }[], io: Io): number => {
  const asked = words.map(({ word }) => word)
  const named = find(asked)
  if (named) return print(io, helpOf(named.name, named.command))
  const group = Object.entries(commands).filter(([name]) => asked.length === 0 || name.split(' ')[0] === asked[0])
  if (group.length === 0) throw new UsageError(`unknown command ${asked.join(' ')}; pgcue help lists all commands`)
  return print(io, overview(group))
}

const print = (io: Io, text: string): number => {
  io.stdout.write(`${text}\n`)
  return 0
}
