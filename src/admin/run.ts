/** Parses the arguments of `pgcue-admin` and runs the command. */
import { parseArgs } from 'node:util'
import type { Io } from '../cli/io.ts'
import { createOutput } from '../cli/output.ts'
import { ConfigError, loadMigrateUrls } from '../config.ts'
import { addCell } from './add.ts'
import { reasonOf } from './database.ts'
import { listCells } from './list.ts'
import { migrateCells } from './migrate.ts'
import { moveCell } from './move/move.ts'
import { reports, showReports } from './reports.ts'

const help = `Usage: npm run -s pgcue-admin -- cells COMMAND, with CELLS or DATABASE_URL as for a replica

  list                 show each cell: server, size, accounts, lateness, versions, status
  migrate              migrate all cells in order; stop at the first that fails
  add URL              check a new database, give it the next number, print what remains to be done
  move CELL URL        move a running cell to the empty database at URL by logical replication; paused for seconds
  report [NAME...]     show a report over all cells: ${Object.keys(reports).join(', ')}

Options
  --json               print JSON (list, report)
  --limit N            rows of a report (20)
  --account ID         only this account's rows (report)
  --abort              remove what an unfinished move has left (move)
  --source-url URL     the cell as the new server connects to it, if not as in CELLS (move)
  --service-url URL    the new server as replicas connect to it, if not as URL (move)

Exit codes: 0 done; 1 failed, or a cell did not answer; 2 invalid arguments; 130 stopped, and cleaned up`

const commands: Record<string, { args: number; options: string[] }> = {
  list: { args: 0, options: ['json'] },
  migrate: { args: 0, options: [] },
  add: { args: 1, options: [] },
  move: { args: 2, options: ['abort', 'source-url', 'service-url'] },
  report: { args: Number.POSITIVE_INFINITY, options: ['json', 'limit', 'account'] }
}

class UsageError extends Error {}

export type AdminIo = Pick<Io, 'env' | 'stdout' | 'stderr' | 'stopping'>

/** Runs a command and returns its exit code. Errors are printed to stderr, never thrown. */
export const run = async (argv: string[], io: AdminIo): Promise<number> => {
  try {
    return await dispatch(argv, io)
  } catch (error) {
    io.stderr.write(`pgcue-admin: ${error instanceof UsageError || error instanceof ConfigError ? error.message : reasonOf(error)}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

const dispatch = async (argv: string[], { env, stdout, stopping }: AdminIo): Promise<number> => {
  const { positionals, values } = readArguments(argv)
  const [noun, command, ...args] = positionals
  const say = (line: string) => void stdout.write(`${line}\n`)
  if (values.help || !noun) return say(help) ?? 0
  const out = createOutput(stdout, { json: values.json === true, colours: stdout.isTTY === true && !env.NO_COLOR })
  const runCommand = noun === 'cells' && command && Object.hasOwn(commands, command) ? commands[command] : undefined
  // Without what may be a URL with its password.
  const named = positionals
    .slice(0, 2)
    .filter(word => /^[\w-]+$/.test(word))
    .join(' ')
  if (!runCommand) throw new UsageError(`unknown command ${named}; see --help`)
  if (args.length > runCommand.args) throw new UsageError(`too many arguments for ${named}; see --help`)
  const stray = Object.keys(values).find(name => !runCommand.options.includes(name))
  if (stray) throw new UsageError(`${named} has no option --${stray}; see --help`)
  const urls = loadMigrateUrls(env)

  if (command === 'list') return listCells(urls, out)
  if (command === 'migrate') return migrateCells(urls, say)
  if (command === 'add') return addCell(urls, databaseUrl(args[0], 'the new database'), say)
  if (command === 'report') {
    const unknown = args.find(name => !Object.hasOwn(reports, name))
    if (unknown) throw new UsageError(`unknown report ${unknown}; reports are ${Object.keys(reports).join(', ')}`)
    const limit = Number(values.limit ?? 20)
    if (!Number.isInteger(limit) || limit < 1) throw new UsageError('--limit must be a whole number from 1')
    return showReports(urls, args.length > 0 ? args : Object.keys(reports), { limit, account: values.account ?? null }, out)
  }
  const cell = Number(args[0])
  if (!urls[cell - 1]) throw new UsageError(`CELL must be a number from 1 to ${urls.length}`)
  const target = databaseUrl(args[1], 'the new server')
  return moveCell({
    cell,
    source: urls[cell - 1]!,
    target,
    sourceForTarget: values['source-url'] ? databaseUrl(values['source-url'], '--source-url') : urls[cell - 1]!,
    targetForReplicas: values['service-url'] ? databaseUrl(values['service-url'], '--service-url') : target,
    isAborting: values.abort === true,
    signal: stopping,
    say
  })
}

const readArguments = (args: string[]) => {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        json: { type: 'boolean' },
        limit: { type: 'string' },
        account: { type: 'string' },
        abort: { type: 'boolean' },
        'source-url': { type: 'string' },
        'service-url': { type: 'string' },
        help: { type: 'boolean' }
      }
    })
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0])
  }
}

const databaseUrl = (value: string | undefined, name: string): string => {
  if (value && URL.canParse(value) && /^postgres(ql)?:$/.test(new URL(value).protocol)) return value
  throw new UsageError(`${name} must be a PostgreSQL URL`)
}
