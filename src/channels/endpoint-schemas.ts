/** Event endpoints on the wire. */
import { type Static, Type } from 'typebox'
import { enums } from '../catalog.ts'
import { CueId, Listed, Nullable, Page, Strict, Tag, Timestamp, Uuid } from '../schemas.ts'

export const EndpointParams = Type.Object({
  endpoint_id: Uuid('event_endpoint_not_found', 'Event endpoint not found in this account.')
})

export const CreateEventEndpoint = Strict({
  url: Type.String({ minLength: 1, maxLength: 2048, description: 'Gets a signed POST for each event.' }),
  types: Type.Array(Type.String({ maxLength: 100 }), {
    minItems: 1,
    maxItems: 50,
    description: 'Types of events; `execution.*` means all that begin so.'
  }),
  tag: Type.Optional(Nullable(Type.Unsafe<string>({ ...Tag, description: 'Only events of cues with this tag.' }))),
  cue_ids: Type.Optional(
    Nullable(Type.Array(CueId, { minItems: 1, maxItems: 100, uniqueItems: true, description: 'Only events of these cues.' }))
  ),
  description: Type.Optional(Nullable(Type.String({ maxLength: 2000 })))
})
export type CreateEventEndpoint = Static<typeof CreateEventEndpoint>

export const EventEndpoint = Type.Object({
  id: Type.String({ format: 'uuid' }),
  url: Type.String(),
  types: Type.Array(Type.String()),
  tag: Nullable(Type.String()),
  cue_ids: Nullable(Type.Array(Type.String())),
  description: Nullable(Type.String()),
  status: Type.Enum([...enums.endpointStatus], { description: '`disabled`: it failed for 3 days, at least 20 times.' }),
  failing_since: Nullable(Timestamp),
  tries: Type.Integer({ description: 'Failed tries since its latest success.' }),
  http_status: Nullable(Type.Integer({ description: 'Of the last response.' })),
  error: Nullable(Type.String({ description: 'Why the last try failed.' })),
  next_try_at: Nullable(Timestamp),
  delivered_at: Nullable(Timestamp),
  created_at: Timestamp,
  disabled_at: Nullable(Timestamp)
})

export const CreatedEventEndpoint = Type.Object({
  ...EventEndpoint.properties,
  secret: Type.String({ description: 'Signs its requests. Shown only once.' })
})

export const ListEventEndpoints = Type.Object(Page())
export const EventEndpoints = Type.Object({
  event_endpoints: Type.Array(EventEndpoint),
  ...Listed
})

export const EnableEventEndpoint = Strict({
  from: Type.Enum(['failure', 'now'], {
    description: '`failure`: the first event that it has not got; `now`: without those until now.'
  })
})

export const EnabledEventEndpoint = Type.Object({
  ...EventEndpoint.properties,
  truncated: Type.Boolean({
    description: 'Whether events are missing, because they are no longer kept or were left out above the limit of a day.'
  })
})
