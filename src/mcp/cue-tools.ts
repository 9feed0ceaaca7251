/** Tools for cues. */
import { Type } from 'typebox'
import { bounds } from '../cues/columns.ts'
import * as declared from '../cues/declared-schemas.ts'
import * as lists from '../cues/list-schemas.ts'
import * as cues from '../cues/schemas.ts'
import * as schedules from '../schedule/schemas.ts'
import { Nullable } from '../schemas.ts'
import { CueLine, cueLine, ExecutionLine, executionLine, more, page } from './lines.ts'
import { described, Id, IdempotencyKey, limit, NextStep, type Tool, tool } from './tool.ts'

const Cue = Type.Object({ cue_id: Id('cue') })
const payload = Type.Optional(
  described(cues.CreateCue.properties.payload, 'Any JSON. For worker cues, its member `task` selects the handler.')
)

/** The members of a schedule, beside the others. */
const { type: _type, in: _in, ...scheduleProperties } = schedules.GivenSchedule.properties
// The API explains what is wrong with an instant better than a pattern does.
const at = Type.Optional(Nullable(Type.String({ description: 'ISO 8601 with `Z` or an offset, or an offset from now: `+10m`.' })))
const schedule = { ...scheduleProperties, at }
const scheduleMembers = Object.keys(schedule)

/** Splits arguments into the schedule and the others. */
const withSchedule = <G extends object>(input: G) => {
  const [members, rest] = [true, false].map(isSchedule =>
    Object.fromEntries(Object.entries(input).filter(([name]) => scheduleMembers.includes(name) === isSchedule))
  ) as [schedules.GivenSchedule, Omit<G, keyof typeof schedule>]
  const { at, ...untimed } = members
  const when = at?.startsWith('+') ? { ...untimed, in: at.slice(1) } : members
  return { ...rest, ...(Object.keys(members).length > 0 && { schedule: when }) }
}

const settings = Type.Pick(cues.CreateCue, ['callback_url', 'after', 'approval', ...cues.plainNames]).properties
const definition = { name: cues.CreateCue.properties.name, ...schedule, payload, ...settings }

/** Without a callback, the cue is one for workers. */
const withTransport = <G extends { callback_url?: string | null | undefined }>(input: G) => ({
  ...input,
  ...(input.callback_url == null && { worker: true })
})

const made = { warning: cues.Cue.properties.warning, next_step: NextStep }
const fireOrList = 'fire_cue runs it now; list_executions shows its runs'

/** For tools that change much. */
export const dry_run = Type.Optional(Type.Boolean({ default: true }))
const { updated } = declared.Applied.properties
/** Changes are null if their values are too large. */
const applied = {
  ...declared.Applied.properties,
  updated: Type.Array(Type.Object({ ...updated.items.properties, changes: Nullable(updated.items.properties.changes) }))
}

export const cueTools: readonly Tool[] = [
  tool({
    name: 'preview_schedule',
    description: 'When a schedule would run next, in words and instants. Changes nothing; use it before creating a cue.',
    scope: 'read',
    input: Type.Object({ ...schedule, ...Type.Partial(Type.Omit(schedules.PreviewRequest, ['schedule'])).properties }),
    output: schedules.Preview,
    run: async (client, input) => client.cues.preview({ schedule: {}, ...withSchedule(input) } as never)
  }),
  tool({
    name: 'create_cue',
    description: 'Schedule a task. With callback_url, each run sends a signed webhook; without, workers claim the runs.',
    scope: 'write',
    input: Type.Object({ ...definition, idempotency_key: IdempotencyKey }),
    output: Type.Object({ ...CueLine.properties, ...made }),
    run: async (client, { idempotency_key: idempotencyKey, ...input }) => {
      const cue = await client.cues.create(withTransport(withSchedule(input)) as never, { idempotencyKey })
      return { ...cueLine(cue), next_step: fireOrList }
    }
  }),
  tool({
    name: 'upsert_cue',
    description: 'Create the cue with your own key, or replace its definition: omitted fields return to their defaults. Safe to repeat.',
    scope: 'write',
    input: Type.Object({ ...definition, key: Type.String({ ...bounds.key, description: 'Your own name for the cue.' }) }),
    output: Type.Object({ ...CueLine.properties, changed: cues.UpsertedCue.properties.changed, ...made }),
    run: async (client, { key, ...input }) => {
      const cue = await client.cues.put(key, withTransport(withSchedule(input)) as never)
      return { ...cue, ...cueLine(cue), next_step: fireOrList }
    }
  }),
  tool({
    name: 'apply',
    description:
      'Make the cues of a set as declared, all or none: create, replace and, with prune, delete. By default it only says what it would do; ' +
      'show that, then repeat it with dry_run: false.',
    scope: 'write',
    input: Type.Object({ ...declared.Apply.properties, dry_run }),
    output: Type.Object({ ...applied, next_step: NextStep }),
    run: async (client, { dry_run = true, ...input }) => ({
      ...(await client.cues.apply({ ...input, dry_run } as never)),
      next_step: dry_run ? 'nothing was changed: apply with dry_run: false does it' : 'list_cues shows the cues'
    })
  }),
  tool({
    name: 'list_cues',
    description: 'List cues, newest first.',
    scope: 'read',
    input: Type.Object({
      ...Type.Partial(Type.Pick(lists.ListCues, ['status', 'name', 'key_prefix', 'search', 'tag', 'chain', 'offset', 'cursor', 'count_to']))
        .properties,
      limit
    }),
    output: Type.Object({ cues: Type.Array(CueLine), ...page }),
    run: async (client, { limit = 10, ...filter }) => {
      const { cues, ...page } = await client.cues.list({ limit, ...filter })
      return { cues: cues.map(cueLine), ...more(page, 'get_cue shows one with its latest runs') }
    }
  }),
  tool({
    name: 'get_cue',
    description: 'Get one cue with its settings, payload and latest runs.',
    scope: 'read',
    input: Cue,
    output: Type.Object({
      cue_id: Type.String(),
      ...cues.CueDetail.properties,
      executions: Type.Array(ExecutionLine),
      next_step: NextStep
    }),
    run: async (client, { cue_id }) => {
      const { executions, missed, ...cue } = await client.cues.get(cue_id)
      return {
        cue_id,
        ...cue,
        executions: executions.slice(0, 5).map(executionLine),
        missed: missed.slice(0, 3),
        next_step: 'get_execution shows a run with its attempts'
      }
    }
  }),
  tool({
    name: 'get_cue_history',
    description: "Get a cue's runs counted by day in its time zone, and the slots that did not run, with the reason.",
    scope: 'read',
    input: Type.Object({
      cue_id: Id('cue'),
      days: Type.Optional({ ...cues.HistoryQuery.properties.days, default: 30 }),
      // The API explains what is wrong with a date better than a pattern does.
      until: Type.Optional(Type.String({ description: "The last day, such as 2030-01-31, in the cue's time zone. Default: today." }))
    }),
    output: Type.Object({
      ...cues.History.properties,
      days: Type.Array(Type.Omit(cues.History.properties.days.items, ['starts_at', 'ends_at'])),
      next_step: NextStep
    }),
    run: async (client, { cue_id, days = 30, until }) => {
      const history = await client.cues.history(cue_id, { days, until })
      return { ...history, gaps: history.gaps.slice(0, 20), next_step: 'list_executions with this cue_id shows its runs' }
    }
  }),
  tool({
    name: 'update_cue',
    description: "Change a cue's name, schedule, callback URL or payload. Omitted fields keep their values.",
    scope: 'write',
    input: Type.Object({
      cue_id: Id('cue'),
      ...Type.Partial(Type.Object(definition)).properties,
      if_version: Type.Optional(Type.Integer({ description: 'Only if the cue still has this version.' }))
    }),
    output: CueLine,
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
    input: Type.Object({ cue_id: Id('cue'), ...cues.PauseCue.properties }),
    output: Type.Object({ ...CueLine.properties, next_step: NextStep }),
    run: async (client, { cue_id, ...pause }) => ({
      ...cueLine(await client.cues.pause(cue_id, pause)),
      next_step: 'resume_cue starts it again'
    })
  }),
  tool({
    name: 'resume_cue',
    description: 'Resume a paused cue from now on.',
    scope: 'write',
    input: Cue,
    output: CueLine,
    run: async (client, { cue_id }) => cueLine(await client.cues.resume(cue_id))
  }),
  tool({
    name: 'fire_cue',
    description: 'Run a cue now, or at send_at. Limit per cue and hour: fires_per_hour of the plan (10).',
    scope: 'write',
    input: Type.Object({ cue_id: Id('cue'), ...cues.FireRequest.properties }),
    output: Type.Object({ execution_id: Type.String(), ...cues.FiredExecution.properties, next_step: NextStep }),
    run: async (client, { cue_id, ...body }) => {
      const fired = await client.cues.fire(cue_id, body as never)
      return { ...fired, execution_id: fired.id, next_step: 'get_execution with this execution_id shows the result' }
    }
  }),
  tool({
    name: 'delete_cue',
    description: 'Delete a cue with its history. This cannot be undone.',
    scope: 'write',
    input: Cue,
    output: Type.Object({ cue_id: Type.String(), deleted: Type.Boolean() }),
    run: async (client, { cue_id }) => {
      await client.cues.delete(cue_id)
      return { cue_id, deleted: true }
    }
  })
]
