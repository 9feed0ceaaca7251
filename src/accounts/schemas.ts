/** Accounts, keys and secrets on the wire. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Listed, Nullable, Page, Strict, Timestamp, Uuid } from '../schemas.ts'
import { scopes } from './admission.ts'

const { plan: plans, webhookAuthorization: authorizations, keyOrigin: origins } = enums
const Label = Type.String({ minLength: 1, maxLength: 100, description: 'A name for the key.' })
const Scopes = Type.Array(Type.Enum([...scopes]), {
  minItems: 1,
  description:
    '`read`, `write` (change cues and executions), `worker` (claim and report), `account` (keys, secrets, plan), `approve` (decide about executions that wait for approval; not by default).'
})
const NewKey = Type.String({ description: 'The key itself. Shown only in this response.' })

/** The format also allows undeliverable addresses: quoted names, bare hosts and address literals. */
export const Email = Type.String({ format: 'email', pattern: '^[^"\\s]{1,64}@[^\\[\\s]+\\.[A-Za-z][A-Za-z0-9-]*$', maxLength: 254 })
export const Register = Strict({ email: Email })
export const Registered = Type.Object({ api_key: NewKey, email: Type.String(), id: Type.String(), plan: Type.Enum([...plans]) })

export const Me = Type.Object({
  id: Type.String(),
  email: Type.String(),
  plan: Type.Enum([...plans]),
  has_webhook_secret: Type.Boolean(),
  active_cues: Type.Integer({ description: 'Active and paused cues.' }),
  active_cue_limit: Nullable(Type.Integer({ description: 'Null: no limit, here and below.' })),
  monthly_executions: Type.Integer({ description: 'Same as `executions_this_month`.' }),
  executions_this_month: Type.Integer({ description: 'Since the first of the month in UTC.' }),
  monthly_execution_limit: Nullable(Type.Integer()),
  rate_limit_per_minute: Nullable(Type.Integer()),
  api_key_prefix: Nullable(Type.String()),
  memory_block_enabled: Type.Boolean(),
  alert_webhook_url: Nullable(Type.String()),
  webhook_authorization: Type.Enum([...authorizations]),
  events: Type.Enum(['default', 'all'], { description: 'Whether successes, retries and verifications are events, too.' }),
  approvals_by_link: Type.Boolean({ description: 'Whether the link in a message can approve and reject, or only a signed-in person.' }),
  scopes: Type.Array(Type.String(), { description: 'Scopes of the credential of this request.' }),
  is_operator: Type.Boolean({ description: 'Whether this browser or account may read `GET /v1/operator`.' }),
  created_at: Timestamp
})
export const UpdateMe = Strict(
  {
    memory_block_enabled: Type.Optional(Type.Boolean()),
    alert_webhook_url: Type.Optional(Type.String({ description: 'Where alerts are sent; an empty string removes it.' })),
    webhook_authorization: Type.Optional(
      Type.Enum([...authorizations], {
        description: 'The bearer token of webhooks: one valid for that execution only, or the default key itself.'
      })
    ),
    events: Type.Optional(
      Type.Enum(['default', 'all'], { description: '`all`: successes, retries and verifications are in `GET /v1/events`, too.' })
    ),
    approvals_by_link: Type.Optional(Type.Boolean({ description: 'Needs the scope `approve`.' }))
  },
  { minProperties: 1 }
)

export const KeyParams = Type.Object({ key_id: Uuid('key_not_found', 'Key not found in this account.') })
export const CreateKey = Strict({ label: Label, scopes: Type.Optional(Scopes) })
export const RenameKey = Strict({ label: Label })
const key = {
  id: Type.String(),
  prefix: Type.String({ description: 'The first 12 characters.' }),
  label: Label,
  scopes: Scopes,
  created_at: Timestamp
}
export const CreatedKey = Type.Object({ ...key, api_key: NewKey })
export const Key = Type.Object({
  ...key,
  created_by: Type.Enum([...origins]),
  is_default: Type.Boolean({ description: 'Whether GET /v1/auth/key returns this key.' }),
  last_used_at: Nullable(Timestamp),
  revoked_at: Nullable(Timestamp)
})
export const Keys = Type.Object({ keys: Type.Array(Key) })
export const RevokedKey = Type.Object({ id: Type.String(), revoked_at: Timestamp })
export const RegeneratedKey = Type.Object({
  api_key: NewKey,
  previous_key_revoked: Type.Boolean({ description: 'False if the account had no active key.' })
})
export const RevealedKey = Type.Object({ api_key: Type.String(), key_prefix: Type.String() })

export const Overlap = Type.Object({
  overlap_seconds: Type.Integer({
    minimum: 0,
    maximum: 86_400,
    default: 0,
    description: 'How long both secrets sign, so that receivers can switch to the new one.'
  })
})
const WebhookSecretText = Type.String({ description: 'whsec_ and 64 hex digits.' })
const AlertSecretText = Type.String({ description: '64 hex digits.' })
const regenerated = {
  previous_secret_revoked: Type.Boolean({ description: 'False while the old secret still signs, during the requested overlap.' })
}
export const WebhookSecret = Type.Object({ webhook_secret: WebhookSecretText })
export const NewWebhookSecret = Type.Object({ webhook_secret: WebhookSecretText, ...regenerated })
export const AlertWebhookSecret = Type.Object({ alert_webhook_secret: AlertSecretText })
export const NewAlertWebhookSecret = Type.Object({ alert_webhook_secret: AlertSecretText, ...regenerated })

export const ListEvents = Type.Object(Page())
export const Event = Type.Object({
  id: Type.String(),
  event: Type.String({ description: 'For example `key.created`.' }),
  actor: Type.String({ description: 'Who did it, such as `key:ID`, `session:ID`, `stripe` or `anonymous`.' }),
  ip: Nullable(Type.String()),
  detail: Type.Unsafe<object>({ type: 'object', additionalProperties: true }),
  created_at: Timestamp
})
export const Events = Type.Object({ events: Type.Array(Event), ...Listed })
