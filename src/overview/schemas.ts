/** The overview, errors and destinations on the wire. */
import { Type } from 'typebox'
import { Alert } from '../alerts/schemas.ts'
import { enums } from '../catalog.ts'
import { Instant } from '../schedule/schemas.ts'
import { Nullable, Timestamp } from '../schemas.ts'

/** An instant made by SQL, as text. */
const At = Type.String({ format: 'date-time' })
const Count = Type.Integer()
const { id, alert_type, severity, message, cue_id, execution_id } = Alert.properties
const ofCue = { cue_id: Type.String(), cue_name: Type.String() }

export const Overview = Type.Object(
  {
    since: { ...Timestamp, description: 'The figures are about executions created since then.' },
    running: { ...Count, description: 'Executions that have not ended.' },
    succeeded: Count,
    failed: { ...Count, description: 'Executions that failed, were missed, timed out, or were reported as failed.' },
    lateness_p50_ms: Nullable(Type.Integer({ description: 'From `due_at` to the start of the first attempt or claim.' })),
    lateness_p99_ms: Nullable(Count),
    by_status: Type.Record(Type.String(), Count, { description: 'The number of executions in each status; others are absent.' }),
    volume: Type.Array(Type.Object({ at: At, succeeded: Count, failed: Count, running: Count }), {
      description:
        'Executions by the time of their creation, in up to 50 equal parts of the window, of whole minutes; parts without any are absent.'
    }),
    per_minute: Type.Array(Type.Object({ at: At, succeeded: Count, failed: Count }), {
      description: 'Executions ended in the last hour; minutes without any are absent.'
    }),
    failing: Type.Array(
      Type.Object({
        ...ofCue,
        failures: { ...Count, description: 'Failed executions in a row.' },
        since: At,
        execution_id: Type.String({ description: 'The latest of them.' }),
        error: Nullable(Type.String())
      })
    ),
    waiting: Type.Array(
      Type.Object({
        task: Nullable(Type.String()),
        waiting: { ...Count, description: 'Among the 500 that have waited longest.' },
        since: At,
        execution_id: Type.String({ description: 'The one that has waited longest.' }),
        has_worker: Type.Boolean({ description: 'Whether a live worker handles the task.' })
      }),
      { description: 'Executions that wait for a worker, by task.' }
    ),
    waiting_for_person: Type.Array(Type.Object({ ...ofCue, execution_id: Type.String(), since: At }), {
      description: 'Outcomes to approve or reject.'
    }),
    paused: Type.Array(
      Type.Object({ ...ofCue, paused_by: Type.Enum([...enums.pauseCause]), reason: Nullable(Type.String()), paused_at: Nullable(At) }),
      { description: 'Cues that were not paused by a request.' }
    ),
    alerts: Type.Array(
      Type.Object({ id, alert_type, severity, message, cue_id, execution_id, created_at: At, resolved_at: Nullable(At) }),
      {
        description: 'Alerts to acknowledge, newest first.'
      }
    ),
    upcoming: Type.Array(Type.Object({ ...ofCue, next_run: At }), { description: 'Cues that run within an hour, among the newest 1,000.' })
  },
  { description: 'Figures on a time window, of the newest 2,000 executions at most. Lists have at most 20 items, `upcoming` 200.' }
)

export const OverviewQuery = Type.Object({
  from: Type.Optional({ ...Instant, description: 'Start of the window, at most 31 days ago. Default: 24 hours ago.' })
})

const windowOf = (standard: string) =>
  Type.Object({
    from: Type.Optional({ ...Instant, description: `Executions created at or after this instant; the last ${standard} by default.` }),
    to: Type.Optional({ ...Instant, description: 'Executions created before this instant.' })
  })
export const ListErrors = windowOf('7 days')
export const ListDestinations = windowOf('24 hours')

export const Errors = Type.Object(
  {
    since: { ...Timestamp, description: '`from`, or when the oldest of the newest 5,000 was created.' },
    total: { ...Count, description: 'Dead letters in all groups.' },
    groups: { ...Count, description: 'Number of groups, of which the 100 largest are listed.' },
    errors: Type.Array(
      Type.Object({
        error_group: Type.String({ format: 'uuid', description: 'Lists these executions as `GET /v1/executions?error_group=`.' }),
        status: Type.Enum([...enums.executionStatus]),
        http_status: Nullable(Count),
        message: Nullable(Type.String({ description: 'With an ellipsis for each number, time, address and id, which may differ.' })),
        count: Count,
        cues: { ...Count, description: 'Number of cues affected.' },
        first_at: { ...At, description: 'When the first of them ended.' },
        last_at: At,
        latest: Type.Object({ execution_id: Type.String(), ...ofCue, error_message: Nullable(Type.String()) })
      })
    )
  },
  {
    description:
      'Executions that failed, were missed or timed out, and were neither replayed nor dismissed: the newest 5,000 of the time window, by ' +
      'status, HTTP status and message.'
  }
)

const LatestAttempt = Type.Object({ at: At, http_status: Nullable(Count), error: Nullable(Type.String()), execution_id: Type.String() })
export const Destinations = Type.Object(
  {
    since: { ...Timestamp, description: '`from`, or when the oldest of the newest 2,000 executions was created.' },
    until: Timestamp,
    hosts: { ...Count, description: 'Number of hosts, of which the 100 busiest are listed.' },
    destinations: Type.Array(
      Type.Object({
        host: Type.String({ description: "Of the cue's current callback URL, with its port if it names one." }),
        cues: Count,
        attempts: Count,
        per_minute: Type.Number({ description: 'Attempts per minute.' }),
        failures: { ...Count, description: 'Failed attempts.' },
        response_p50_ms: Nullable(Type.Integer({ description: 'Response time, without attempts that got no response.' })),
        response_p95_ms: Nullable(Count),
        last_attempt: LatestAttempt,
        last_error: Nullable(Type.Object(LatestAttempt.properties, { description: 'The latest failed attempt.' })),
        volume: Type.Array(Type.Object({ at: At, succeeded: Count, failed: Count }), {
          description: 'Ended attempts in up to 25 equal parts of the window, of whole minutes; parts without any are absent.'
        })
      })
    )
  },
  { description: 'By the attempts of the newest 2,000 executions of the time window.' }
)
