/** Schedules on the wire. */
import { type Static, Type } from 'typebox'
import { Nullable, Strict } from '../schemas.ts'
import type { Schedule } from './schedule.ts'

/** An instant in requests: RFC 3339 with a zone, at most milliseconds. `new Date` accepts all that pass. */
export const Instant = Type.String({
  format: 'date-time',
  pattern: ':[0-5]\\d(\\.\\d+)?([Zz]|[+-]\\d\\d:\\d\\d)$',
  description: 'ISO 8601 with `Z` or an offset.',
  examples: ['2030-01-15T09:00:00Z']
})

/** Members of a schedule in requests. Null is the same as absent. */
const members = {
  type: Type.Optional(Type.Enum(['recurring', 'once'], { description: 'Optional: implied by `cron` or `at`.' })),
  cron: Type.Optional(
    Nullable(
      Type.String({ description: 'Five fields, six with seconds first, or a macro such as `@daily`.', examples: ['0 9 * * MON-FRI'] })
    )
  ),
  at: Type.Optional(Nullable(Instant)),
  timezone: Type.Optional(Nullable(Type.String({ description: 'IANA time zone name. Default: `UTC`.', examples: ['Europe/London'] })))
}

export const GivenSchedule = Type.Object(members, { description: 'Either `cron` or `at`.' })
export const StrictSchedule = Strict(members, { description: 'Either `cron` or `at`.' })
export type GivenSchedule = Static<typeof GivenSchedule>

/** A schedule in responses: with `cron` or with `at`. */
export const ScheduleBody = Type.Unsafe<Schedule>(
  Type.Object({
    type: Type.Enum(['recurring', 'once']),
    cron: Type.Optional(Type.String()),
    at: Type.Optional(Type.String({ format: 'date-time' })),
    timezone: Type.String()
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
  )
})
