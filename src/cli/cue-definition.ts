/** A cue as given by options and as shown. */
import type { Cue, NewCue } from '../client/index.ts'
import { type Context, only } from './command.ts'
import { UsageError } from './exit-codes.ts'
import { isObject, readJson } from './json.ts'
import { boundsText, cronsOf, membersOf, scheduleNames, scheduleOptions, scheduleText } from './schedule.ts'

/** Options that are members of a cue under their own names. */
const plain = {
  key: { type: 'string', value: 'KEY', help: 'your own name for the cue, unique in the account' },
  description: { type: 'string', value: 'TEXT', help: 'description of the cue' }
} as const
const plainNames = Object.keys(plain) as (keyof typeof plain)[]

export type Overlap = Cue['overlap']
/** Of a cue, for its slots; and of a fire or replay. */
export const overlap = {
  overlap: {
    type: 'string',
    value: 'RULE',
    help: 'while the cue is running: allow (default), skip, queue_one, queue_all or cancel_previous'
  }
} as const

/** Options for members of a cue. All others are set with --data. */
export const members = {
  cron: {
    type: 'string',
    multiple: true,
    value: 'CRON',
    help: 'cron expression: five fields, six with seconds, or a macro such as @daily'
  },
  at: { type: 'string', value: 'TIME', help: 'run once at this time: ISO 8601 with Z or an offset' },
  ...scheduleOptions,
  url: { type: 'string', value: 'URL', help: 'webhook URL' },
  payload: { type: 'string', value: 'JSON', help: 'payload to deliver: JSON, @FILE, or - for standard input' },
  ...plain,
  ...overlap,
  tag: { type: 'string', multiple: true, value: 'TAG', help: 'label to filter by; repeat it for several' },
  data: { type: 'string', value: 'JSON', help: 'other fields of the API request, as a JSON object, @FILE or -' }
} as const
export const names = {
  cron: '--cron',
  'schedule.cron': '--cron',
  'schedule.crons': '--cron',
  at: '--at',
  'schedule.at': '--at',
  timezone: '--timezone',
  ...scheduleNames,
  schedule: '--cron, --every or --at',
  'callback.url': '--url',
  payload: '--payload',
  ...Object.fromEntries(plainNames.map(name => [name, `--${name}`])),
  overlap: '--overlap',
  tags: '--tag',
  data: '--data'
}

/** Builds the request's body from --data, overridden by the other options. */
export const bodyOf = async ({ options, io }: Pick<Context<typeof members>, 'options' | 'io'>): Promise<Record<string, unknown>> => {
  if (options.data === '-' && options.payload === '-') throw new UsageError('only one of --data and --payload can read standard input')
  const data = options.data === undefined ? {} : await readJson(options.data, 'data', io)
  if (!isObject(data)) throw new UsageError('--data must be a JSON object')
  const { cron, at, url } = options
  const schedule = defined({ ...cronsOf(cron), at, ...membersOf({ options }) })
  return defined({
    ...data,
    ...defined(Object.fromEntries(plainNames.map(name => [name, options[name]]))),
    overlap: options.overlap ?? data.overlap,
    tags: options.tag ?? data.tags,
    schedule: Object.keys(schedule).length ? { ...(isObject(data.schedule) && data.schedule), ...schedule } : data.schedule,
    callback: url === undefined ? data.callback : { ...(isObject(data.callback) && data.callback), url },
    payload: options.payload === undefined ? data.payload : await readJson(options.payload, 'payload', io)
  })
}

export const defined = <T extends object>(object: T) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>

export const showCue = ({ out }: Pick<Context, 'out'>, cue: Cue) =>
  out.show(cue, () => {
    out.fields({
      id: cue.id,
      name: cue.name,
      ...Object.fromEntries(plainNames.map(name => [name, cue[name]])),
      tags: cue.tags.join(', ') || null,
      status: cue.status,
      'completed reason': cue.completed_reason,
      'paused by': cue.paused_by,
      'paused at': cue.paused_at,
      'paused until': cue.paused_until,
      reason: cue.pause_reason,
      version: cue.version,
      schedule: scheduleText(cue),
      ...boundsText(cue),
      'next run': cue.next_run,
      'next slot': cue.next_slot === cue.next_run ? null : cue.next_slot,
      'last run': cue.last_run,
      runs: cue.run_count,
      transport: cue.transport,
      url: cue.callback.url,
      payload: JSON.stringify(cue.payload),
      'catch up': cue.catch_up,
      overlap: cue.overlap
    })
    if (!cue.warning) return
    out.line('')
    out.line(`Warning: ${cue.warning}`)
  })

export const definition = {
  ...members,
  worker: { type: 'boolean', help: 'no webhook: workers claim the executions' },
  task: { type: 'string', value: 'TASK', help: 'sets "task" in the payload, which selects the handler' }
} as const

/** The body of a whole cue. NAME is the first of `args`, unless --data has a name. */
export const definitionOf = async (context: Context<typeof definition>, args: string[]): Promise<NewCue> => {
  const { options } = context
  const body = await bodyOf(context)
  if (args.length || body.name === undefined) body.name = only({ args }, 'NAME')
  if (options.worker) body.transport = 'worker'
  if (options.task !== undefined) {
    const { payload = {} } = body
    if (!isObject(payload)) throw new UsageError('--task requires a payload that is a JSON object')
    body.payload = { ...payload, task: options.task }
  }
  return body as NewCue
}

export const idempotency = {
  'idempotency-key': { type: 'string', value: 'KEY', help: 'idempotency key: repeating the command within 24 hours has no further effect' }
} as const
