/**
 * Requests that wait until something is claimable. They sleep without a connection; a notification wakes those of its account, and each asks
 * again. The listener starts with the first of them.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import type { Functions } from '../functions.ts'
import { createListener, type Listener } from '../listener.ts'

type Options = {
  config: Config
  fn: Pick<Functions, 'nextClaimable'>
  now: () => Date
  log: FastifyBaseLogger
  /** Whoever waits is answered when the service begins to stop. */
  closing: AbortSignal
}

type Ask<T> = {
  account_id: string
  waitMs: number
  /** Aborted when the client has gone. */
  gone: AbortSignal
  ask: () => Promise<T[]>
}

/** Notifications may be lost; this is how often is asked without one. */
const pollMs = 5000

export const createWaiting = ({ config, fn, now, log, closing }: Options) => {
  const sleepers = new Map<string, Set<() => void>>()
  let listener: Promise<Listener | undefined> | undefined

  const wake = (account_id: string) => {
    for (const one of [...(sleepers.get(account_id) ?? [])]) one()
  }
  const listen = () =>
    createListener(config, {
      channels: ['cue_claimable'],
      onNotification: (_channel, payload) => {
        const [account_id = '', at = ''] = payload.split(' ')
        const wait = Number(at) - now().getTime()
        if (wait <= 0) wake(account_id)
        else if (sleepers.has(account_id)) setTimeout(wake, wait, account_id).unref()
      },
      onConnected: () => {
        for (const account_id of sleepers.keys()) wake(account_id)
      }
    }).catch(error => {
      log.warn({ err: error }, 'no notifications for waiting requests')
      listener = undefined
      return undefined
    })

  const sleep = (account_id: string, ms: number, signals: AbortSignal[]) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const own = sleepers.get(account_id) ?? new Set()
    sleepers.set(account_id, own.add(resolve))
    const timer = setTimeout(resolve, ms)
    for (const signal of signals) signal.addEventListener('abort', () => resolve(), { once: true })
    return {
      woken: promise,
      end: () => {
        clearTimeout(timer)
        own.delete(resolve)
        if (own.size === 0) sleepers.delete(account_id)
      }
    }
  }

  return {
    /** Asks, and while there is nothing asks again whenever that may have changed, until the time is over or nobody waits any more. */
    until: async <T>({ account_id, waitMs, gone, ask }: Ask<T>): Promise<T[]> => {
      const until = performance.now() + waitMs
      let found = await ask()
      if (waitMs > 0 && found.length === 0) {
        listener ??= listen()
        await listener
      }
      while (found.length === 0 && !gone.aborted && !closing.aborted && performance.now() < until) {
        // Asleep first: what is notified while we ask must not be missed.
        const next = (await fn.nextClaimable({ account_id }))?.getTime()
        const untilNext = next === undefined ? pollMs : Math.max(next - now().getTime(), 1)
        const nap = sleep(account_id, Math.min(until - performance.now(), untilNext, pollMs), [gone, closing])
        found = await ask()
        if (found.length === 0) {
          await nap.woken
          if (!gone.aborted) found = await ask()
        }
        nap.end()
      }
      return found
    },
    close: async () => (await listener)?.close()
  }
}
