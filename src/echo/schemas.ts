import { Type } from 'typebox'
import { AnyJson, orElse, Timestamp } from '../schemas.ts'

export const EchoParams = Type.Object({
  token: orElse(
    'invalid_token',
    'An echo token has 16 to 255 characters; make up one that nobody guesses.',
    Type.String({ minLength: 16, maxLength: 255 })
  )
})

/** Whatever it looks like: nothing can have been posted to a malformed token, so it waits like any other. */
export const AskedToken = Type.Object({ token: Type.String() })

export const Stored = Type.Object({ stored: Type.Boolean() })

export const Echo = Type.Object({
  status: Type.Enum(['waiting', 'delivered']),
  payload: Type.Optional(AnyJson({ description: 'The body as it came; a string where that was no JSON.' })),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'X-Service-*, Content-Type and User-Agent, names in lower case.' })
  ),
  received_at: Type.Optional(Timestamp)
})
