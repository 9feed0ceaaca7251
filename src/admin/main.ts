#!/usr/bin/env node
/** The operator's command `pgcue-admin`: works on the databases themselves, with the settings of a replica. */
import { parseArgs } from 'node:util'
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

class UsageError extends Error {}

const stopping = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => {
    if (stopping.signal.aborted) process.exit(130)
    stopping.abort(new Error('stopped'))
  })
}
process.stdout.on('error', error => process.exit((error as NodeJS.ErrnoException).code === 'EPIPE' ? 0 : 1))

const readArguments = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        json: { type: 'boolean', default: false },
        limit: { type: 'string', default: '20' },
        account: { type: 'string' },
        abort: { type: 'boolean', default: false },
        'source-url': { type: 'string' },
        'service-url': { type: 'string' },
        help: { type: 'boolean', default: false }
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

const run = async (): Promise<number> => {
  const { positionals, values } = readArguments()
  const [noun, command, ...args] = positionals
  const say = (line: string) => void process.stdout.write(`${line}\n`)
  if (values.help || !noun) return say(help) ?? 0
  const out = createOutput(process.stdout, { json: values.json, colours: process.stdout.isTTY === true && !process.env.NO_COLOR })
  const known = { list: 0, migrate: 0, add: 1, move: 2, report: Number.POSITIVE_INFINITY }[command ?? '']
  if (noun !== 'cells' || known === undefined) throw new UsageError(`unknown command ${positionals.join(' ')}; see --help`)
  if (args.length > known) throw new UsageError(`unexpected argument ${args[known]}`)
  const urls = loadMigrateUrls(process.env)

  if (command === 'list') return listCells(urls, out)
  if (command === 'migrate') return migrateCells(urls, say)
  if (command === 'add') return addCell(urls, databaseUrl(args[0], 'the new database'), say)
  if (command === 'report') {
    const unknown = args.find(name => !Object.hasOwn(reports, name))
    if (unknown) throw new UsageError(`unknown report ${unknown}; reports are ${Object.keys(reports).join(', ')}`)
    const limit = Number(values.limit)
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
    isAborting: values.abort,
    signal: stopping.signal,
    say
  })
}

try {
  process.exitCode = await run()
} catch (error) {
  console.error(`pgcue-admin: ${error instanceof UsageError || error instanceof ConfigError ? error.message : reasonOf(error)}`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
