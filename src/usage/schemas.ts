/** Usage on the wire. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Nullable } from '../schemas.ts'

const Count = Type.Integer()
const Limit = Nullable(Type.Integer({ description: 'Of the account or its plan; null: no limit.' }))
const share = {
  used: Count,
  limit: Limit,
  remaining: Nullable(Count),
  percent_used: Type.Integer({ minimum: 0, maximum: 100, description: '100 only if the limit is reached.' })
}

export const Usage = Type.Object({
  plan: Type.Enum([...enums.plan]),
  billing_period: Type.Object({
    start: Type.String({ format: 'date' }),
    end: Type.String({ format: 'date', description: 'The last day of the UTC month.' }),
    days_remaining: Type.Integer({ description: 'Days after today.' })
  }),
  cues: Type.Object({ ...share, active: Type.Integer({ description: 'Active cues; `used` counts paused ones as well.' }) }),
  executions: Type.Object({
    ...share,
    projected_month_end: Type.Integer({ description: 'Projected from the days so far.' }),
    scheduled_until_month_end: Type.Integer({
      description:
        'What the schedules of the active cues will add until then: an estimate from up to 1,000 of them, which leaves out calendars and long lists of exclusions.'
    }),
    will_exceed_limit: Type.Boolean()
  }),
  outcomes: Type.Object(
    { reported: Count, succeeded: Count, failed: Count },
    { description: 'In this billing period. `failed` includes executions that failed or were missed without a report.' }
  ),
  rate_limit: Type.Object({
    requests_per_minute: Limit,
    limit: Nullable(Type.Integer({ description: 'Same as `requests_per_minute`.' })),
    current_usage: Type.Integer({
      description: 'Requests of this key, or of all sessions, in the last 60 seconds; 0 if rate limits are off.'
    })
  }),
  upgrade_url: Type.String()
})
