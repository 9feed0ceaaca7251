/** Parses the arguments, runs the command and prints its errors. */
import { CommanderError, Command as Parser, Option as ParserOption } from 'commander'
import { createClient } from '../client/index.ts'
import { bodyOf, type Command, type Context, namesOf, type Options } from './command.ts'
import { commands, groups } from './commands.ts'
import { countdown } from './countdown.ts'
import { apiKeyOf, baseUrlOf } from './credentials.ts'
import { errorBody, exitCodeOf, explain, UsageError } from './exit-codes.ts'
import { environmentHelp, exitCodeHelp, suggestion } from './help.ts'
import type { Io } from './io.ts'
import { parseExactly } from './json.ts'
import { createOutput } from './output.ts'
import { printable } from './printable.ts'
import { userAgent, version } from './version.ts'

/** Runs a command and returns its exit code. Errors are printed to stderr, never thrown. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const program = programOf(io)
  const asked = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv
  const json = argv.includes('--json')
  let named: { name: string; command: Command } | undefined
  try {
    const { operands } = program.parseOptions(asked)
    const { place, name } = placeOf(program, operands)
    const entry = commands.get(name)
    if (!entry) return await withoutCommand(program, asked, operands, name, io)
    named = { name, command: await entry.load() }
    let code = 0
    configure(place, named.command)
    place.action(async () => {
      code = await runCommand(named!.command, valuesOf(place, named!.command.options ?? {}, argv), place.args, program.opts(), io)
    })
    await program.parseAsync(asked, { from: 'user' })
    return code
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0
    const error = thrown instanceof CommanderError ? new UsageError(thrown.message.replace(/^error: /, '')) : thrown
    if (error instanceof UsageError && named && !json) error.message += `\nSee: pgcue help ${named.name}`
    const names = named && namesOf(named.command)
    io.stderr.write(`${json ? printable(JSON.stringify(errorBody(error))) : printable(`pgcue: ${explain(error, names)}`, '\n')}\n`)
    return exitCodeOf(error)
  }
}

/** All commands, without their options. */
const programOf = (io: Io): Parser => {
  const program = new Parser('pgcue')
    .usage('COMMAND [options]')
    .exitOverride()
    .helpCommand(false)
    .configureOutput({ writeOut: text => io.stdout.write(text), writeErr: () => {}, getOutHelpWidth: () => process.stdout.columns || 132 })
    .configureHelp({ visibleCommands: below, subcommandTerm: termOf, showGlobalOptions: true, commandUsage: usageOf })
    .option('--json', 'print JSON instead of text, including errors')
    .option('--base-url <URL>', 'address of the service; overrides PGCUE_BASE_URL')
    .option('--version', 'show the version')
    .helpOption('--help', 'show help')
    .addHelpText('after', `\n${exitCodeHelp}\n\n${environmentHelp}\n\nRun pgcue help COMMAND for details.`)
  for (const [heading, entries] of Object.entries(groups))
    for (const [name, { args, summary }] of Object.entries(entries)) {
      const place = name.split(' ').reduce((parent, word) => childOf(parent, word) ?? parent.command(word), program)
      place.helpGroup(`${heading}:`).description(`${summary}.`).summary(summary)
      if (args) place.arguments(args)
    }
  return program
}

const childOf = (parent: Parser, word: string) => parent.commands.find(child => child.name() === word)
const nameOf = (place: Parser): string => (place.parent?.parent ? `${nameOf(place.parent)} ${place.name()}` : place.name())
const termOf = (place: Parser) => [nameOf(place), commands.get(nameOf(place))?.args].filter(Boolean).join(' ')
const usageOf = (place: Parser) => (place.parent ? `pgcue ${termOf(place)} [options]` : 'pgcue COMMAND [options]')
/** The commands of a group, or all of them, by their whole names. */
const below = (place: Parser): Parser[] =>
  place.commands.flatMap(child => [...(commands.has(nameOf(child)) ? [child] : []), ...below(child)])

/** The command that the first words name. */
const placeOf = (program: Parser, words: string[]) => {
  let place = program
  for (const word of words) {
    const child = childOf(place, word)
    if (!child) break
    place = child
  }
  return { place, name: place === program ? '' : nameOf(place) }
}

/** Prints help or the version. @throws UsageError if that was not asked for */
const withoutCommand = async (program: Parser, argv: string[], words: string[], group: string, io: Io): Promise<number> => {
  const isKnown = words.length === (group ? 1 : 0)
  if (isKnown && group === '' && program.opts().version) {
    io.stdout.write(`${argv.includes('--json') ? JSON.stringify({ version }) : version}\n`)
    return 0
  }
  if (isKnown && (group === '' || argv.includes('--help'))) {
    await program.parseAsync(argv.includes('--help') ? argv : [...argv, '--help'], { from: 'user' })
    return 0
  }
  const choices = [...commands.keys()].flatMap(name => (name.startsWith(`${group} `) ? [name.slice(group.length + 1)] : [])).join(', ')
  if (isKnown) throw new UsageError(`pgcue ${group} needs a command: ${choices}`)
  const meant = suggestion(words.join(' '), [...commands.keys()])
  const list = group
    ? `pgcue ${group} has no command ${words[1]}; it has: ${choices}`
    : `unknown command ${words[0]}; pgcue help lists all commands`
  throw new UsageError(meant ? `${list}\n(Did you mean ${meant}?)` : list)
}

const configure = (place: Parser, { options = {}, notes }: Command): void => {
  for (const [name, { type, short, value, help, multiple, negatable, group }] of Object.entries(options)) {
    const flags = `${short ? `-${short}, ` : ''}--${name}${type === 'boolean' ? '' : ` <${value}>`}`
    const option = new ParserOption(flags, `${help}${multiple ? '; repeatable' : ''}`)
    if (group) option.helpGroup(`${group}:`)
    if (multiple) option.argParser((text: string, previous: string[] = []) => [...previous, text])
    place.addOption(option)
    if (negatable) place.addOption(new ParserOption(`--no-${name}`, `the opposite of --${name}`).hideHelp())
  }
  if (notes) place.addHelpText('after', `\n${notes}`)
}

const valuesOf = (place: Parser, options: Options, argv: string[]) => {
  const both = Object.keys(options).find(name => argv.includes(`--${name}`) && argv.includes(`--no-${name}`))
  if (both) throw new UsageError(`give either --${both} or --no-${both}, not both`)
  const values = place.opts()
  const camel = (name: string) => name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
  return Object.fromEntries(Object.keys(options).map(name => [name, values[camel(name)]]))
}

type Globals = { json?: boolean; baseUrl?: string }

const runCommand = async (command: Command, options: object, args: string[], globals: Globals, io: Io): Promise<number> => {
  if (!command.longRunning) io.stopping.addEventListener('abort', () => process.exit(130), { once: true })
  const colours = Boolean(io.stdout.isTTY) && !io.env.NO_COLOR && io.env.TERM !== 'dumb'
  const json = globals.json === true
  const isWatched = Boolean(io.stderr.isTTY) && !json && !command.longRunning
  const patient = isWatched ? { retries: 5, onRetry: countdown(io.stderr) } : {}
  const clientWith = (baseUrl: string, apiKey?: string) => createClient({ baseUrl, apiKey, parse: parseExactly, userAgent, ...patient })
  const context: Context = {
    args,
    options: options as Context['options'],
    ready: async () => ({ body: (await bodyOf(context, command.options ?? {})) as never, client: await context.connect() }),
    baseUrl: async () => baseUrlOf(io.env, globals.baseUrl),
    clientWith,
    connect: async () => {
      const url = await context.baseUrl()
      const apiKey = apiKeyOf(io.env, url, ({ email }) => {
        if (!json) io.stderr.write(`Using the local account ${email} at ${url}\n`)
      })
      return clientWith(url, apiKey)
    },
    out: createOutput(io.stdout, { json, colours }),
    io
  }
  const code = await command.run(context)
  return typeof code === 'number' ? code : 0
}
