/** `pgcue import`: writes the schedules of other systems as a file for `pgcue apply`. */
import { writeFileSync } from 'node:fs'
import type { DeclaredCue } from '../client/index.ts'
import type { Entry, Importer } from '../import/entries.ts'
import { escapeVariables } from './apply.ts'
import { type Context, command } from './command.ts'
import { CliError, UsageError } from './exit-codes.ts'
import { parseExactly, readSource } from './io.ts'
import { printable } from './printable.ts'
import { writeYaml } from './yaml.ts'

/** What each kind reads. The importers themselves load the parser of schedules. */
const kinds = {
  'github-actions': 'workflows with a schedule',
  crontab: 'crontabs of users and of the system',
  kubernetes: 'CronJobs',
  vercel: 'vercel.json',
  qstash: 'the list of schedules, from GET /v2/schedules',
  eventbridge: 'output of aws scheduler get-schedule',
  pg_cron: 'rows of cron.job, as JSON or as CSV with a header'
}
const kindLines = Object.entries(kinds).map(([kind, source]) => `  ${kind.padEnd(14)}  ${source}`)

const options = {
  set: { type: 'string', value: 'NAME', help: 'the set of the cues, which also begins their keys (default: KIND)' },
  timezone: { type: 'string', value: 'ZONE', help: 'time zone of schedules that name none (default: UTC)' },
  paused: { type: 'boolean', help: 'create all cues paused' },
  system: { type: 'boolean', help: 'crontab: its lines have a user, as in /etc/crontab' },
  handlers: { type: 'string', value: 'FILE', help: 'crontab: also write the commands, for pgcue worker --config FILE' }
} as const

export const importCues = command({
  options,
  notes: `Kinds
${kindLines.join('\n')}

Nothing is written to the service. Entries that can't be translated are left out, and reported on standard error.

Examples
  crontab -l | pgcue import crontab --timezone Europe/London --handlers worker.yaml > cues.yaml
  pgcue import github-actions .github/workflows/*.yml --paused | pgcue apply -f - --dry-run`,
  run: async context => {
    const { args, options, out, io } = context
    const [kind = '', ...files] = args
    if (!Object.hasOwn(kinds, kind)) throw new UsageError(`${kind}: use one of ${Object.keys(kinds).join(', ')}`)
    for (const name of ['system', 'handlers'] as const)
      if (options[name] !== undefined && kind !== 'crontab') throw new UsageError(`--${name} is for crontab`)
    const { importers } = await import('../import/kinds.ts')
    const entries = await readEntries(importers[kind as keyof typeof kinds], files.length > 0 ? files : ['-'], context)
    if (entries.length === 0) throw new CliError('no schedule to import')
    if (kind === 'crontab' && options.timezone === undefined && entries.some(({ cue }) => !cue.schedule?.timezone))
      io.stderr.write('pgcue: times without CRON_TZ are read as UTC; --timezone names the zone of the machine\n')
    const { set = kind } = options
    const named = entriesByTask(entries)
    const cues = [...named].map(([task, entry]) => declared(set, task, entry, options.paused ?? false))
    if (options.handlers !== undefined) writeHandlers(options.handlers, named)
    const document = { set, cues }
    const comments = entries.map(({ comment }) => comment)
    out.show(document, () => void io.stdout.write(writeYaml(JSON.stringify(document), comments)))
  }
})

/** The entries of all files. @throws UsageError if one can't be read */
const readEntries = async (importer: Importer, files: string[], { options: o, io }: Context<typeof options>): Promise<Entry[]> => {
  const { FormatError } = await import('../import/parts.ts')
  const { canonicalTimeZone } = await import('../schedule/zones.ts')
  if (o.timezone !== undefined && canonicalTimeZone(o.timezone) === undefined)
    throw new UsageError(`--timezone ${o.timezone} is not a time zone such as Europe/London`)
  const all: Entry[] = []
  const lines: string[] = []
  for (const file of files) {
    try {
      const settings = { file, timezone: o.timezone, system: o.system ?? false, now: new Date() }
      const { entries, problems } = importer(await readSource(file, '', io), settings)
      all.push(...entries)
      lines.push(...problems.map(({ line, reason }) => `${file}:${line}: ${reason}`))
    } catch (error) {
      throw error instanceof FormatError ? new UsageError(`${file}:${error.line}: ${error.message}`) : error
    }
  }
  for (const line of lines) io.stderr.write(`${printable(line)}\n`)
  return all
}

/** The entries by names that may end a key, in order. The second of a name has a number. */
const entriesByTask = (entries: Entry[]): Map<string, Entry> => {
  const byTask = new Map<string, Entry>()
  for (const entry of entries) {
    const task = keyText(entry.name)
    let unique = task
    for (let n = 2; byTask.has(unique); n++) unique = `${task}-${n}`
    byTask.set(unique, entry)
  }
  return byTask
}

const keyText = (text: string) =>
  text
    .replace(/[^A-Za-z0-9._/-]+/g, '-')
    .replace(/^[-/.]+|[-/.]+$/g, '')
    .slice(0, 100) || 'job'

const declared = (set: string, task: string, { cue, template }: Entry, paused: boolean): DeclaredCue => {
  const { name = task, description, payload, ...members } = cue
  const whole = {
    key: `${keyText(set)}/${task}`,
    name: name.slice(0, 255),
    ...(description && { description: description.slice(0, 2000) }),
    ...members,
    ...(members.worker ? { payload: { task, ...(payload as object) } } : payload !== undefined && { payload }),
    ...(paused && { paused })
  }
  return { ...(parseExactly(escapeVariables(JSON.stringify(whole))) as DeclaredCue), ...template }
}

/** Never replaces a file: it may have been edited. */
const writeHandlers = (file: string, entries: Map<string, Entry>) => {
  const handlers = Object.fromEntries([...entries].map(([task, { handler }]) => [task, handler]))
  try {
    writeFileSync(file, writeYaml(JSON.stringify({ handlers })), { flag: 'wx' })
  } catch (error) {
    throw new UsageError(`--handlers: ${(error as Error).message}`)
  }
}
