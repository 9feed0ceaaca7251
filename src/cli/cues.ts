/** `pgcue cues …` */
import type { Client, Cue, CueChanges, CueFilter, Fire, HistoryQuery, Pause, TestRequest } from '../client/index.ts'
import { type Context, command, filtersOf, fromApi, idempotency, integer, listing } from './command.ts'
import { atHelp, definition, definitionOf, inOption, members, names, payloadOption } from './cue-definition.ts'
import { exitCodes, UsageError } from './exit-codes.ts'
import { byKey, cueIdOf, cueOf } from './reference.ts'
import { scheduleText, showCue } from './schedule.ts'

/** Options of commands that change a cue. */
const ifVersion = { 'if-version': { type: 'string', value: 'N', help: 'only if the cue still has this version' } } as const

const versionOf = (options: { 'if-version'?: string }) => ({ ifVersion: integer(options['if-version'], 'if-version', 1, 2 ** 31 - 1) })

type Named = Pick<Context, 'args' | 'ready'> & { options: { key?: string; 'if-version'?: string } }
type Call<A, B> = (cues: Client['cues'], id: string, body: B, version: { ifVersion: number | undefined }) => Promise<A>

/** Calls the API for the cue that the command names. */
const onCue = async <A, B = object>(context: Named, call: Call<A, B>): Promise<A> => {
  const version = versionOf(context.options)
  const { client, body, id } = await cueOf<B>(context, context.options.key)
  return call(client.cues, id, body, version)
}

export const create = command({
  options: { ...definition, ...idempotency },
  names: { ...names, name: 'NAME' },
  notes: `Examples
  pgcue cues create report --cron '0 9 * * MON-FRI' --timezone Europe/London --url https://example.com/hook
  pgcue cues create ping --every 45m --max-runs 100 --url https://example.com/ping --retries 5 --backoff 30s,5m,1h
  pgcue cues create backup --cron @daily --worker --task backup --payload '{"keep": 7}'
  pgcue cues create reminder --in 10m --url https://example.com/hook --header 'X-Team: ops'`,
  run: async context => {
    const { client, body } = await definitionOf(context, context.args[0])
    return client.cues.create(body, { idempotencyKey: context.options['idempotency-key'] })
  },
  text: showCue
})

const { key: _, ...definitionByKey } = definition

export const put = command({
  options: { ...definitionByKey, ...ifVersion, 'only-new': { type: 'boolean', help: 'refuse to replace an existing cue' } },
  names: { ...names, key: 'KEY', name: 'NAME' },
  notes: `Options that are not given return to their defaults. Status and counters stay, and so does the next run if the schedule is the same.

Example
  pgcue cues put billing/report report --cron '0 9 * * MON-FRI' --url https://example.com/hook`,
  run: async context => {
    const [key, name] = context.args
    const { client, body } = await definitionOf(context, name)
    const headers = { 'if-none-match': context.options['only-new'] ? '*' : undefined }
    return client.cues.put(key!, body, { headers, ...versionOf(context.options) })
  },
  text: showCue
})

export const list = listing(
  ({ cues }, filter: CueFilter) => cues.list(filter),
  answer => answer.cues,
  cues => [
    'id',
    ...(cues.some(cue => cue.key !== null) ? (['key'] as const) : []),
    ...(['name', 'status', ['schedule', scheduleText], 'transport', 'next_run', ['runs', 'run_count']] as const)
  ],
  { empty: 'No cues. Create one with: pgcue cues create', options: filtersOf('listCues', { summary: null }) }
)

export const get = command({
  options: byKey,
  run: context => onCue(context, (cues, id) => cues.get(id)),
  text: (cue, out) => {
    showCue(cue, out)
    out.section(`Latest of ${cue.execution_total} executions`, cue.executions, [
      'id',
      'status',
      'scheduled_for',
      'attempts',
      ['http', 'http_status'],
      ['outcome', ({ outcome }) => outcome && (outcome.success ? 'success' : 'failure')]
    ])
  }
})

export const history = command({
  options: filtersOf('getCueHistory', { until: { member: 'until', value: 'DATE', help: 'the last day: YYYY-MM-DD (default: today)' } }),
  run: context => onCue(context, (cues, id, query: HistoryQuery) => cues.history(id, query)),
  text: ({ from, until, timezone, complete_from, days, gaps }, out) => {
    out.line(`${from} to ${until}, ${timezone}`)
    if (complete_from) out.line(`Only the newest 5,000 executions are counted: complete from ${complete_from}.`)
    out.line('')
    if (days.length === 0) out.line('No executions.')
    else out.table(days, ['date', 'succeeded', 'failed', 'missed', 'running'])
    out.section('Slots that did not run', gaps, ['first', 'last', ['slots', 'count'], ['why', 'reason']])
  }
})

export const update = command({
  options: { ...fromApi('createCue', { name: { member: 'name', value: 'NAME', help: 'new name' } }), ...members, ...ifVersion },
  names,
  run: async context => {
    const { key, 'if-version': version, ...changes } = context.options
    if (key === undefined && Object.keys(changes).length === 0) throw new UsageError('nothing to update: give at least one option')
    const { client, body, id } = await cueOf<CueChanges>(context)
    return client.cues.update(id, body, versionOf({ 'if-version': version }))
  },
  text: showCue
})

const showStatus = ({ id, status, paused_until, next_run }: Cue) =>
  `${id} is ${status}${paused_until ? ` until ${paused_until}` : ''}${next_run ? `; the next run is at ${next_run}` : ''}`

export const pause = command({
  options: {
    ...fromApi('pauseCue', {
      reason: { member: 'reason', help: 'why it is paused, shown with the cue' },
      until: { member: 'until', help: `resume by itself at this time: ${atHelp}` }
    }),
    ...ifVersion
  },
  run: context => onCue(context, (cues, id, body: Pause, version) => cues.pause(id, { ...body, ...version })),
  text: showStatus
})

export const resume = command({
  options: ifVersion,
  run: context => onCue(context, (cues, id, _, version) => cues.resume(id, version)),
  text: showStatus
})

export const fire = command({
  notes: 'Limit per cue and hour: fires_per_hour of the plan (10).',
  options: fromApi('fireCue', {
    payload: { member: 'payload_override', ...payloadOption, help: "merged into the cue's payload: JSON, @FILE or -" },
    in: { member: 'send_at', ...inOption },
    at: { member: 'send_at', help: `fire at this time instead, at most a year ahead: ${atHelp}` },
    overlap: { member: 'overlap', value: 'RULE' },
    'idempotency-key': { member: 'idempotency_key', value: 'KEY', help: 'idempotency key: fires once per key in 24 hours' },
    replace: {
      member: 'merge_strategy',
      type: 'boolean',
      help: "--payload replaces the cue's payload instead",
      read: () => 'replace'
    }
  }),
  run: async context => {
    const { replace, payload } = context.options
    if (replace && payload === undefined) throw new UsageError('--replace requires --payload')
    const { client, body, id } = await cueOf<Fire>(context)
    return client.cues.fire(id, body)
  },
  text: ({ id, status, scheduled_for }) => `Execution ${id} is ${status}, scheduled for ${scheduled_for}`
})

export const test = command({
  options: fromApi('testCue', {
    payload: { member: 'payload', ...payloadOption, help: "sent instead of the cue's payload: JSON, @FILE or -" }
  }),
  names: { url: 'CUE|URL', cue_id: 'CUE|URL' },
  notes: 'Nothing is stored. A test counts as a fire. The exit code is 1 if a delivery would fail.',
  run: async ({ args: [target], ready }) => {
    const { client, body } = await ready<TestRequest>()
    const to = /^https?:/i.test(target!) ? { url: target } : { cue_id: await cueIdOf(client, target!) }
    return client.cues.test({ ...body, ...to })
  },
  text: ({ request, response, error, duration_ms }, out) => {
    out.line(`${request.method} ${request.url}`, 'bold')
    for (const [name, value] of Object.entries(request.headers)) out.line(`${name}: ${value}`)
    for (const text of [request.body, '']) out.line(text)
    out.line(response ? `HTTP ${response.http_status} after ${duration_ms} ms` : `No response after ${duration_ms} ms`, 'bold')
    if (response?.body) out.line(response.body)
    if (error) out.line(`A delivery would fail: ${error}`, 'red')
  },
  exitCode: ({ error }) => (error ? exitCodes.refused : exitCodes.ok)
})

export const remove = command({
  options: { ...byKey, ...ifVersion },
  run: async context => {
    const key = context.options.key ?? context.args[0]
    const id = await onCue(context, (cues, id, _, version) => cues.delete(id, version).then(() => id))
    return { id, ...(key !== id && { key }), deleted: true }
  },
  text: ({ id, key = id }) => `Deleted ${key}`
})
