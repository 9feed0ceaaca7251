/** The memory block on the wire. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Nullable, Strict } from '../schemas.ts'

const version = Type.Integer({
  description: "Increases when a cue is created, renamed, deleted or ends, and when the plan or the service's instructions change."
})
const changelog = Type.Array(
  Type.Object({ version: Type.Integer(), changes: Type.Array(Type.String()), updated_at: Type.String({ format: 'date-time' }) }),
  { description: 'The latest ten versions, newest first.' }
)

export const MemoryBlock = Type.Object({
  block: Type.String({ description: 'All other members as one text for the agent.' }),
  version,
  changelog,
  key: Nullable(Type.String({ description: 'The first 12 characters of the default key, and ***; null when all keys are revoked.' })),
  plan: Type.Enum([...enums.plan]),
  cues: Type.Array(Type.String(), { description: 'Names of active and paused cues, newest first; at most 500.' }),
  instructions: Type.String()
})

export const Subscribe = Strict({
  callback_url: Type.String({ description: 'Receives a signed POST when the block changes. A 410 response ends the subscription.' }),
  agent_id: Type.String({ minLength: 1, maxLength: 255, description: 'Subscribing again with the same id replaces the URL.' })
})
export const Subscribed = Type.Object({ subscribed: Type.Boolean(), agent_id: Type.String(), callback_url: Type.String() })
