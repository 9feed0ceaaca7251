/**
 * The MCP tools, built on the client: a key can do here exactly what it can do over HTTP. Responses are short: ids, the relevant state and
 * a next step.
 */
import { type Static, type TSchema, Type } from 'typebox'
import type { Needed } from '../accounts/admission.ts'
import { CalendarName, PutCalendar } from '../calendars/schemas.ts'
import type { Client } from '../client/index.ts'
import { bounds } from '../cues/columns.ts'
import { plain } from '../cues/schemas.ts'
import { GivenOverlap as overlap } from '../executions/schemas.ts'
import { lengths } from '../outcomes/schemas.ts'
import { type GivenSchedule, givenRules } from '../schedule/schemas.ts'
import { alertLine, cueLine, executionLine } from './lines.ts'

export type Tool = {
  name: string
  description: string
  /** The scope required to see the tool; of a list, any one. */
  scope: Exclude<Needed, 'any'>
  readOnly: boolean
  input: TSchema
  run: (client: Client, input: never) => Promise<object>
}

const tool = <S extends TSchema>(
  definition: Omit<Tool, 'run' | 'input'> & { input: S; run: (client: Client, input: Static<S>) => Promise<object> }
): Tool => definition as unknown as Tool

const Id = (what: string) => Type.String({ description: `The ${what}'s id.` })
const Payload = Type.Unknown({ description: 'Any JSON. For worker cues, its member `task` selects the handler.' })
const Cue = Type.Object({ cue_id: Id('cue') })
const Execution = Type.Object({ execution_id: Id('execution') })
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'Maximum number of results. Default: 10.' }))
const offset = Type.Optional(Type.Integer({ minimum: 0 }))

const tag = Type.Optional(Type.Array(Type.String(), { description: 'Only with all of these tags.' }))

const schedule = {
  cron: Type.Optional(Type.String({ description: 'Five fields, or six with seconds first; or @hourly, @daily …' })),
  at: Type.Optional(Type.String({ description: 'Run once at this time instead of cron: ISO 8601 with Z or an offset.' })),
  timezone: Type.Optional(Type.String({ description: 'IANA time zone. Default: UTC.' })),
  ...givenRules
}
const scheduleMembers = Object.keys(schedule)

/** Splits arguments into the schedule and the others. */
const withSchedule = <G extends object>(given: G) => {
  const [members, others] = [true, false].map(wanted =>
    Object.fromEntries(Object.entries(given).filter(([name]) => scheduleMembers.includes(name) === wanted))
  ) as [GivenSchedule, Omit<G, keyof typeof schedule>]
  return { ...others, ...(Object.keys(members).length > 0 && { schedule: members }) }
}

const IdempotencyKey = Type.Optional(
  Type.String({ description: 'Repeating the call with the same key within 24 hours has no further effect.' })
)
const settings = Type.Partial(Type.Object(plain)).properties

const definition = {
  name: Type.String(bounds.name),
  ...schedule,
  callback_url: Type.Optional(Type.String({ description: 'The webhook URL.' })),
  payload: Type.Optional(Payload),
  ...settings
}
/** Without a callback, the cue is one for workers. */
const withTransport = <G extends { callback_url?: string }>(given: G) => ({
  ...given,
  ...(given.callback_url === undefined && { worker: true })
})

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }))
const evidence = {
  external_id: text(lengths.external_id),
  result_url: text(lengths.result_url),
  result_ref: text(lengths.result_ref),
  result_type: text(lengths.result_type),
  summary: text(lengths.summary),
  artifacts: Type.Optional(Type.Array(Type.Unknown())),
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown()))
}

/** Passed on as text without losing digits; the API validates them. */
export const freeArguments = ['cues', 'payload', 'payload_override', 'artifacts', 'metadata']
/** Members of API responses that contain free JSON. */
export const freeAnswers = ['changes', 'payload', 'artifacts', 'metadata']

export const tools: readonly Tool[] = [
  tool({
    name: 'preview_schedule',
    description: 'When a schedule would run next, in words and instants. Changes nothing; use it before creating a cue.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({ ...schedule, count: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })) }),
    run: async (client, given) => client.cues.preview({ schedule: {}, ...withSchedule(given) } as never)
  }),
  tool({
    name: 'create_cue',
    description: 'Schedule a task. With callback_url, each run sends a signed webhook; without, workers claim the runs.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ ...definition, idempotency_key: IdempotencyKey }),
    run: async (client, { idempotency_key: idempotencyKey, ...given }) => {
      const cue = await client.cues.create(withTransport(withSchedule(given)), { idempotencyKey })
      return { ...cueLine(cue), warning: cue.warning, next_step: 'fire_cue runs it now; list_executions shows its runs' }
    }
  }),
  tool({
    name: 'upsert_cue',
    description: 'Create the cue with your own key, or replace its definition: omitted fields return to their defaults. Safe to repeat.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ ...definition, key: Type.String({ ...bounds.key, description: 'Your own name for the cue.' }) }),
    run: async (client, { key, ...given }) => {
      const { changed, warning, ...cue } = await client.cues.put(key, withTransport(withSchedule(given)))
      return { ...cueLine({ ...cue, warning }), changed, warning, next_step: 'fire_cue runs it now; list_executions shows its runs' }
    }
  }),
  tool({
    name: 'apply',
    description:
      'Make the cues of a set as declared, all or none: create, replace and, with prune, delete. By default it only says what it would do; ' +
      'show that, then repeat it with dry_run: false.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({
      set: Type.String({ ...bounds.managed_by, description: 'The name of the set.' }),
      cues: Type.Optional(
        Type.Unknown({
          description: 'Required: a list of up to 500 cues with their keys. Fields as in the API; omitted ones have their defaults.'
        })
      ),
      prune: Type.Optional(Type.Boolean({ description: 'Delete cues of this set that are not in the list.' })),
      take_over: Type.Optional(Type.Boolean({ description: 'Also change cues of other sets.' })),
      dry_run: Type.Optional(Type.Boolean({ description: 'Default: true.' }))
    }),
    run: async (client, { dry_run = true, ...given }) => ({
      ...(await client.cues.apply({ ...given, dry_run } as never)),
      next_step: dry_run ? 'nothing was changed: apply with dry_run: false does it' : 'list_cues shows the cues'
    })
  }),
  tool({
    name: 'list_cues',
    description: 'List cues, newest first.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({
      status: Type.Optional(Type.Enum(['active', 'paused', 'completed', 'failed'])),
      name: Type.Optional(Type.String({ description: 'Part of the name.' })),
      key_prefix: Type.Optional(Type.String()),
      tag,
      limit,
      offset
    }),
    run: async (client, { limit = 10, ...filter }) => {
      const { cues, total } = await client.cues.list({ limit, ...filter })
      return {
        cues: cues.map(cueLine),
        total,
        next_step: total > cues.length ? 'use offset for more' : 'get_cue shows one with its latest runs'
      }
    }
  }),
  tool({
    name: 'get_cue',
    description: 'Get one cue with its settings, payload and latest runs.',
    scope: 'read',
    readOnly: true,
    input: Cue,
    run: async (client, { cue_id }) => {
      const { executions, execution_total, missed, ...cue } = await client.cues.get(cue_id)
      return {
        ...cue,
        executions: executions.slice(0, 5).map(executionLine),
        execution_total,
        missed: missed.slice(0, 3),
        next_step: 'get_execution shows a run with its attempts'
      }
    }
  }),
  tool({
    name: 'update_cue',
    description: "Change a cue's name, schedule, callback URL or payload. Omitted fields keep their values.",
    scope: 'write',
    readOnly: false,
    input: Type.Object({
      cue_id: Id('cue'),
      name: Type.Optional(Type.String(bounds.name)),
      ...schedule,
      callback_url: Type.Optional(Type.String()),
      payload: Type.Optional(Payload),
      ...settings,
      if_version: Type.Optional(Type.Integer({ description: 'Only if the cue still has this version.' }))
    }),
    run: async (client, { cue_id, callback_url, if_version, ...changes }) => {
      const body = {
        ...withSchedule(changes),
        ...(callback_url !== undefined && { callback: { url: callback_url } })
      }
      return cueLine(await client.cues.update(cue_id, body as never, { ifVersion: if_version }))
    }
  }),
  tool({
    name: 'pause_cue',
    description: 'Stop future runs of a cue, until you resume it or until a time. Existing runs continue.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({
      cue_id: Id('cue'),
      reason: Type.Optional(Type.String(bounds.pause_reason)),
      until: Type.Optional(Type.String({ description: 'When it resumes by itself: ISO 8601 with Z or an offset.' }))
    }),
    run: async (client, { cue_id, ...pause }) => ({
      ...cueLine(await client.cues.pause(cue_id, pause)),
      next_step: 'resume_cue starts it again'
    })
  }),
  tool({
    name: 'resume_cue',
    description: 'Resume a paused cue from now on.',
    scope: 'write',
    readOnly: false,
    input: Cue,
    run: async (client, { cue_id }) => cueLine(await client.cues.resume(cue_id))
  }),
  tool({
    name: 'fire_cue',
    description: 'Run a cue now, or at send_at. At most 10 times per hour.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({
      cue_id: Id('cue'),
      payload_override: Type.Optional(Type.Unknown({ description: "Merged into the cue's payload for this run." })),
      send_at: Type.Optional(Type.String({ description: 'ISO 8601 with Z or an offset, at most a year ahead.' })),
      overlap,
      idempotency_key: Type.Optional(Type.String({ description: 'Runs the cue only once per key in 24 hours.' }))
    }),
    run: async (client, { cue_id, ...body }) => ({
      ...(await client.cues.fire(cue_id, body as never)),
      next_step: 'get_execution with this id shows the result'
    })
  }),
  tool({
    name: 'delete_cue',
    description: 'Delete a cue with its history. This cannot be undone.',
    scope: 'write',
    readOnly: false,
    input: Cue,
    run: async (client, { cue_id }) => {
      await client.cues.delete(cue_id)
      return { cue_id, deleted: true }
    }
  }),
  tool({
    name: 'list_calendars',
    description: 'List calendars: dates and times that cues leave out, by the names in exclude_calendars.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({ limit, offset }),
    run: async (client, { limit = 10, ...page }) => {
      const { calendars, total } = await client.calendars.list({ limit, ...page })
      return { calendars, total, next_step: 'put_calendar replaces one; exclude_calendars of a cue names those that it uses' }
    }
  }),
  tool({
    name: 'put_calendar',
    description: 'Create or replace a calendar. The next runs of all cues that use it change at once. Omitted members are empty.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ name: CalendarName, ...PutCalendar.properties }),
    run: async (client, { name, ...body }) => ({
      ...(await client.calendars.put(name, body as never)),
      next_step: 'get_cue shows the next run of a cue that uses it'
    })
  }),
  tool({
    name: 'delete_calendar',
    description: 'Delete a calendar that no cue uses.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ name: CalendarName }),
    run: async (client, { name }) => {
      await client.calendars.delete(name)
      return { name, deleted: true }
    }
  }),
  tool({
    name: 'list_executions',
    description:
      'List runs, newest first, optionally of one cue, with one status such as failed, or those that failed and await a decision.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({
      cue_id: Type.Optional(Id('cue')),
      status: Type.Optional(Type.String()),
      dead: Type.Optional(Type.Boolean({ description: 'Only those that failed, and were neither replayed nor dismissed.' })),
      error: Type.Optional(Type.String({ description: 'Part of the error message.' })),
      tag,
      limit,
      offset
    }),
    run: async (client, { limit = 10, ...filter }) => {
      const { executions, total, has_more } = await client.executions.list({ limit, ...filter } as never)
      return {
        executions: executions.map(executionLine),
        total,
        next_step: has_more ? 'use offset for more' : 'get_execution shows one with its attempts'
      }
    }
  }),
  tool({
    name: 'get_execution',
    description: 'Get one run with its payload, attempts and outcome.',
    scope: ['read', 'worker'],
    readOnly: true,
    input: Execution,
    run: async (client, { execution_id }) => client.executions.get(execution_id)
  }),
  tool({
    name: 'replay_execution',
    description: 'Replay an ended run as a new execution with the same payload.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ execution_id: Id('execution'), overlap, idempotency_key: IdempotencyKey }),
    run: async (client, { execution_id, overlap, idempotency_key: idempotencyKey }) => ({
      ...(await client.executions.replay(execution_id, { overlap, idempotencyKey })),
      next_step: 'get_execution with the new id shows the result'
    })
  }),
  tool({
    name: 'replay_failed',
    description:
      'Replay the runs that failed, were missed or timed out, and were neither replayed nor dismissed: of the last 7 days, optionally of one cue, with a tag or an error. ' +
      'By default it only says how many there are; show that, then repeat it with dry_run: false.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({
      cue_id: Type.Optional(Id('cue')),
      tag,
      error: Type.Optional(Type.String({ description: 'Part of the error message.' })),
      from: Type.Optional(Type.String({ description: 'Created at or after this time: ISO 8601 with Z or an offset.' })),
      to: Type.Optional(Type.String({ description: 'Created before this time.' })),
      rate_per_minute: Type.Optional(Type.Integer({ minimum: 1 })),
      dry_run: Type.Optional(Type.Boolean({ description: 'Default: true.' })),
      idempotency_key: IdempotencyKey
    }),
    run: async (client, { rate_per_minute, dry_run = true, idempotency_key: idempotencyKey, ...filter }) => {
      const body = { type: 'replay', filter: { dead: true, ...filter }, ...(rate_per_minute && { rate_per_minute }) } as const
      if (dry_run)
        return {
          dry_run,
          ...(await client.operations.dryRun(body)),
          next_step: 'nothing was changed: replay_failed with dry_run: false replays them'
        }
      const operation = await client.operations.create(body, { idempotencyKey })
      return { dry_run, ...operation, next_step: 'get_operation with this id shows its progress' }
    }
  }),
  tool({
    name: 'get_operation',
    description: 'Get an operation, such as that of replay_failed: its progress, and what failed.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({ operation_id: Id('operation') }),
    run: async (client, { operation_id }) => client.operations.get(operation_id)
  }),
  tool({
    name: 'report_outcome',
    description: 'Report, once, whether a run succeeded, with evidence.',
    scope: 'worker',
    readOnly: false,
    input: Type.Object({
      execution_id: Id('execution'),
      success: Type.Boolean(),
      result: Type.Optional(Type.String({ maxLength: 2000 })),
      error: Type.Optional(Type.String({ maxLength: 2000 })),
      ...evidence
    }),
    run: async (client, { execution_id, ...report }) => ({
      ...(await client.executions.reportOutcome(execution_id, report as never)),
      next_step: 'attach_evidence adds evidence; the report itself cannot be changed'
    })
  }),
  tool({
    name: 'attach_evidence',
    description: 'Add evidence to a reported outcome. Existing evidence is kept.',
    scope: 'worker',
    readOnly: false,
    input: Type.Object({ execution_id: Id('execution'), ...evidence }),
    run: async (client, { execution_id, ...given }) => client.executions.attachEvidence(execution_id, given as never)
  }),
  tool({
    name: 'verify_execution',
    description: 'Verify a reported success, or reject it with valid: false.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ execution_id: Id('execution'), valid: Type.Optional(Type.Boolean()), reason: Type.Optional(Type.String()) }),
    run: async (client, { execution_id, ...body }) => client.executions.verify(execution_id, body)
  }),
  tool({
    name: 'list_alerts',
    description: 'List alerts: repeated failures, missed runs, missing outcomes, paused cues. Unacknowledged ones by default.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({ acknowledged: Type.Optional(Type.Boolean()), cue_id: Type.Optional(Id('cue')), limit, offset }),
    run: async (client, { acknowledged = false, limit = 10, ...filter }) => {
      const { alerts, total } = await client.alerts.list({ acknowledged, limit, ...filter })
      return { alerts: alerts.map(alertLine), total, next_step: 'acknowledge_alert acknowledges one' }
    }
  }),
  tool({
    name: 'acknowledge_alert',
    description: 'Acknowledge an alert. Another failure raises a new one.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ alert_id: Id('alert') }),
    run: async (client, { alert_id }) => alertLine(await client.alerts.acknowledge(alert_id))
  }),
  tool({
    name: 'get_usage',
    description: 'Usage against the limits of the plan. Check it before creating many cues.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({}),
    run: async client => client.usage()
  })
]
