import { Type } from 'typebox'
import { AnyJson, orElse, Timestamp } from '../schemas.ts'

export const EchoParams = Type.Object({
  token: orElse(
    'invalid_token',
    'Echo tokens have 16 to 255 characters. Choose one that cannot be guessed.',
    Type.String({ minLength: 16, maxLength: 255 })
  )
})

/** Any text: nothing can be posted to a malformed token, so it stays `waiting`. */
export const AskedToken = Type.Object({ token: Type.String() })

export const Stored = Type.Object({ stored: Type.Boolean() })

export const Echo = Type.Object({
  status: Type.Enum(['waiting', 'delivered']),
  payload: Type.Optional(AnyJson({ description: 'The body as received; a string if it was not JSON.' })),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'X-Service-*, Content-Type and User-Agent, with names in lower case.' })
  ),
  received_at: Type.Optional(Timestamp)
})
