import { Type } from 'typebox'
import { constants } from '../catalog.ts'
import { Nullable, Timestamp } from '../schemas.ts'

const State = Type.Enum(['healthy', 'degraded', 'down'])
const Count = Nullable(Type.Integer())

const parts = {
  services: Type.Object({ postgres: State, poller: State, delivery: State }),
  poller: Type.Object(
    { last_run: Nullable(Timestamp), seconds_ago: Count, lateness_ms: Count },
    { description: 'The latest heartbeat of any engine, and the lateness of the latest scheduled delivery.' }
  ),
  workers: Type.Object(
    { active_count: Count, last_heartbeat: Nullable(Timestamp) },
    { description: `Workers with a heartbeat in the last ${constants.workerTimeoutMs / 60_000} minutes, and the latest heartbeat.` }
  ),
  queue: Type.Object(
    { pending: Count, retrying: Count, delivering: Count, pending_worker: Count, oldest_pending_seconds: Count },
    { description: 'Counted up to 10,000, at most every 5 seconds; null while the database is unavailable.' }
  ),
  replicas: Nullable(Type.Integer({ description: `Engines seen in the last ${constants.engineTimeoutMs / 1000} seconds.` }))
}

export const Health = Type.Object({
  status: State,
  reason: Type.Optional(Type.String()),
  version: Type.String(),
  replica: Type.String({ description: 'The replica that answered: its `REPLICA_NAME`, or host and process.' }),
  timestamp: Timestamp,
  ...parts,
  cells: Type.Optional(
    Type.Array(Type.Object({ id: Type.Integer(), status: State, reason: Type.Optional(Type.String()), ...parts }), {
      description: 'Health of each cell, if the service has several; everything else is about all of them.'
    })
  )
})

export const Status = Type.Object({ status: State, reason: Type.Optional(Type.String()) })
