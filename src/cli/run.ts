/** Parses the arguments, runs the command and prints its errors. */
import { CommanderError, Command as Parser, Option as ParserOption } from 'commander'
import { createClient, type PgcueError } from '../client/index.ts'
import { bodyOf, type Command, type Context, integer, namesOf } from './command.ts'
import { commands, groups } from './commands.ts'
import { apiKeyOf, baseUrlOf, environmentHelp } from './credentials.ts'
import { errorBody, exitCodeHelp, exitCodeOf, exitCodes, explain, UsageError } from './exit-codes.ts'
import { type Io, parseExactly, type Sink } from './io.ts'
import { createOutput } from './output.ts'
import { printable } from './printable.ts'
import { userAgent, version } from './version.ts'

/** Runs a command and returns its exit code. Errors are printed to stderr, never thrown. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const args = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv
  const json = args.includes('--json')
  let name = ''
  let command: Command | undefined
  try {
    const program = programOf(io, json)
    const words = program.parseOptions(args).operands.slice(0, 2)
    name = [words.join(' '), words[0] ?? ''].find(text => commands.has(text)) ?? words.join(' ')
    command = await commands.get(name)?.load()
    if (!command) return showHelp(program, name, args.includes('--help'))
    const parser = configured(program, name, command, args)
    program.parse(joined(args, name), { from: 'user' })
    return await runCommand(command, parser, io)
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
const programOf = (io: Io, json: boolean): Parser => {
  const program = new Parser('pgcue')
    .usage('COMMAND [options]')
    .exitOverride()
    .helpCommand(false)
    .configureOutput({ writeOut: text => io.stdout.write(text), writeErr: () => {}, getOutHelpWidth: () => process.stdout.columns || 132 })
    .configureHelp({ showGlobalOptions: true })
    .option('--json', 'print JSON instead of text, including errors')
    .option('--base-url <URL>', 'address of the service; overrides PGCUE_BASE_URL')
    .version(json ? JSON.stringify({ version }) : version, '--version', 'show the version')
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

/** Prints help, for all commands or those that begin with a word. @throws CommanderError in the end; UsageError for an unknown command */
const showHelp = (program: Parser, name: string, isHelp: boolean): never => {
  const commands = program.commands.filter(command => command.name().startsWith(`${name} `))
  if (commands.length > 0 && !isHelp)
    throw new UsageError(`pgcue ${name} needs a command: ${commands.map(command => command.name().slice(name.length + 1)).join(', ')}`)
  if (commands.length > 0) program.configureHelp({ visibleCommands: () => commands })
  if (name === '' || commands.length > 0) program.help()
  return program.parse([name], { from: 'user' }) as never
}

/** The parser of a command, with its options under the names that they have on the command line. */
const configured = (program: Parser, name: string, { options = {}, notes = '' }: Command, argv: string[]): Parser => {
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
    if (!negatable) continue
    add(`--no-${name}`, `the opposite of --${name}`).hideHelp()
    if (argv.includes(`--${name}`) && argv.includes(`--no-${name}`)) throw new UsageError(`give either --${name} or --no-${name}, not both`)
  }
  return parser.addHelpText('after', notes && `\n${notes}`)
}

const runCommand = async (command: Command, parser: Parser, io: Io): Promise<number> => {
  if (!command.longRunning) io.stopping.addEventListener('abort', () => process.exit(130), { once: true })
  const { json = false, baseUrl } = parser.parent!.opts<{ json?: boolean; baseUrl?: string }>()
  const out = createOutput(io.stdout, { json, colours: Boolean(io.stdout.isTTY) && !io.env.NO_COLOR && io.env.TERM !== 'dumb' })
  const isWatched = Boolean(io.stderr.isTTY) && !json && !command.longRunning
  const patient = isWatched ? { retries: 5, onRetry: countdown(io.stderr) } : {}
  const context: Context = {
    args: parser.args,
    options: parser.opts(),
    ready: async () => {
      const { 'idempotency-key': idempotencyKey, 'if-version': version } = context.options as Record<string, string | undefined>
      const call = { idempotencyKey, ifVersion: integer(version, 'if-version', 1, 2 ** 31 - 1) }
      return { body: (await bodyOf(context, command.options)) as never, call, client: context.connect() }
    },
    another: argv => {
      const PGCUE_BASE_URL = context.baseUrl()
      return run(argv, { ...io, env: { ...io.env, PGCUE_BASE_URL, PGCUE_API_KEY: apiKeyOf(io.env, PGCUE_BASE_URL) } })
    },
    baseUrl: () => baseUrlOf(io.env, baseUrl),
    clientWith: (baseUrl, apiKey) => createClient({ baseUrl, apiKey, parse: parseExactly, userAgent, ...patient }),
    connect: () => {
      const url = context.baseUrl()
      const apiKey = apiKeyOf(io.env, url, ({ email }) => {
        if (!json) io.stderr.write(`Using the local account ${email} at ${url}\n`)
      })
      return context.clientWith(url, apiKey)
    },
    out,
    io
  }
  const answer = await command.run(context)
  const { text } = command
  if (text)
    out.show(answer, () => {
      const line = text(answer, out, parser.args)
      if (typeof line === 'string') out.line(line)
    })
  return typeof answer === 'number' ? answer : exitCodes.ok
}

/** Counts the seconds until the next try on a line of a terminal, which goes when it begins. */
const countdown = (sink: Sink) => (error: PgcueError, waitMs: number) => {
  const clear = '\r\x1b[K'
  const end = Date.now() + waitMs
  const show = () => {
    const seconds = Math.ceil((end - Date.now()) / 1000)
    if (seconds > 0) sink.write(`${clear}pgcue: ${printable(error.message)}; next try in ${seconds} s`)
  }
  show()
  const timer = setInterval(show, 500)
  setTimeout(() => {
    clearInterval(timer)
    sink.write(clear)
  }, waitMs)
}
