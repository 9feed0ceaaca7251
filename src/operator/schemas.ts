/** The operator's figures on the wire. */
import { type TInteger, type TNull, type TOptional, type TUnion, Type } from 'typebox'
import { enums } from '../catalog.ts'
import { type Limits, limitBounds } from '../config.ts'
import { Nullable, Strict, Timestamp, Uuid } from '../schemas.ts'
import { questions } from './on-call.ts'

/** An instant made by SQL, as text. */
const At = Type.String({ format: 'date-time' })
const Count = Type.Integer()

const hold = {
  reason: Type.String(),
  by: Type.String({ description: 'The operator’s token, a session or key, or a database user.' }),
  since: Timestamp
}

const Figures = Type.Object({
  postgres: Type.String({ description: 'The version of PostgreSQL.' }),
  size_bytes: { ...Count, description: 'Size of the database.' },
  release: { ...Count, description: 'Number of the release that loaded functions and views.' },
  engines: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Nullable(Type.String({ description: '`REPLICA_NAME` of its replica.' })),
      version: Type.String(),
      state: Type.Enum(['live', 'silent', 'stopped'], { description: '`silent`: no heartbeat for seconds, and not stopped in order.' }),
      share: Type.Number({ description: 'Of the cues, from 0 to 1.' }),
      lateness_ms: Nullable(Type.Integer({ description: 'Of the latest scheduled delivery.' })),
      open_deliveries: Count,
      started_at: At,
      last_seen_at: At
    })
  ),
  queues: Type.Array(
    Type.Object({
      queue: Type.String(),
      waiting: Count,
      oldest: Nullable(
        Type.String({ format: 'date-time', description: 'Since when the oldest waits; when the first retry or deferred run is due.' })
      )
    }),
    { description: 'Waiting and running work by kind, counted up to 10,000.' }
  ),
  jobs: Type.Array(Type.Object({ queue: Type.String(), waiting: Count }), {
    description: 'Background jobs that wait, counted up to 10,000.'
  }),
  connections: Type.Array(Type.Object({ name: Type.String(), open: Count, active: Count }), {
    description: "Connections to the database's server by application name; up to 20 names."
  }),
  connection_limit: { ...Count, description: '`max_connections` of the server.' },
  partitions: Type.Array(
    Type.Object({
      table: Type.String(),
      month: Type.String(),
      rows: Nullable(Type.Integer({ description: 'As PostgreSQL estimates; null before its first `analyze`.' })),
      size_bytes: { ...Count, description: 'With indexes.' }
    })
  ),
  accounts: Type.Array(
    Type.Object({
      account_id: Type.String(),
      email: Type.String(),
      plan: Type.Enum([...enums.plan]),
      executions_used: { ...Count, description: 'In this UTC month.' },
      executions_per_month: Nullable(Type.Integer({ description: 'Its limit; null: none.' })),
      cues_used: { ...Count, description: 'Counted up to 1,000.' },
      cues: Nullable(Type.Integer({ description: 'Its limit; null: none.' }))
    }),
    { description: 'The 20 accounts with the most executions in this UTC month.' }
  ),
  migrations: Type.Array(Type.Object({ id: Count, name: Type.String(), applied_at: At }), { description: 'The latest 10, newest first.' }),
  migration_count: Count
})

export const Operator = Type.Object({
  version: Type.String({ description: 'Of this replica.' }),
  timestamp: Timestamp,
  hold: Nullable(Type.Object(hold, { description: 'The hold of the service.' })),
  held_accounts: Type.Array(Type.Object({ account_id: Type.String(), email: Type.String(), ...hold }), { description: 'Up to 1,000.' }),
  questions: Type.Array(Type.Object({ name: Type.String(), text: Type.String(), needs_cue: Type.Boolean() }), {
    description: 'Answered by `GET /v1/operator/on-call/{question}`.'
  }),
  cells: Type.Array(
    Type.Object({
      cell: Count,
      status: Type.Enum(['healthy', 'degraded', 'down']),
      reason: Nullable(Type.String()),
      figures: Nullable(Figures)
    })
  )
})

export const OnCallParams = Type.Object({ question: Type.Enum(Object.keys(questions)) })
export const OnCallQuery = Type.Object({
  cue_id: Type.Optional(Type.String({ description: 'The cue in question, for `late` and `changes`.' }))
})
export const Answer = Type.Object({
  question: Type.String(),
  rows: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: 'With several cells, each row has its `cell`, and a cell that does not respond has a row with its `error`.'
  })
})

export const unknownAccount = 'Account not found.'
const HeldAccount = Uuid('not_found', unknownAccount)
export const Hold = Strict({
  reason: Type.String({ minLength: 1, maxLength: 500, pattern: '\\S', description: 'Shown to everybody, as by `GET /status`.' }),
  account_id: Type.Optional(HeldAccount)
})
export const Held = Type.Object({ account_id: Nullable(Type.String()), ...hold })
export const Release = Type.Optional(Strict({ account_id: Type.Optional(HeldAccount) }))
export const Released = Type.Object({ released: Type.Boolean({ description: 'Whether it was held.' }) })

export const OpenOperatorSession = Strict({ operator_token: Type.String({ minLength: 1, maxLength: 1000 }) })

const Plan = Type.Enum([...enums.plan])
const limits = Object.fromEntries(
  Object.entries(limitBounds).map(([name, [minimum, maximum]]) => [name, Type.Optional(Nullable(Type.Integer({ minimum, maximum })))])
) as unknown as Record<keyof Limits, TOptional<TUnion<[TInteger, TNull]>>>
export const Account = Type.Object({
  id: Type.String(),
  email: Type.String(),
  plan: Plan,
  limits: Type.Object(limits, {
    description: 'Its own limits, instead of those of its plan. Null: no limit, as for the account of `npm start`.'
  })
})
export const Accounts = Type.Object({ accounts: Type.Array(Account) })
export const AccountParams = Type.Object({ account_id: Uuid('not_found', unknownAccount) })
export const AccountsQuery = Type.Object({
  search: Type.Optional(Type.String({ maxLength: 254, description: 'Part of the email address, or an id.' }))
})
export const ChangeAccount = Strict({
  plan: Type.Optional(Plan),
  limits: Type.Optional(
    Strict(limits, {
      description: "Overrides of the plan's limits, by the names in `PLANS`. Null removes one; limits that aren't named stay."
    })
  )
})
