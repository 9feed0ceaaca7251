/** Gives new events their places in the feed: at once when a transaction that wrote one has committed, and now and then. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Functions } from '../database/functions.ts'

const batch = 1000
/** Between two calls, so that a flood is published in batches. */
const pauseMs = 20

export const createPublisher = ({ fn }: { fn: Pick<Functions, 'publishEvents'> }) => {
  let isNoticed = false

  return {
    /** To be called when there are new events: a call of `publish` that is running continues. */
    notice: (): void => {
      isNoticed = true
    },
    publish: async (): Promise<void> => {
      do {
        isNoticed = false
        // The last call finds nothing more to publish, and queues the endpoints of the batch before.
        while ((await fn.publishEvents({ limit: batch })) > 0);
        await delay(pauseMs)
      } while (isNoticed)
    }
  }
}
