/** `pgcue cues …` */
import type { Cue, CueChanges, CueDetail, CueFilter, FiredExecution, NewCue } from '../client/index.ts'
import { type Context, command, integer, none, only } from './command.ts'
import { UsageError } from './exit-codes.ts'
import { isObject, readJson } from './json.ts'

/** What a cue is made of, on the command line. Everything else goes through --data. */
const members = {
  cron: { type: 'string', value: 'CRON', help: 'when, as five fields, six with seconds, or a macro such as @daily' },
  at: { type: 'string', value: 'TIME', help: 'when, once: ISO 8601 with its zone' },
  timezone: { type: 'string', value: 'ZONE', help: 'an IANA name such as Europe/London; UTC by default' },
  url: { type: 'string', value: 'URL', help: 'where the webhook goes' },
  payload: { type: 'string', value: 'JSON', help: 'what is delivered: JSON, @FILE or - for standard input' },
  description: { type: 'string', value: 'TEXT', help: 'for people' },
  data: { type: 'string', value: 'JSON', help: 'further members of the request, as the API has them: JSON, @FILE or -' }
} as const
const names = {
  cron: '--cron',
  'schedule.cron': '--cron',
  at: '--at',
  'schedule.at': '--at',
  timezone: '--timezone',
  'schedule.timezone': '--timezone',
  schedule: '--cron or --at',
  'callback.url': '--url',
  payload: '--payload',
  description: '--description',
  data: '--data'
} as const
const page = {
  limit: { type: 'string', value: 'N', help: 'how many, 1 to 100' },
  offset: { type: 'string', value: 'N', help: 'how many to pass over' }
} as const

/** The request's body: --data, and the options over it. */
const bodyOf = async ({ options, io }: Pick<Context<typeof members>, 'options' | 'io'>): Promise<Record<string, unknown>> => {
  if (options.data === '-' && options.payload === '-') throw new UsageError('standard input can be --data or --payload, not both')
  const data = options.data === undefined ? {} : await readJson(options.data, 'data', io)
  if (!isObject(data)) throw new UsageError('--data is a JSON object')
  const { cron, at, timezone, url, description } = options
  const schedule = defined({ cron, at, timezone })
  return defined({
    ...data,
    schedule: Object.keys(schedule).length ? { ...(isObject(data.schedule) && data.schedule), ...schedule } : data.schedule,
    callback: url === undefined ? data.callback : { ...(isObject(data.callback) && data.callback), url },
    payload: options.payload === undefined ? data.payload : await readJson(options.payload, 'payload', io),
    description: description ?? data.description
  })
}

const defined = <T extends object>(object: T) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>

const scheduleText = ({ schedule }: Cue) => {
  const when = schedule.type === 'once' ? schedule.at : schedule.cron
  return schedule.timezone === 'UTC' ? when : `${when} ${schedule.timezone}`
}

const showCue = ({ out }: Pick<Context, 'out'>, cue: Cue) =>
  out.show(cue, () => {
    out.fields({
      id: cue.id,
      name: cue.name,
      description: cue.description,
      status: cue.status,
      schedule: scheduleText(cue),
      'next run': cue.next_run,
      'last run': cue.last_run,
      runs: cue.run_count,
      transport: cue.transport,
      url: cue.callback.url,
      payload: JSON.stringify(cue.payload),
      'catch up': cue.catch_up
    })
    if (cue.warning) out.line(`\nWarning: ${cue.warning}`)
  })

export const cuesCreate = command({
  args: 'NAME (--cron CRON | --at TIME) (--url URL | --worker)',
  summary: 'Create a cue',
  options: {
    ...members,
    worker: { type: 'boolean', help: 'no webhook: a worker claims the executions' },
    task: { type: 'string', value: 'TASK', help: 'the payload member "task", by which workers choose' }
  },
  names: { ...names, name: 'NAME', transport: '--worker' },
  notes: `Examples
  pgcue cues create report --cron '0 9 * * MON-FRI' --timezone Europe/London --url https://example.com/hook
  pgcue cues create backup --cron @daily --worker --task backup --payload '{"keep": 7}'
  pgcue cues create once --at 2030-01-15T09:00:00Z --url https://example.com/hook --data '{"retry": {"max_attempts": 5}}'`,
  run: async context => {
    const { options, args, connect } = context
    const body = await bodyOf(context)
    if (args.length || body.name === undefined) body.name = only(context, 'NAME')
    if (options.worker) body.transport = 'worker'
    if (options.task !== undefined) {
      const { payload = {} } = body
      if (!isObject(payload)) throw new UsageError('--task needs a payload that is an object')
      body.payload = { ...payload, task: options.task }
    }
    const client = await connect()
    showCue(context, await client.cues.create(body as NewCue))
  }
})

export const cuesList = command({
  summary: 'List cues, newest first',
  options: { status: { type: 'string', value: 'STATUS', help: 'active, paused, completed or failed' }, ...page },
  names: { status: '--status' },
  run: async context => {
    none(context)
    const { options, out } = context
    const filter = { status: options.status, limit: integer(options.limit, 'limit', 1, 100), offset: offsetOf(options.offset) }
    const answer = await (await context.connect()).cues.list(filter as CueFilter)
    const columns: Parameters<typeof out.list<Cue>>[2] = [
      ['id', cue => cue.id],
      ['name', cue => cue.name],
      ['status', cue => cue.status],
      ['schedule', scheduleText],
      ['transport', cue => cue.transport],
      ['next run', cue => cue.next_run],
      ['runs', cue => cue.run_count]
    ]
    out.list(answer, answer.cues, columns, 'There are no cues. pgcue cues create makes one.')
  }
})

export const offsetOf = (value: string | undefined) => integer(value, 'offset', 0, 2 ** 31 - 1)

export const cuesGet = command({
  args: 'ID',
  summary: 'Show a cue and its latest executions',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    const cue: CueDetail = await (await context.connect()).cues.get(id)
    showCue(context, cue)
    if (out.json || cue.executions.length === 0) return
    out.line(`\nThe latest of ${cue.execution_total} executions`)
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
  summary: 'Change a cue',
  options: { name: { type: 'string', value: 'NAME', help: 'its name' }, ...members },
  names: { ...names, name: '--name', cue_id: 'ID' },
  run: async context => {
    const id = only(context, 'ID')
    const body = await bodyOf(context)
    if (context.options.name !== undefined) body.name = context.options.name
    if (Object.keys(body).length === 0) throw new UsageError('nothing to change; give an option')
    const client = await context.connect()
    showCue(context, await client.cues.update(id, body as CueChanges))
  }
})

const setStatus = (verb: 'pause' | 'resume', summary: string) =>
  command({
    args: 'ID',
    summary,
    run: async context => {
      const id = only(context, 'ID')
      const cue = await (await context.connect()).cues[verb](id)
      const { out } = context
      out.show(cue, () => out.line(`${cue.id} is ${cue.status}${cue.next_run ? `; the next run is at ${cue.next_run}` : ''}`))
    }
  })
export const cuesPause = setStatus('pause', 'Pause a cue; executions that exist go on')
export const cuesResume = setStatus('resume', 'Resume a paused cue')

export const cuesFire = command({
  args: 'ID [options]',
  summary: 'Run a cue now, whatever its schedule says',
  options: {
    payload: { type: 'string', value: 'JSON', help: "laid over the cue's payload: JSON, @FILE or -" },
    replace: { type: 'boolean', help: "--payload goes in place of the cue's" },
    at: { type: 'string', value: 'TIME', help: 'not now but then, within a year' },
    'idempotency-key': { type: 'string', value: 'KEY', help: 'the same key within 24 hours fires once' }
  },
  names: { payload_override: '--payload', send_at: '--at', idempotency_key: '--idempotency-key' },
  run: async context => {
    const { options, out, io } = context
    const id = only(context, 'ID')
    if (options.replace && options.payload === undefined) throw new UsageError('--replace goes with --payload')
    const body = defined({
      payload_override: options.payload === undefined ? undefined : await readJson(options.payload, 'payload', io),
      merge_strategy: options.replace ? ('replace' as const) : undefined,
      send_at: options.at,
      idempotency_key: options['idempotency-key']
    })
    const fired: FiredExecution = await (await context.connect()).cues.fire(id, body)
    out.show(fired, () => out.line(`Execution ${fired.id} is ${fired.status}, for ${fired.scheduled_for}`))
  }
})

export const cuesDelete = command({
  args: 'ID',
  summary: 'Delete a cue and its history',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    await (await context.connect()).cues.delete(id)
    out.show({ id, deleted: true }, () => out.line(`${id} is deleted`))
  }
})
