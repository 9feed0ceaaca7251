/** `pgcue cues …` */
import type { Cue, CueChanges, CueFilter, Fire, HistoryQuery, Pause, TestRequest, TestResult } from '../client/index.ts'
import { type Context, command, filtersOf, fromApi, idempotency, ifVersion, listing } from './command.ts'
import { atHelp, definition, definitionOf, inOption, members, names, payloadOption } from './cue-definition.ts'
import { exitCodes, UsageError } from './exit-codes.ts'
import type { Output } from './output.ts'
import { byKey, cueIdOf, cueOf, onCue } from './reference.ts'
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
    const { client, body, call } = await definitionOf(context, context.args[0])
    return client.cues.create(body, call)
  },
  text: showCue
})

export const previewPayload = command({
  options: definition,
  names: { ...names, name: 'NAME' },
  notes: `The options are those of cues create. With the --key of a cue, values of its latest success are shown; otherwise, examples.

Example
  pgcue cues preview-payload report --cron @daily --url https://example.com/hook --template --payload '{"day": "{{scheduled_date}}"}'`,
  run: async context => {
    const { client, body } = await definitionOf(context, context.args[0])
    return client.cues.previewPayload(body)
  },
  text: ({ payload, url, headers }, out) => {
    if (url !== null) out.line(url, 'bold')
    for (const [name, value] of Object.entries(headers)) out.line(`${name}: ${value}`)
    for (const line of JSON.stringify(payload, null, 2).split('\n')) out.line(line)
  }
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
    const { client, body, call } = await definitionOf(context, name)
    return client.cues.put(key!, body, { ...call, headers: { 'if-none-match': context.options['only-new'] ? '*' : undefined } })
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
  run: async context => {
    const { cues, id } = await cueOf(context, context.options.key)
    return cues.get(id)
  },
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

export const history = onCue(
  (cues, id, query: HistoryQuery) => cues.history(id, query),
  ({ from, until, timezone, complete_from, days, gaps }, out) => {
    out.line(`${from} to ${until}, ${timezone}`)
    if (complete_from) out.line(`Only the newest 5,000 executions are counted: complete from ${complete_from}.`)
    out.line('')
    if (days.length === 0) out.line('No executions.')
    else out.table(days, ['date', 'succeeded', 'failed', 'missed', 'running'])
    out.section('Slots that did not run', gaps, ['first', 'last', ['slots', 'count'], ['why', 'reason']])
  },
  { options: filtersOf('getCueHistory', { until: { member: 'until', value: 'DATE', help: 'the last day: YYYY-MM-DD (default: today)' } }) }
)

export const update = command({
  options: { ...fromApi('createCue', { name: { member: 'name', value: 'NAME', help: 'new name' } }), ...members, ...ifVersion },
  names,
  run: async context => {
    if (Object.keys(context.options).every(name => name === 'if-version'))
      throw new UsageError('nothing to update: give at least one option')
    const { cues, id, body, call } = await cueOf<CueChanges>(context)
    return cues.update(id, body, call)
  },
  text: showCue
})

const showStatus = ({ id, status, paused_until, next_run }: Cue) =>
  `${id} is ${status}${paused_until ? ` until ${paused_until}` : ''}${next_run ? `; the next run is at ${next_run}` : ''}`

export const pause = onCue((cues, id, body: Pause, call) => cues.pause(id, { ...body, ...call }), showStatus, {
  options: {
    ...fromApi('pauseCue', {
      reason: { member: 'reason', help: 'why it is paused, shown with the cue' },
      until: { member: 'until', help: `resume by itself at this time: ${atHelp}` }
    }),
    ...ifVersion
  }
})

export const resume = onCue((cues, id, _, call) => cues.resume(id, call), showStatus, { options: ifVersion })

export const fire = onCue(
  (cues, id, body: Fire) => cues.fire(id, body),
  ({ id, status, scheduled_for }) => `Execution ${id} is ${status}, scheduled for ${scheduled_for}`,
  {
    notes: 'Limit per cue and hour: fires_per_hour of the plan (10).',
    options: fromApi('fireCue', {
      payload: { member: 'payload_override', ...payloadOption, help: "merged into the cue's payload: JSON, @FILE or -" },
      in: { member: 'send_at', ...inOption },
      at: { member: 'send_at', help: `fire at this time instead, at most a year ahead: ${atHelp}` },
      overlap: { member: 'overlap', value: 'RULE' },
      'idempotency-key': { member: 'idempotency_key', value: 'KEY', help: 'idempotency key: fires once per key in 24 hours' },
      replace: { member: 'merge_strategy', type: 'boolean', help: "--payload replaces the cue's payload instead", read: replaceOf }
    })
  }
)

function replaceOf(_: boolean, __: string, { options }: Context) {
  if (options.payload === undefined) throw new UsageError('--replace requires --payload')
  return 'replace'
}

export const test = command({
  options: fromApi('testCue', {
    payload: { member: 'payload', ...payloadOption, help: "sent instead of the cue's payload: JSON, @FILE or -" }
  }),
  names: { url: 'CUE|URL', cue_id: 'CUE|URL' },
  notes: 'Nothing is stored. A test counts as a fire. The exit code is 1 if a delivery would fail.',
  run: async ({ args: [target], ready, out }) => {
    const { client, body } = await ready<TestRequest>()
    const to = /^https?:/i.test(target!) ? { url: target } : { cue_id: await cueIdOf(client, target!) }
    const test = await client.cues.test({ ...body, ...to })
    out.show(test, () => showTest(test, out))
    return test.error ? exitCodes.refused : exitCodes.ok
  }
})

const showTest = ({ request, response, error, duration_ms }: TestResult, out: Output) => {
  out.line(`${request.method} ${request.url}`, 'bold')
  for (const [name, value] of Object.entries(request.headers)) out.line(`${name}: ${value}`)
  for (const text of [request.body, '']) out.line(text)
  out.line(response ? `HTTP ${response.http_status} after ${duration_ms} ms` : `No response after ${duration_ms} ms`, 'bold')
  if (response?.body) out.line(response.body)
  if (error) out.line(`A delivery would fail: ${error}`, 'red')
}

export const remove = command({
  options: { ...byKey, ...ifVersion },
  run: async context => {
    const key = context.options.key ?? context.args[0]
    const { cues, id, call } = await cueOf(context, context.options.key)
    await cues.delete(id, call)
    return { id, ...(key !== id && { key }), deleted: true }
  },
  text: ({ id, key = id }) => `Deleted ${key}`
})
