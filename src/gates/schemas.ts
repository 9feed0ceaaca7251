/** Gates on the wire. */
import { type Static, Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Amount, Unit } from '../costs/schemas.ts'
import { Instant } from '../schedule/schemas.ts'
import { Listed, Nullable, notDots, orElse, Page, Strict, Timestamp } from '../schemas.ts'

const key = { pattern: `^${notDots}[A-Za-z0-9._:/-]{1,255}$` }

/** A malformed key gets the same error as an unknown one, unless the route creates the gate. */
export const GateParams = Type.Object({ gate_key: orElse('gate_not_found', 'Gate not found in this account.', Type.String(key)) })
/** A gate, or `key#part`. */
export const PartParams = Type.Object({
  gate_key: orElse(
    'gate_not_found',
    'Gate not found in this account.',
    Type.String({
      pattern: `^${notDots}[A-Za-z0-9._:/-]{1,255}(#[A-Za-z0-9._:/-]{1,255})?$`,
      description: 'Percent-encoded; with `%23` and a name, a part.'
    })
  )
})
export const NewGateParams = Type.Object({
  gate_key: Type.String({ ...key, description: 'Percent-encoded; without `#`, which begins the name of a part.' })
})

const Length = (description: string) => Type.String({ maxLength: 9, description: `${description} From \`1s\` to \`31d\`.` })

const gate = {
  parallel: Nullable(Type.Integer({ minimum: 1, maximum: 1000, description: 'Executions that may run at once. With `order`, 1.' })),
  rate: Nullable(Type.Integer({ minimum: 1, maximum: 10_000, description: 'Attempts that may start in any interval of length `per`.' })),
  per: Nullable(Length('The interval of `rate`.')),
  order: Type.Boolean({
    description: 'Whether the first due execution holds the others until it has ended, its retries included. Default: false.'
  }),
  on_failure: Type.Enum([...enums.gateOnFailure], {
    description: 'With `order`: what an execution that fails, is missed or times out does to the gate. Default: `continue`.'
  }),
  max_wait: Length('Executions that are held longer are missed. Default: `24h`.'),
  description: Nullable(Type.String({ maxLength: 2000, description: 'For people.' }))
}

const breaker = {
  failures: Type.Integer({ minimum: 1, maximum: 1000, description: 'Failed attempts in a row that open the breaker. Default: 10.' }),
  open_seconds: Type.Integer({
    minimum: 1,
    maximum: 86_400,
    description: 'Until the first probe; doubles with each that fails. Default: 30.'
  }),
  max_open_seconds: Type.Integer({ minimum: 1, maximum: 86_400, description: 'The longest such time. Default: 600.' })
}
const optionalBreaker = {
  failures: Type.Optional(breaker.failures),
  open_seconds: Type.Optional(breaker.open_seconds),
  max_open_seconds: Type.Optional(breaker.max_open_seconds)
}

const period = Type.Enum([...enums.budgetPeriod], { description: 'Weeks begin on Monday.' })

const settings = {
  parallel: Type.Optional(gate.parallel),
  rate: Type.Optional(gate.rate),
  per: Type.Optional(gate.per),
  order: Type.Optional(Nullable(gate.order)),
  on_failure: Type.Optional(Nullable(gate.on_failure)),
  breaker: Type.Optional(Nullable(Strict(optionalBreaker, { description: 'Holds attempts while a receiver fails.' }))),
  budget: Type.Optional(
    Nullable(
      Strict(
        {
          limit: Amount('What executions may cost in a period.'),
          unit: Unit,
          per: period,
          timezone: Type.Optional(Nullable(Type.String({ description: 'IANA time zone in which periods begin. Default: UTC.' }))),
          reserve: Type.Optional(Nullable(Amount('What each execution reserves from its start until it reports or ends.')))
        },
        { description: 'Limits the costs that executions report.' }
      )
    )
  ),
  max_wait: Type.Optional(Nullable(gate.max_wait)),
  description: Type.Optional(gate.description)
}
export const PutGate = Strict(settings)
export type PutGate = Static<typeof PutGate>

/** A gate in a list of declared cues. */
export const DeclaredGate = Strict({ key: Type.String(key), ...settings })
export type DeclaredGate = Static<typeof DeclaredGate>

export const Gate = Type.Object({
  key: Type.String(),
  ...gate,
  breaker: Nullable(Type.Object(breaker)),
  budget: Nullable(
    Type.Object({
      limit: Type.String(),
      unit: Type.String(),
      per: period,
      timezone: Type.String(),
      reserve: Nullable(Type.String())
    })
  ),
  paused_at: Nullable(Timestamp),
  paused_by: Nullable(Type.String()),
  pause_reason: Nullable(Type.String()),
  paused_until: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'When it goes on by itself.' })),
  created_at: Timestamp,
  updated_at: Timestamp
})

const state = {
  running: Type.Integer({ description: 'Executions that hold a place.' }),
  waiting: Type.Integer({ description: 'Executions that are held.' }),
  oldest_waiting_seconds: Nullable(Type.Number({ description: 'How long the first of them has been held.' })),
  next_start_at: Nullable(
    Type.Unsafe<Date>({
      ...Timestamp,
      description: 'When an attempt can start next, as far as time decides that; null: once another has ended.'
    })
  ),
  breaker_state: Nullable(
    Type.Object({
      state: Type.Enum(['closed', 'open', 'probing']),
      failures: Type.Integer({ description: 'Failed attempts in a row.' }),
      open_until: Nullable(Timestamp)
    })
  ),
  spent: Nullable(Type.String({ description: 'What executions reported in this period of the budget.' })),
  reserved: Nullable(Type.String({ description: 'What running executions have reserved.' }))
}
export const GateDetail = Type.Object({
  ...Gate.properties,
  ...state,
  period_ends_at: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'When the period of the budget ends.' })),
  parts: Type.Array(Type.Object({ part: Type.String(), ...state }), {
    description: 'The ten busiest parts; what is above are sums over all parts. Empty for a single part.'
  })
})

export const ListGates = Type.Object(Page())
export const Gates = Type.Object({
  gates: Type.Array(Gate),
  ...Listed
})

export const PauseGate = Strict({
  reason: Type.Optional(Nullable(Type.String({ maxLength: 500 }))),
  until: Type.Optional(Nullable(Instant))
})
export const ResumeGate = Strict({})
