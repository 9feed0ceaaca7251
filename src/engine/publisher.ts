/** Gives new events their places in the feed. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Functions } from '../database/functions.ts'

const batch = 1000
/** Between two calls, so that a flood is published in batches. */
const pauseMs = 20

export const publishEvents = async (fn: Pick<Functions, 'publishEvents'>): Promise<void> => {
  // The last call finds nothing more to publish, and queues the endpoints of the batch before.
  while ((await fn.publishEvents({ limit: batch })) > 0);
  await delay(pauseMs)
}
