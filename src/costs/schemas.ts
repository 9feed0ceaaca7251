/** Costs on the wire. */
import { type Static, Type } from 'typebox'
import { Instant } from '../schedule/schemas.ts'
import { Strict, Timestamp } from '../schemas.ts'

/** An amount of money or of anything else that is counted: exact, to nine places. */
export const Amount = (description: string) =>
  Type.Unsafe<string | number>({
    anyOf: [
      { type: 'string', pattern: '^\\d{1,15}([.]\\d{1,9})?$' },
      { type: 'number', minimum: 0, maximum: 1e15 }
    ],
    description: `${description} A string or a number, with at most nine decimal places.`
  })
export const Unit = Type.String({ minLength: 1, maxLength: 32, examples: ['usd', 'tokens'] })

export const Costs = Type.Array(Strict({ amount: Amount('What was spent.'), unit: Unit }), { maxItems: 10 })
export type Costs = Static<typeof Costs>

const unit = Type.String()
const amount = Type.String({ description: 'The exact sum.' })
/** Of an execution. */
export const Spent = Type.Array(Type.Object({ amount, unit }), {
  description: 'What its reports and evidence stated as costs: sums by unit. Members of the outcome.'
})

export const ReadCosts = Type.Object({
  by: Type.Enum(['cue', 'tag', 'day'], { default: 'day', description: 'Sums by cue, by tag of the cue, or by day (UTC).' }),
  from: Type.Optional({ ...Instant, description: 'Reported from this instant on. Default: 30 days before `to`.' }),
  to: Type.Optional({ ...Instant, description: 'Reported before this instant. Default: now.' })
})
export const CostSums = Type.Object({
  costs: Type.Array(
    Type.Object({
      cue_id: Type.Optional(Type.String({ description: 'With `by=cue`; the cue may have been deleted since.' })),
      tag: Type.Optional(Type.String({ description: 'With `by=tag`. What a cue with several tags spent counts for each.' })),
      day: Type.Optional(Type.String({ description: 'With `by=day`: YYYY-MM-DD.' })),
      unit,
      amount
    }),
    { description: 'Days in order, otherwise the most first; at most 1,000.' }
  ),
  has_more: Type.Boolean({ description: 'Whether there are more than 1,000 sums; use a shorter period.' }),
  from: Timestamp,
  to: Timestamp
})
