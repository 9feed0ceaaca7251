/** Setup for tests of events: a stage that publishes and reads them. */
import type { Test } from 'tap'
import type { ReadEventsRow } from '../../src/database/functions.ts'
import type { EventType } from '../../src/db.types.ts'
import { overlapStage } from './overlap-stage.ts'
import type { Row } from './stage.ts'

export const worker = { transport: 'worker', callback_url: null, payload: '{"task": "go"}', task: 'go' }

export const eventStage = async (t: Test) => {
  const s = await overlapStage(t)
  const { fn, account_id, rows } = s
  const publish = async (options = {}) => {
    while ((await fn.publishEvents(options)) > 0);
  }
  /** A page after a place, from the oldest by default. */
  const read = async (args: object = {}) => {
    const page = await fn.readEvents({ account_id, after: -1, ...args })
    const [{ next_place, has_more, truncated }] = page as [ReadEventsRow]
    return { events: page.filter(({ id }) => id !== null) as Row[], next: next_place, has_more, truncated }
  }
  return {
    ...s,
    publish,
    read,
    /** The types of the events that have come about since the last call, published. */
    types: async (args: object = {}): Promise<EventType[]> => {
      await publish()
      const { events } = await read(args)
      await rows('delete from cue.events')
      return events.map(({ type }) => type)
    },
    subscribe: (events: 'all' | 'default' = 'all') => fn.updateAccount({ account_id, changes: { events } }),
    /** Changes a cue as the API does. */
    change: async (cue_id: string, changes: object, next_run: Date | null = null) =>
      fn.updateCue({ account_id, cue_id, version: (await s.run(cue_id)).version, changes, next_run }),
    /** Claims the next execution of a worker cue. */
    claimed: async (columns: object = {}) => {
      const cue_id = await s.cue({ ...worker, ...columns })
      const [execution] = await fn.fireCue({ account_id, cue_id, version: 1 }).then(row => [row])
      await fn.claimExecutions({ account_id, worker_id: 'w', execution_id: execution!.id })
      return { cue_id, execution_id: execution!.id }
    }
  }
}
export type EventStage = Awaited<ReturnType<typeof eventStage>>
