/** Lists of cues on the wire. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Execution } from '../executions/schemas.ts'
import { CountTo, Cursor, endsEarly, NextCursor, Page, SearchTo, TagFilter, TotalExact } from '../schemas.ts'
import { cue } from './schemas.ts'

const { cueStatus: statuses, transport: transports, pauseCause: causes } = enums

/** Filters of lists and of bulk operations. */
export const filters = {
  status: Type.Optional(Type.Enum([...statuses])),
  set: Type.Optional(Type.String({ description: 'Only cues managed by this set.' })),
  key_prefix: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'The beginning of the key.' })),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'Part of the name; case is ignored.' })),
  transport: Type.Optional(Type.Enum([...transports])),
  paused_by: Type.Optional(Type.Enum([...causes])),
  tag: TagFilter,
  calendar: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Only cues that exclude this calendar.' })),
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Only cues whose name, key, task or tags contain this text, ignoring case, among the newest 10,000.'
    })
  )
}

export const ListCues = Type.Object({
  ...filters,
  key: Type.Optional(Type.String()),
  chain: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Only this cue (its id or key), the cues that it follows, and those that follow it, however far away.'
    })
  ),
  summary: Type.Optional(Type.Boolean({ description: 'Whether each cue has its `summary`.' })),
  sort: Type.Optional(
    Type.Enum(['next_run', 'name', 'failures'], {
      description:
        'Orders the newest 10,000: the next run first, by name, or those with the most failures in a row first. Default: the newest first.'
    })
  ),
  cursor: Cursor('\\d{1,17}\\.cue_[0-9A-Za-z]{12}'),
  count_to: CountTo,
  search_to: SearchTo,
  ...Page(20)
})
export const CueSummary = Type.Object({
  schedule: Type.String({ description: 'The schedule in words.' }),
  latest: Type.Array(
    Type.Object({
      id: Execution.properties.id,
      status: Execution.properties.status,
      outcome_state: Execution.properties.outcome_state,
      scheduled_for: Type.String({ format: 'date-time' })
    }),
    { description: 'The latest 20 executions, newest first.' }
  )
})
export const Cues = Type.Object({
  cues: Type.Array(Type.Object({ ...cue, summary: Type.Optional(CueSummary) }), { description: endsEarly }),
  total: Type.Integer(),
  total_exact: TotalExact,
  next_cursor: NextCursor,
  limit: Type.Integer(),
  offset: Type.Integer(),
  has_more: Type.Boolean({ description: 'Whether there are more cues. The next page starts at `offset` plus the number of cues returned.' })
})
