/** Options that define a cue. */
import type { NewCue } from '../client/index.ts'
import { instantAfter, isLength, lengthOf, offsetRule } from '../schedule/offset.ts'
import { type Context, data, fromApi, integer, jsonOf } from './command.ts'
import { UsageError } from './exit-codes.ts'
import { fields } from './fields.generated.ts'
import { isObject } from './io.ts'
import { cronsOf, ofCue, scheduleOptions } from './schedule.ts'

export const payloadOption = { value: 'JSON', help: 'payload to deliver: JSON, @FILE, or - for standard input', read: jsonOf } as const

/** The instant that lies so far ahead. */
const ahead = (length: string, name: string) => {
  const instant = instantAfter(new Date(), length)
  if (!instant) throw new UsageError(`--${name} ${offsetRule}, not ${length}`)
  return instant.toISOString()
}
export const inOption = { value: 'LENGTH', help: 'once, so long from now: 90s, 10m, 2h or 3d', read: ahead } as const
export const atHelp = 'ISO 8601 with Z or an offset, or so long from now: +10m'

const attempts = fields.createCue!['retry.max_attempts']!
/** The API counts attempts, including the first. */
const attemptsOf = (text: string, name: string) => integer(text, name, attempts.min! - 1, attempts.max! - 1)! + 1

const backoffOf = (text: string) =>
  text.split(',').map(part => {
    const wait = part.trim()
    if (isLength(wait)) return lengthOf(wait) / 60_000
    if (!/^\d+(\.\d+)?$/.test(wait)) throw new UsageError(`--backoff must be like 30s,5m,1h, not ${text}`)
    return Number(wait)
  })

const headersOf = (texts: string[]) => {
  const headers = texts.map(text => {
    const [, name, value] = /^([^:\s]+)\s*:\s*(.*)$/s.exec(text) ?? []
    if (name) return [name, value]
    throw new UsageError(`--header must be NAME: VALUE, not ${text}`)
  })
  return Object.fromEntries(headers)
}

const onFailureOf = (texts: string[]) => {
  const parts = texts.flatMap(text => (/^https?:/i.test(text) ? [text] : text.split(',')))
  const on_failure = parts.map(part => {
    const [, no, name, count] = /^(no-)?(email|pause|webhook|pause-after)(?:=(\d+))?$/.exec(part.trim()) ?? []
    if (/^https?:/i.test(part)) return { webhook: part }
    if (name === 'pause-after' && count && !no) return { pause_after: integer(count, 'on-failure pause-after', 1, 1000) }
    if (name === 'webhook' && no) return { webhook: null }
    if ((name === 'email' || name === 'pause') && !count) return { [name]: !no }
    throw new UsageError(`--on-failure must be email, no-email, pause, no-pause, pause-after=N, no-webhook or a URL, not ${part}`)
  })
  return { on_failure: Object.assign({}, ...on_failure) }
}

const schedule = {
  ...ofCue('Schedule', {
    cron: {
      member: 'schedule.crons',
      value: 'CRON',
      help: 'cron expression: five fields, six with seconds, or a macro such as @daily',
      members: ['cron', 'schedule.cron', 'schedule.crons'],
      part: (crons: string[]) => ({ schedule: cronsOf(crons) })
    },
    in: { member: 'schedule.at', ...inOption },
    at: { member: 'schedule.at', members: ['at', 'schedule.at'], help: `run once at this time: ${atHelp}` }
  }),
  ...scheduleOptions
}

const delivery = ofCue('Delivery', {
  url: { member: 'callback.url', value: 'URL', help: 'webhook URL' },
  method: { member: 'callback.method', value: 'METHOD' },
  header: { member: 'callback.headers', multiple: true, value: 'NAME: VALUE', help: 'header of the request', read: headersOf },
  payload: { member: 'payload', ...payloadOption },
  template: { member: 'template', negatable: true, help: 'replace {{name}} in payload, headers and query, see Templates in the guide' },
  timeout: { member: 'delivery.timeout_seconds', value: 'SECONDS', help: 'time for a response, such as 30 or 2m' }
})

const outcome = ofCue('Outcome', {
  'await-outcome': { member: 'delivery.await_outcome', negatable: true, help: 'wait for a reported outcome after a 2xx' },
  verify: { member: 'verification.mode', value: 'MODE' },
  retries: {
    member: 'retry.max_attempts',
    members: [],
    read: attemptsOf,
    help: `attempts after the first (${attempts.min! - 1} to ${attempts.max! - 1}; default: ${Number(attempts.default) - 1})`
  },
  backoff: {
    member: 'retry.backoff_minutes',
    multiple: undefined,
    value: 'LENGTHS',
    help: 'waits before the retries, in minutes or such as 30s,5m,1h (default: 1m,2m,4m)',
    read: backoffOf
  },
  'on-failure': {
    member: 'on_failure.webhook',
    multiple: true,
    value: 'ACTIONS',
    help: 'email, no-email, pause, no-pause, pause-after=N, a URL, or several of them with commas',
    members: ['on_failure', 'on_failure.webhook', 'on_failure.pause_after'],
    part: onFailureOf
  }
})

const afterOf = (cues: string[], _: string, { options }: Context) => {
  if (cues.some(Boolean)) return { after: { cues } }
  const [more] = ['when', 'mode', 'within', 'wait'].filter(name => options[name] !== undefined)
  if (more) throw new UsageError(`--after '' follows no cue, so leave out --${more}`)
  return { after: null }
}

const after = ofCue('Chain', {
  after: {
    member: 'after.cues',
    value: 'CUE',
    help: "key or id of a cue that it follows, with or without a schedule; '' for none",
    members: ['after', 'after.cues'],
    part: afterOf
  },
  when: { member: 'after.when', value: 'WHEN' },
  mode: { member: 'after.mode', value: 'MODE' },
  within: { member: 'after.within', value: 'LENGTH' },
  wait: { member: 'after.wait', value: 'LENGTH' }
})
const approval = {
  approval: {
    type: 'boolean',
    group: 'Approval',
    negatable: true,
    help: 'each run waits until a person approves it',
    members: ['approval'],
    part: (isSet: boolean) => ({ approval: isSet ? {} : null })
  },
  ...ofCue('Approval', {
    'approval-expires': {
      member: 'approval.expires',
      value: 'LENGTH',
      help: 'how long a person may take, from 1m to 31d, or never (default: 24h)',
      read: (length: string) => (length === 'never' ? null : length)
    },
    'approval-on-expiry': {
      member: 'approval.on_expiry',
      value: 'ACTION',
      help: 'afterwards, a run is missed, or it runs: skip or run (default: skip)'
    },
    'approval-message': { member: 'approval.message', value: 'TEXT' }
  })
} as const

/** Options for members of a cue. All others are set with --data. */
export const members = {
  ...data,
  ...schedule,
  ...after,
  ...delivery,
  ...outcome,
  ...approval,
  ...fromApi('createCue', {
    key: { member: 'key', value: 'KEY' },
    description: 'description',
    overlap: { member: 'overlap', value: 'RULE' },
    gate: { member: 'gate', value: 'GATE' },
    'catch-up': { member: 'catch_up', value: 'POLICY' },
    tag: { member: 'tags', value: 'TAG' },
    'alert-channel': {
      member: 'alerts.channels',
      multiple: true,
      value: 'NAME',
      help: "channel that gets its alerts; '' for none (default: those with --default)",
      read: (channels: string[]) => channels.filter(Boolean)
    }
  })
} as const

/** Arguments and groups of options by the members that they set. */
export const names = { schedule: '--cron, --every, --at or --after' }

export const definition = {
  ...members,
  worker: {
    type: 'boolean',
    group: 'Delivery',
    help: 'no webhook: workers claim the executions',
    members: ['transport', 'worker'],
    part: () => ({ transport: 'worker' })
  },
  task: { type: 'string', value: 'TASK', group: 'Delivery', help: 'sets "task" in the payload, which selects the handler', part: taskPart }
} as const

function taskPart(task: string, _: string, __: Context, { payload = {} }: { payload?: unknown }) {
  if (!isObject(payload)) throw new UsageError('--task requires a payload that is a JSON object')
  return { payload: { ...payload, task } }
}

/** The request for a whole cue. `name` is the argument, which --data may have instead. */
export const definitionOf = async ({ options, ready }: Pick<Context<typeof data>, 'options' | 'ready'>, name: string | undefined) => {
  const request = (name ?? options.data) === undefined ? undefined : await ready<NewCue>()
  if (request && name !== undefined) request.body.name = name
  if (request?.body.name === undefined) throw new UsageError("missing required argument 'NAME'")
  return request
}
