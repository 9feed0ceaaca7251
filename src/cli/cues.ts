/** `pgcue cues …` */
import type { Cue, CueChanges, CueDetail, CueFilter, FiredExecution } from '../client/index.ts'
import { type Context, command, integer, none, only } from './command.ts'
import { bodyOf, defined, definition, definitionOf, idempotency, members, names, type Overlap, overlap, showCue } from './cue-definition.ts'
import { UsageError } from './exit-codes.ts'
import { cueFilterNames, cueFilterOf, cueFilters } from './filters.ts'
import { readJson } from './json.ts'
import { longPage, longPageNames, longPageOf } from './page.ts'
import { scheduleText } from './schedule.ts'

export const cuesCreate = command({
  args: 'NAME (--cron CRON | --every LENGTH | --at TIME) (--url URL | --worker)',
  summary: 'Create a cue',
  options: { ...definition, ...idempotency },
  names: { ...names, name: 'NAME', transport: '--worker' },
  notes: `Examples
  pgcue cues create report --cron '0 9 * * MON-FRI' --timezone Europe/London --url https://example.com/hook
  pgcue cues create ping --every 45m --max-runs 100 --url https://example.com/ping
  pgcue cues create backup --cron @daily --worker --task backup --payload '{"keep": 7}'
  pgcue cues create once --at 2030-01-15T09:00:00Z --url https://example.com/hook --data '{"retry": {"max_attempts": 5}}'`,
  run: async context => {
    const body = await definitionOf(context, context.args)
    showCue(context, await (await context.connect()).cues.create(body, { idempotencyKey: context.options['idempotency-key'] }))
  }
})

/** Options of commands that change a cue. */
const ifVersion = { 'if-version': { type: 'string', value: 'N', help: 'only if the cue still has this version' } } as const

const versionOf = ({ options }: { options: { 'if-version'?: string } }) => ({
  ifVersion: integer(options['if-version'], 'if-version', 1, 2 ** 31 - 1)
})

const { key: _, ...definitionByKey } = definition

export const cuesPut = command({
  args: 'KEY NAME (--cron CRON | --every LENGTH | --at TIME) (--url URL | --worker)',
  summary: 'Create the cue with a key, or replace its definition',
  options: { ...definitionByKey, ...ifVersion, 'only-new': { type: 'boolean', help: 'refuse to replace an existing cue' } },
  names: { ...names, key: 'KEY', name: 'NAME', transport: '--worker' },
  notes: `Options that are not given return to their defaults. Status and counters stay, and so does the next run if the schedule is the same.

Example
  pgcue cues put billing/report report --cron '0 9 * * MON-FRI' --url https://example.com/hook`,
  run: async context => {
    const [key, ...args] = context.args
    if (!key) throw new UsageError('missing argument KEY')
    const body = await definitionOf(context, args)
    const headers = { 'if-none-match': context.options['only-new'] ? '*' : undefined }
    showCue(context, await (await context.connect()).cues.put(key, body, { headers, ...versionOf(context) }))
  }
})

/** Options of commands that take a cue's id or its key. */
const byKey = { key: { type: 'string', value: 'KEY', help: "the cue's key, instead of ID" } } as const

const idOrKey = (context: Context<typeof byKey>): { id: string } | { key: string } => {
  const { key } = context.options
  if (key === undefined) return { id: only(context, 'ID') }
  if (context.args.length) throw new UsageError('give either ID or --key, not both')
  return { key }
}

export const cuesList = command({
  summary: 'List cues, newest first',
  options: {
    key: { type: 'string', value: 'KEY', help: 'only the cue with this key' },
    ...cueFilters,
    ...longPage
  },
  names: { key: '--key', ...cueFilterNames, ...longPageNames },
  run: async context => {
    none(context)
    const { options, out } = context
    const filter = {
      key: options.key,
      ...cueFilterOf(options),
      ...longPageOf(options)
    }
    const answer = await (await context.connect()).cues.list(filter as CueFilter)
    const columns: Parameters<typeof out.list<Cue>>[2] = [
      ['id', cue => cue.id],
      ...(answer.cues.some(cue => cue.key !== null) ? [['key', cue => cue.key] as [string, (cue: Cue) => string | null]] : []),
      ['name', cue => cue.name],
      ['status', cue => cue.status],
      ['schedule', scheduleText],
      ['transport', cue => cue.transport],
      ['next run', cue => cue.next_run],
      ['runs', cue => cue.run_count]
    ]
    out.list(answer, answer.cues, columns, 'No cues. Create one with: pgcue cues create')
  }
})

export const cuesGet = command({
  args: '(ID | --key KEY)',
  summary: 'Show a cue and its latest executions',
  options: byKey,
  run: async context => {
    const { out } = context
    const asked = idOrKey(context)
    const { cues } = await context.connect()
    const cue: CueDetail = await ('key' in asked ? cues.getByKey(asked.key) : cues.get(asked.id))
    showCue(context, cue)
    if (out.json || cue.executions.length === 0) return
    out.line('')
    out.line(`Latest of ${cue.execution_total} executions`)
    out.table(cue.executions, [
      ['id', execution => execution.id],
      ['status', execution => execution.status],
      ['scheduled for', execution => execution.scheduled_for],
      ['attempts', execution => execution.attempts],
      ['http', execution => execution.http_status],
      ['outcome', ({ outcome }) => outcome && (outcome.success ? 'success' : 'failure')]
    ])
  }
})

export const cuesUpdate = command({
  args: 'ID [options]',
  summary: 'Update a cue',
  options: { name: { type: 'string', value: 'NAME', help: 'new name' }, ...members, ...ifVersion },
  names: { ...names, name: '--name', cue_id: 'ID' },
  run: async context => {
    const id = only(context, 'ID')
    const body = await bodyOf(context)
    if (context.options.name !== undefined) body.name = context.options.name
    if (Object.keys(body).length === 0) throw new UsageError('nothing to update: give at least one option')
    const client = await context.connect()
    showCue(context, await client.cues.update(id, body as CueChanges, versionOf(context)))
  }
})

const showStatus = ({ out }: Pick<Context, 'out'>, cue: Cue) =>
  out.show(cue, () => {
    const until = cue.paused_until ? ` until ${cue.paused_until}` : ''
    out.line(`${cue.id} is ${cue.status}${until}${cue.next_run ? `; the next run is at ${cue.next_run}` : ''}`)
  })

export const cuesPause = command({
  args: 'ID [options]',
  summary: 'Pause a cue; existing executions continue',
  options: {
    reason: { type: 'string', value: 'TEXT', help: 'why it is paused, shown with the cue' },
    until: { type: 'string', value: 'TIME', help: 'resume by itself at this time: ISO 8601 with Z or an offset' },
    ...ifVersion
  },
  names: { reason: '--reason', until: '--until', cue_id: 'ID' },
  run: async context => {
    const id = only(context, 'ID')
    const { reason, until } = context.options
    showStatus(context, await (await context.connect()).cues.pause(id, { ...defined({ reason, until }), ...versionOf(context) }))
  }
})

export const cuesResume = command({
  args: 'ID',
  summary: 'Resume a paused cue',
  options: ifVersion,
  run: async context => {
    const id = only(context, 'ID')
    showStatus(context, await (await context.connect()).cues.resume(id, versionOf(context)))
  }
})

export const cuesFire = command({
  args: 'ID [options]',
  summary: 'Fire a cue now, regardless of its schedule',
  notes: 'Limit per cue and hour: fires_per_hour of the plan (10).',
  options: {
    payload: { type: 'string', value: 'JSON', help: "merged into the cue's payload: JSON, @FILE or -" },
    replace: { type: 'boolean', help: "--payload replaces the cue's payload instead" },
    at: { type: 'string', value: 'TIME', help: 'fire at this time instead, at most a year ahead' },
    ...overlap,
    'idempotency-key': { type: 'string', value: 'KEY', help: 'idempotency key: fires once per key in 24 hours' }
  },
  names: { payload_override: '--payload', send_at: '--at', overlap: '--overlap', idempotency_key: '--idempotency-key' },
  run: async context => {
    const { options, out, io } = context
    const id = only(context, 'ID')
    if (options.replace && options.payload === undefined) throw new UsageError('--replace requires --payload')
    const body = defined({
      payload_override: options.payload === undefined ? undefined : await readJson(options.payload, 'payload', io),
      merge_strategy: options.replace ? ('replace' as const) : undefined,
      send_at: options.at,
      overlap: options.overlap as Overlap | undefined,
      idempotency_key: options['idempotency-key']
    })
    const fired: FiredExecution = await (await context.connect()).cues.fire(id, body)
    out.show(fired, () => out.line(`Execution ${fired.id} is ${fired.status}, scheduled for ${fired.scheduled_for}`))
  }
})

export const cuesDelete = command({
  args: '(ID | --key KEY)',
  summary: 'Delete a cue with its history',
  options: { ...byKey, ...ifVersion },
  run: async context => {
    const { out } = context
    const asked = idOrKey(context)
    const version = versionOf(context)
    const { cues } = await context.connect()
    await ('key' in asked ? cues.deleteByKey(asked.key, version) : cues.delete(asked.id, version))
    out.show({ ...asked, deleted: true }, () => out.line(`Deleted ${'key' in asked ? asked.key : asked.id}`))
  }
})
