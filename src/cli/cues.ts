/** `pgcue cues …` */
import type { Cue, CueChanges, CueFilter, Fire, HistoryQuery, Pause, TestRequest } from '../client/index.ts'
import { type Context, command, filtersOf, fromApi, idempotency, integer } from './command.ts'
import { atHelp, definition, definitionOf, inOption, members, names, payloadOption } from './cue-definition.ts'
import { exitCodes, UsageError } from './exit-codes.ts'
import type { Column } from './output.ts'
import { byKey, cueIdOf, cueOf } from './reference.ts'
import { scheduleText, showCue } from './schedule.ts'

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
    showCue(context, await client.cues.create(body, { idempotencyKey: context.options['idempotency-key'] }))
  }
})

/** Options of commands that change a cue. */
const ifVersion = { 'if-version': { type: 'string', value: 'N', help: 'only if the cue still has this version' } } as const

const versionOf = ({ options }: { options: { 'if-version'?: string } }) => ({
  ifVersion: integer(options['if-version'], 'if-version', 1, 2 ** 31 - 1)
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
    showCue(context, await client.cues.put(key!, body, { headers, ...versionOf(context) }))
  }
})

export const list = command({
  options: filtersOf('listCues', { summary: null }),
  run: async context => {
    const { out } = context
    const { client, body } = await context.ready<CueFilter>()
    const answer = await client.cues.list(body)
    const columns: Column<Cue>[] = [
      'id',
      ...(answer.cues.some(cue => cue.key !== null) ? (['key'] as Column<Cue>[]) : []),
      'name',
      'status',
      ['schedule', scheduleText],
      'transport',
      'next_run',
      ['runs', 'run_count']
    ]
    out.list(answer, answer.cues, columns, 'No cues. Create one with: pgcue cues create')
  }
})

export const get = command({
  options: byKey,
  run: async context => {
    const { out } = context
    const { client, id } = await cueOf(context, context.options.key)
    const cue = await client.cues.get(id)
    showCue(context, cue)
    if (out.json || cue.executions.length === 0) return
    out.line('')
    out.line(`Latest of ${cue.execution_total} executions`)
    out.table(cue.executions, [
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
  run: async context => {
    const { out } = context
    const { client, body, id } = await cueOf<HistoryQuery>(context)
    const answer = await client.cues.history(id, body)
    out.show(answer, () => {
      out.line(`${answer.from} to ${answer.until}, ${answer.timezone}`)
      if (answer.complete_from) out.line(`Only the newest 5,000 executions are counted: complete from ${answer.complete_from}.`)
      out.line('')
      if (answer.days.length === 0) out.line('No executions.')
      else out.table(answer.days, ['date', 'succeeded', 'failed', 'missed', 'running'])
      out.section('Slots that did not run', answer.gaps, ['first', 'last', ['slots', 'count'], ['why', 'reason']])
    })
  }
})

export const update = command({
  options: { ...fromApi('createCue', { name: { member: 'name', value: 'NAME', help: 'new name' } }), ...members, ...ifVersion },
  names,
  run: async context => {
    if (Object.entries(context.options).every(([name, value]) => name === 'if-version' || value === undefined))
      throw new UsageError('nothing to update: give at least one option')
    const { client, body, id } = await cueOf<CueChanges>(context)
    showCue(context, await client.cues.update(id, body, versionOf(context)))
  }
})

const showStatus = ({ out }: Pick<Context, 'out'>, cue: Cue) =>
  out.show(cue, () => {
    const until = cue.paused_until ? ` until ${cue.paused_until}` : ''
    out.line(`${cue.id} is ${cue.status}${until}${cue.next_run ? `; the next run is at ${cue.next_run}` : ''}`)
  })

export const pause = command({
  options: {
    ...fromApi('pauseCue', {
      reason: { member: 'reason', help: 'why it is paused, shown with the cue' },
      until: { member: 'until', help: `resume by itself at this time: ${atHelp}` }
    }),
    ...ifVersion
  },
  run: async context => {
    const { client, body, id } = await cueOf<Pause>(context)
    showStatus(context, await client.cues.pause(id, { ...body, ...versionOf(context) }))
  }
})

export const resume = command({
  options: ifVersion,
  run: async context => {
    const { client, id } = await cueOf(context)
    showStatus(context, await client.cues.resume(id, versionOf(context)))
  }
})

export const fire = command({
  notes: 'Limit per cue and hour: fires_per_hour of the plan (10).',
  options: {
    ...fromApi('fireCue', {
      payload: { member: 'payload_override', ...payloadOption, help: "merged into the cue's payload: JSON, @FILE or -" },
      in: { member: 'send_at', ...inOption },
      at: { member: 'send_at', help: `fire at this time instead, at most a year ahead: ${atHelp}` },
      overlap: { member: 'overlap', value: 'RULE' },
      'idempotency-key': { member: 'idempotency_key', value: 'KEY', help: 'idempotency key: fires once per key in 24 hours' }
    }),
    replace: {
      type: 'boolean',
      help: "--payload replaces the cue's payload instead",
      members: ['merge_strategy'],
      part: () => ({ merge_strategy: 'replace' })
    }
  },
  run: async context => {
    const { options, out } = context
    if (options.replace && options.payload === undefined) throw new UsageError('--replace requires --payload')
    const { client, body, id } = await cueOf<Fire>(context)
    const fired = await client.cues.fire(id, body)
    out.show(fired, () => out.line(`Execution ${fired.id} is ${fired.status}, scheduled for ${fired.scheduled_for}`))
  }
})

export const test = command({
  options: fromApi('testCue', {
    payload: { member: 'payload', ...payloadOption, help: "sent instead of the cue's payload: JSON, @FILE or -" }
  }),
  names: { url: 'CUE|URL', cue_id: 'CUE|URL' },
  notes: 'Nothing is stored. A test counts as a fire. The exit code is 1 if a delivery would fail.',
  run: async ({ args: [target], out, ready }) => {
    const { client, body } = await ready<TestRequest>()
    const to = /^https?:/i.test(target!) ? { url: target } : { cue_id: await cueIdOf(client, target!) }
    const tested = await client.cues.test({ ...body, ...to })
    const { request, response, error, duration_ms } = tested
    out.show(tested, () => {
      out.line(`${request.method} ${request.url}`, 'bold')
      for (const [name, value] of Object.entries(request.headers)) out.line(`${name}: ${value}`)
      for (const text of [request.body, '']) out.line(text)
      out.line(response ? `HTTP ${response.http_status} after ${duration_ms} ms` : `No response after ${duration_ms} ms`, 'bold')
      if (response?.body) out.line(response.body)
      if (error) out.line(`A delivery would fail: ${error}`, 'red')
    })
    return error ? exitCodes.refused : exitCodes.ok
  }
})

export const remove = command({
  options: { ...byKey, ...ifVersion },
  run: async context => {
    const { args, options, out } = context
    const version = versionOf(context)
    const { client, id } = await cueOf(context, options.key)
    await client.cues.delete(id, version)
    const key = options.key ?? args[0]!
    out.show({ id, ...(key !== id && { key }), deleted: true }, () => out.line(`Deleted ${key}`))
  }
})
