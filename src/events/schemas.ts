/** Events on the wire. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { MAX_WAIT_SECONDS, MAX_WAITING } from '../database/long-poll.ts'
import { JsonObject, Nullable, TagFilter, Timestamp } from '../schemas.ts'

export const eventTypes = enums.eventType

export const ListEvents = Type.Object({
  after: Type.Optional(
    Type.String({
      maxLength: 100,
      description:
        'The `cursor` of the page before, or `start` for the oldest event that is kept. Without it, an empty page and the cursor of now.'
    })
  ),
  types: Type.Optional(
    Type.String({ maxLength: 1000, description: 'Only these types, separated by commas. `execution.*` means all that begin so.' })
  ),
  cue_id: Type.Optional(Type.String({ description: 'Only events of this cue and of its executions and alerts.' })),
  tag: TagFilter,
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 100 }),
  wait: Type.Number({
    minimum: 0,
    maximum: MAX_WAIT_SECONDS,
    default: 0,
    description: `Long poll: seconds to wait for an event. An account may have ${MAX_WAITING} such requests and streams open.`
  })
})

export const Event = Type.Object({
  id: Type.String({ format: 'uuid', description: 'The same if the event is read again.' }),
  type: Type.Enum([...eventTypes]),
  at: Timestamp,
  cue_id: Nullable(Type.String()),
  cue_key: Nullable(Type.String()),
  execution_id: Nullable(Type.String({ format: 'uuid' })),
  data: JsonObject({
    description:
      'The cue, execution, alert, operation or key as lists showed it then, without payload and headers. At most 16 KB: `left_out` names members ' +
      'that are too large.'
  })
})

export const Events = Type.Object({
  events: Type.Array(Event),
  cursor: Type.String({ description: 'Where to continue: `after` of the next request.' }),
  has_more: Type.Boolean({ description: 'Whether to continue at once. With filters, a page may be empty although there is more.' }),
  truncated: Type.Boolean({
    description: 'Whether events are missing before this page or in it: too old, or left out above the limit of 100,000 a day.'
  })
})
