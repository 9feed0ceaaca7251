/** Tools for cues. */
import { Type } from 'typebox'
import { bounds } from '../cues/columns.ts'
import { plain } from '../cues/schemas.ts'
import { GivenOverlap as overlap } from '../executions/schemas.ts'
import { type GivenSchedule, givenRules } from '../schedule/schemas.ts'
import { cueLine, executionLine, more } from './lines.ts'
import { count_to, cursor, Id, IdempotencyKey, limit, offset, type Tool, tag, tool } from './tool.ts'

const Cue = Type.Object({ cue_id: Id('cue') })
const Payload = Type.Unknown({ description: 'Any JSON. For worker cues, its member `task` selects the handler.' })

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

export const cueTools: readonly Tool[] = [
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
      search: Type.Optional(Type.String({ description: 'Part of the name, key, task or a tag.' })),
      tag,
      limit,
      offset,
      cursor,
      count_to
    }),
    run: async (client, { limit = 10, ...filter }) => {
      const { cues, ...page } = await client.cues.list({ limit, ...filter })
      return { cues: cues.map(cueLine), ...more(page, 'get_cue shows one with its latest runs') }
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
    name: 'get_cue_history',
    description: "Get a cue's runs counted by day in its time zone, and the slots that did not run, with the reason.",
    scope: 'read',
    readOnly: true,
    input: Type.Object({
      cue_id: Id('cue'),
      days: Type.Optional(Type.Integer({ minimum: 1, maximum: 366, description: 'Default: 30.' })),
      until: Type.Optional(Type.String({ description: "The last day, such as 2030-01-31, in the cue's time zone. Default: today." }))
    }),
    run: async (client, { cue_id, days = 30, until }) => {
      const { days: counted, gaps, ...history } = await client.cues.history(cue_id, { days, until })
      return {
        ...history,
        days: counted.map(({ starts_at: _, ends_at: __, ...day }) => day),
        gaps: gaps.slice(0, 20),
        next_step: 'list_executions with this cue_id shows its runs'
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
  })
]
