/** Parses the arguments, runs the command and prints its errors. */
import { CommanderError, Command as Parser, Option as ParserOption } from 'commander'
import { createClient } from '../client/index.ts'
import { bodyOf, type Command, type Context, namesOf } from './command.ts'
import { commands, groups } from './commands.ts'
import { countdown } from './countdown.ts'
import { apiKeyOf, baseUrlOf, environmentHelp } from './credentials.ts'
import { errorBody, exitCodeHelp, exitCodeOf, explain, UsageError } from './exit-codes.ts'
import type { Io } from './io.ts'
import { parseExactly } from './json.ts'
import { createOutput } from './output.ts'
import { printable } from './printable.ts'
import { userAgent, version } from './version.ts'

/** Runs a command and returns its exit code. Errors are printed to stderr, never thrown. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const program = programOf(io)
  const args = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv
  const json = args.includes('--json')
  let name = ''
  let command: Command | undefined
  try {
    const words = program.parseOptions(args).operands.slice(0, 2)
    name = [words.join(' '), words[0] ?? ''].find(text => commands.has(text)) ?? words.join(' ')
    command = await commands.get(name)?.load()
    if (!command) return await withoutCommand(program, name, args, io)
    let code = 0
    const parser = configured(program, name, command)
    parser.action(async () => {
      const values = valuesOf(parser, command!, args)
      code = await runCommand(command!, values, parser.args, program.opts(), io)
    })
    await program.parseAsync(joined(args, name), { from: 'user' })
    return code
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0
    const error = thrown instanceof CommanderError ? new UsageError(thrown.message.replace(/^error: /, '')) : thrown
    if (error instanceof UsageError && !json) error.message += `\nSee: pgcue help ${command ? name : ''}`.trimEnd()
    const text = json ? JSON.stringify(errorBody(error)) : `pgcue: ${explain(error, command && namesOf(command))}`
    io.stderr.write(`${printable(text, json ? '' : '\n')}\n`)
    return exitCodeOf(error)
  }
}

/** All commands by their whole names, without their options. */
const programOf = (io: Io): Parser => {
  const program = new Parser('pgcue')
    .usage('COMMAND [options]')
    .exitOverride()
    .helpCommand(false)
    .configureOutput({ writeOut: text => io.stdout.write(text), writeErr: () => {}, getOutHelpWidth: () => process.stdout.columns || 132 })
    .configureHelp({ showGlobalOptions: true })
    .option('--json', 'print JSON instead of text, including errors')
    .option('--base-url <URL>', 'address of the service; overrides PGCUE_BASE_URL')
    .option('--version', 'show the version')
    .helpOption('--help', 'show help')
    .addHelpText('after', `\n${exitCodeHelp}\n\n${environmentHelp}\n\nRun pgcue help COMMAND for details.`)
  for (const [heading, entries] of Object.entries(groups))
    for (const [name, { args, summary }] of Object.entries(entries)) {
      const parser = new Parser(name).copyInheritedSettings(program).helpGroup(`${heading}:`).description(`${summary}.`).summary(summary)
      program.addCommand(args ? parser.arguments(args) : parser)
    }
  return program
}

/** The words of a command as one, before all others. */
const joined = (argv: string[], name: string): string[] => {
  const rest = [...argv]
  for (const word of name.split(' ')) rest.splice(rest.indexOf(word), 1)
  return [name, ...rest]
}

/** Prints help, for all commands or those that begin with a word, or the version. @throws CommanderError, UsageError for an unknown command */
const withoutCommand = async (program: Parser, name: string, argv: string[], io: Io): Promise<number> => {
  const inGroup = [...commands.keys()].filter(command => command.startsWith(`${name} `))
  const isHelp = argv.includes('--help')
  if (name === '' && program.opts().version) io.stdout.write(`${argv.includes('--json') ? JSON.stringify({ version }) : version}\n`)
  else if (inGroup.length > 0 && !isHelp)
    throw new UsageError(`pgcue ${name} needs a command: ${inGroup.map(command => command.slice(name.length + 1)).join(', ')}`)
  else {
    if (inGroup.length > 0)
      program.configureHelp({ visibleCommands: ({ commands }) => commands.filter(command => inGroup.includes(command.name())) })
    await program.parseAsync(name === '' || inGroup.length > 0 ? ['--help'] : [name], { from: 'user' })
  }
  return 0
}

/** The parser of a command, with its options under the names that they have on the command line. */
const configured = (program: Parser, name: string, { options = {}, notes }: Command): Parser => {
  const parser = program.commands.find(child => child.name() === name)!
  for (const [name, { type, short, value, help, multiple, negatable, group }] of Object.entries(options)) {
    const add = (flags: string, description: string) => {
      const option = Object.assign(new ParserOption(flags, description), { attributeName: () => name })
      parser.addOption(group ? option.helpGroup(`${group}:`) : option)
      return option
    }
    const flags = `${short ? `-${short}, ` : ''}--${name}${type === 'boolean' ? '' : ` <${value}>`}`
    const option = add(flags, `${help}${multiple ? '; repeatable' : ''}`)
    if (multiple) option.argParser((text: string, previous: string[] = []) => [...previous, text])
    if (negatable) add(`--no-${name}`, `the opposite of --${name}`).hideHelp()
  }
  return notes ? parser.addHelpText('after', `\n${notes}`) : parser
}

const valuesOf = (parser: Parser, { options = {} }: Command, argv: string[]) => {
  const both = Object.keys(options).find(name => argv.includes(`--${name}`) && argv.includes(`--no-${name}`))
  if (both) throw new UsageError(`give either --${both} or --no-${both}, not both`)
  return parser.opts()
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
    another: async argv => {
      const PGCUE_BASE_URL = await context.baseUrl()
      return run(argv, { ...io, env: { ...io.env, PGCUE_BASE_URL, PGCUE_API_KEY: apiKeyOf(io.env, PGCUE_BASE_URL) } })
    },
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
  const answer = await command.run(context)
  const { text, exitCode = value => (typeof value === 'number' ? value : 0) } = command
  const { out } = context
  if (text)
    out.show(answer, () => {
      const line = text(answer, out, args)
      if (typeof line === 'string') out.line(line)
    })
  return exitCode(answer, context.options)
}
