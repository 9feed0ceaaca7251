/** The memory block on the wire. */
import { Type } from 'typebox'
import { Nullable, Strict } from '../schemas.ts'

const version = Type.Integer({
  description: "Grows when a cue is created, renamed, deleted or ends, and with the plan and the service's instructions."
})
const changelog = Type.Array(
  Type.Object({ version: Type.Integer(), changes: Type.Array(Type.String()), updated_at: Type.String({ format: 'date-time' }) }),
  { description: 'The latest ten versions, newest first.' }
)

export const MemoryBlock = Type.Object({
  block: Type.String({ description: 'The text to keep: all of the rest in words.' }),
  version,
  changelog,
  key: Nullable(Type.String({ description: 'The first 12 characters of the default key, and ***; null when all keys are revoked.' })),
  plan: Type.Enum(['free', 'pro', 'scale']),
  cues: Type.Array(Type.String(), { description: 'Names of active and paused cues, newest first; at most 500.' }),
  instructions: Type.String()
})

export const Subscribe = Strict({
  callback_url: Type.String({ description: 'Gets a POST, signed like a callback, when the block changes. An answer of 410 ends that.' }),
  agent_id: Type.String({ minLength: 1, maxLength: 255, description: 'Subscribing again under the same name changes the address.' })
})
export const Subscribed = Type.Object({ subscribed: Type.Boolean(), agent_id: Type.String(), callback_url: Type.String() })
