/** Schedules on the wire. */
import { type Static, Type } from 'typebox'
import { Nullable, orElse, Strict } from '../schemas.ts'
import type { Schedule } from './schedule.ts'

/** An instant in requests: RFC 3339 with a zone, at most milliseconds. `new Date` accepts all that pass. */
export const Instant = Type.String({
  format: 'date-time',
  pattern: ':[0-5]\\d(\\.\\d+)?([Zz]|[+-]\\d\\d:\\d\\d)$',
  description: 'ISO 8601 with `Z` or an offset.',
  examples: ['2030-01-15T09:00:00Z']
})

export const DateText = Type.String({
  pattern: '^(\\d{4}-)?(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$',
  description: '`YYYY-MM-DD`, or `MM-DD` for every year.',
  examples: ['2026-12-25', '12-26']
})
const Point = (which: string) =>
  Type.String({
    maxLength: 40,
    pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:[0-5]\\d(:[0-5]\\d(\\.\\d{1,3})?)?([Zz]|[+-]\\d\\d:\\d\\d)?$',
    description: `${which}: ISO 8601 with \`Z\` or an offset, or without one a local time in the cue's zone.`,
    examples: ['2026-12-24T18:00']
  })
const range = { from: Point('The start (inclusive)'), to: Point('The end (exclusive)') }
export const Range = Type.Object(range)
export const GivenRange = Strict(range)

/** One of three kinds; which one is checked later. */
const exclusion = {
  dates: Type.Array(DateText, { minItems: 1, maxItems: 500, description: "Dates in the cue's time zone." }),
  ...range,
  cron: Type.String({ description: 'With `minutes`: the start of each excluded stretch.', examples: ['0 22 * * *'] }),
  minutes: Type.Integer({ minimum: 1, maximum: 366 * 24 * 60, description: 'Real minutes from each match of `cron`.' })
}
const nullable = Object.fromEntries(Object.entries(exclusion).map(([name, member]) => [name, Nullable(member)]))
export const Exclusion = Type.Partial(Type.Object(exclusion), { additionalProperties: false })
export type GivenExclusion = { [Name in keyof Static<typeof Exclusion>]: Static<typeof Exclusion>[Name] | null }
export const GivenExclusion = Type.Unsafe<GivenExclusion>(Type.Partial(Type.Object(nullable), { additionalProperties: false }))

const ofExclude = {
  maxItems: 50,
  description: 'Slots that do not run: each entry has `dates`, or `from` and `to`, or `cron` and `minutes` (at most ten of these).',
  examples: [[{ dates: ['12-25', '2026-12-26'] }, { cron: '0 22 * * *', minutes: 480 }]]
}

/** Members of recurring schedules, equal in requests and responses. */
const rules = {
  crons: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: 10,
    description: 'Several cron expressions. An instant that several of them name is one slot.',
    examples: [['0 9 * * MON-FRI', '0 12 * * SAT']]
  }),
  every: Type.String({
    maxLength: 20,
    description: 'Runs at regular intervals of real time: seconds, minutes, hours or days, from `10s` to `366d`.',
    examples: ['45m', '36h', '2d']
  }),
  anchor: Type.Unsafe<string>({
    ...Instant,
    description: 'With `every`: an instant from which slots are counted in both directions. Default: 1970-01-01T00:00:00Z.'
  }),
  starts_at: Type.Unsafe<string>({ ...Instant, description: 'No slot is earlier.' }),
  ends_at: Type.Unsafe<string>({ ...Instant, description: 'No slot is later. After the last one, the cue is `completed`.' }),
  max_runs: Type.Integer({
    minimum: 1,
    maximum: 2 ** 31 - 1,
    description: 'Number of scheduled runs after which the cue is `completed`. Fires, replays and slots that do not run are not counted.'
  }),
  exclude: Type.Array(Exclusion, ofExclude),
  exclude_calendars: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
    maxItems: 10,
    uniqueItems: true,
    description: 'Names of calendars whose dates and ranges do not run either: at most 2,000 dates and 1,000 ranges in total.'
  }),
  window: Type.String({
    maxLength: 20,
    description:
      'Spreads cues: each slot fires at a part of this window that the cue\u2019s id determines, and always before the next slot. A length such as `30m`, or a part of the distance to the next slot such as `25%`; at most 24 hours.',
    examples: ['30m', '25%']
  })
}

/** The same in requests. */
export const givenRules = {
  crons: Type.Optional(Nullable(rules.crons)),
  every: Type.Optional(Nullable(rules.every)),
  anchor: Type.Optional(Nullable(rules.anchor)),
  starts_at: Type.Optional(Nullable(rules.starts_at)),
  ends_at: Type.Optional(Nullable(rules.ends_at)),
  max_runs: Type.Optional(Nullable(rules.max_runs)),
  exclude: Type.Optional(Nullable(Type.Array(GivenExclusion, ofExclude))),
  exclude_calendars: Type.Optional(Nullable(rules.exclude_calendars)),
  window: Type.Optional(Nullable(rules.window))
}

/** Members of a schedule in requests. Null is the same as absent; in a change, it removes a bound or the anchor. */
const members = {
  type: Type.Optional(Type.Enum(['recurring', 'once'], { description: 'Optional: implied by the member that says when it runs.' })),
  cron: Type.Optional(
    Nullable(
      Type.String({ description: 'Five fields, six with seconds first, or a macro such as `@daily`.', examples: ['0 9 * * MON-FRI'] })
    )
  ),
  at: Type.Optional(Nullable(Instant)),
  in: Type.Optional(
    Nullable(
      Type.String({ maxLength: 20, description: 'Runs once, this long from now; stored as `at`. From `1s` to `366d`.', examples: ['10m'] })
    )
  ),
  timezone: Type.Optional(Nullable(Type.String({ description: 'IANA time zone name. Default: `UTC`.', examples: ['Europe/London'] }))),
  ...givenRules
}
const description = 'One of `cron`, `crons`, `every`, `at` and `in`.'

export const GivenSchedule = Type.Object(members, { description })
export const StrictSchedule = Strict(members, { description })
/** Of requests that are repeated, where an offset from now would be a change each time. */
export const DeclaredSchedule = Strict(
  {
    ...members,
    in: Type.Optional(
      orElse('validation_error', '`in` would differ each time; give `at`', Type.Null({ description: 'Not here: give `at`.' }))
    )
  },
  { description: 'One of `cron`, `crons`, `every` and `at`.' }
) as unknown as typeof StrictSchedule
export type GivenSchedule = Static<typeof GivenSchedule>

/** A schedule in responses: only with the members that are set. */
export const ScheduleBody = Type.Unsafe<Schedule>(
  Type.Object({
    type: Type.Enum(['recurring', 'once']),
    cron: Type.Optional(Type.String()),
    at: Type.Optional(Type.String({ format: 'date-time' })),
    timezone: Type.String(),
    ...Type.Partial(Type.Object(rules)).properties
  })
)

export const PreviewRequest = Strict({
  schedule: StrictSchedule,
  from: Type.Optional(Nullable(Instant)),
  count: Type.Integer({ minimum: 1, maximum: 50, default: 5 })
})

export const Preview = Type.Object({
  schedule: ScheduleBody,
  description: Type.String({ description: 'The schedule in words.' }),
  next: Type.Array(
    Type.Object({
      at: Type.String({ format: 'date-time' }),
      local: Type.String({ description: "The same instant as local time in the schedule's time zone." }),
      note: Nullable(Type.String({ description: 'The effect of a clock change on this run.' }))
    })
  ),
  excluded: Type.Array(Type.Object({ at: Type.String({ format: 'date-time' }), local: Type.String() }), {
    description: 'The first excluded slots before the last of these runs, at most `count`.'
  })
})
