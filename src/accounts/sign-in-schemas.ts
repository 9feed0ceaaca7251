/** Sessions, device codes and the deletion of accounts on the wire. */
import { Type } from 'typebox'
import { orElse, Strict, Timestamp } from '../schemas.ts'
import { scopes } from './admission.ts'
import { Register } from './schemas.ts'

const SessionToken = Type.String({ maxLength: 200, description: 'A one-time session token: good once, within 15 minutes.' })
const Jwt = Type.String({ description: 'A JWT, good for a year or until it is revoked, wherever an API key is.' })

export const OpenSession = Strict({ token: SessionToken })
export const Session = Type.Object({ session_token: Jwt, email: Type.String() })
export const EndSession = Type.Object({
  all: Type.Boolean({ default: false, description: 'End all sessions of the account, not only the one that asks.' })
})
export const EndedSessions = Type.Object({ revoked: Type.Integer({ description: 'How many ended.' }) })

export const Exchange = Strict({
  session_token: SessionToken,
  client_id: Type.String({ maxLength: 200, description: 'An approved client: one of MCP_CLIENT_IDS.' }),
  label: Type.Optional(Type.String({ minLength: 1, maxLength: 100 }))
})
export const Exchanged = Type.Object({
  api_key: Type.String({ description: 'The key itself. It is shown only now.' }),
  user_id: Type.String(),
  key_id: Type.String(),
  scopes: Type.Array(Type.Enum([...scopes])),
  expires_at: Type.Null()
})

/** Nothing that a mail program would make a link of, or a page show as anything but a code. */
const NewDeviceCode = orElse(
  'invalid_device_code',
  'device_code must be 6 to 128 letters, digits, - and _; make it of at least 128 random bits.',
  Type.String({
    minLength: 6,
    maxLength: 128,
    pattern: '^[A-Za-z0-9_-]+$',
    description: 'Made by the device; whoever knows it can sign in.'
  })
)
/** An existing code: one that cannot be is as unknown as any other. */
const DeviceCode = Type.String({ maxLength: 1000 })

export const CreateDeviceCode = Strict({ device_code: NewDeviceCode })
export const CreatedDeviceCode = Type.Object({
  device_code: Type.String(),
  verification_url: Type.String({ description: 'Where a person goes on.' }),
  expires_in: Type.Integer({ description: 'Seconds.' })
})
export const PollDeviceCode = Strict({ device_code: DeviceCode })
export const Polled = Type.Object({
  status: Type.Enum(['pending', 'email_sent', 'approved', 'claimed', 'expired']),
  email: Type.Optional(Type.String({ description: 'With `approved`, which is answered once; then it is `claimed`.' })),
  session_token: Type.Optional(Type.String({ description: 'With `approved`: a one-time token for POST /v1/auth/session.' })),
  api_key: Type.Optional(Type.String({ description: 'With `approved`, where this sign-in made the account. It is shown only now.' }))
})
export const SubmitEmail = Strict({ device_code: DeviceCode, ...Register.properties })
export const EmailSent = Type.Object({ status: Type.Enum(['email_sent']) })
export const DevicePage = Type.Object({ code: DeviceCode })
export const VerifyLink = Type.Object({ token: Type.String(), device_code: DeviceCode })
export const ConfirmLink = Strict({ token: Type.String(), device_code: DeviceCode })

export const DeletionRequested = Type.Object({
  message: Type.String(),
  grace_period_hours: Type.Integer(),
  can_cancel_until: Timestamp
})
export const CancelDeletion = Strict({ token: Type.String({ description: 'From the link in the mail.' }) })
export const DeletionCancelled = Type.Object({ cancelled: Type.Boolean() })
export const TokenLink = Type.Object({ token: Type.String() })
export const TokenForm = Strict({ token: Type.String() })

/** An answer that is a page. */
export const HtmlPage = { description: 'A page for people.', content: { 'text/html': { schema: Type.String() } } }
