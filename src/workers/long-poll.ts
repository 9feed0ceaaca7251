/**
 * Requests that wait until something is claimable. They sleep without a connection; a notification wakes those of its account, and each asks
 * again. The listener starts with the first of them.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import type { Functions } from '../database/functions.ts'
import { createListener, type Listener } from '../database/listener.ts'
import { ApiError } from '../errors.ts'

type Options = {
  config: Config
  fn: Pick<Functions, 'nextClaimable'>
  now: () => Date
  log: FastifyBaseLogger
  /** Whoever waits is answered when the service begins to stop. */
  closing: AbortSignal
  /** Notifications may be lost; this is how often is asked without one. */
  pollMs?: number
  maxWaiting?: number
}

type Ask<T> = {
  account_id: string
  waitMs: number
  /** Aborted when the client has gone. */
  gone: AbortSignal
  ask: () => Promise<T[]>
}

/** Nobody waits longer. */
const longestMs = 30_000

/** Requests of one account that wait at once. */
export const MAX_WAITING = 500

type Sleeper = { wake: () => void }

const tooMany = (most: number) =>
  new ApiError(
    'rate_limit_exceeded',
    `Too many long polls: an account may have ${most} open. Wait until one ends, or send the request without \`wait\`.`,
    {
      headers: { 'retry-after': '5' }
    }
  )

export const createWaiting = ({ config, fn, now, log, closing, pollMs = 5000, maxWaiting = MAX_WAITING }: Options) => {
  const sleepers = new Map<string, Set<Sleeper>>()
  let listener: Promise<Listener | undefined> | undefined
  let closed = false

  const wake = (account_id: string) => {
    for (const sleeper of [...(sleepers.get(account_id) ?? [])]) sleeper.wake()
  }
  const wakeAll = () => {
    for (const account_id of [...sleepers.keys()]) wake(account_id)
  }
  closing.addEventListener('abort', wakeAll)

  const listen = () =>
    createListener(config, {
      channels: ['cue_claimable'],
      onNotification: (_channel, payload) => {
        const [account_id = '', at = ''] = payload.split(' ')
        if (!sleepers.has(account_id)) return
        const ms = Number(at) - now().getTime()
        if (ms <= 0) wake(account_id)
        else if (ms < longestMs) setTimeout(wake, ms, account_id).unref()
      },
      onConnected: wakeAll
    }).catch(error => {
      log.warn({ err: error }, 'long polls get no notifications: listener failed')
      listener = undefined
      return undefined
    })

  /** One request that sleeps now and then. A wake that comes between two sleeps ends the next one at once. */
  const register = (account_id: string) => {
    let woken = Promise.withResolvers<void>()
    const sleeper: Sleeper = { wake: () => woken.resolve() }
    const own = sleepers.get(account_id) ?? new Set()
    sleepers.set(account_id, own.add(sleeper))
    return {
      wake: sleeper.wake,
      sleep: async (ms: number) => {
        const timer = setTimeout(sleeper.wake, ms)
        await woken.promise
        clearTimeout(timer)
        woken = Promise.withResolvers()
      },
      leave: () => {
        own.delete(sleeper)
        if (own.size === 0) sleepers.delete(account_id)
      }
    }
  }

  return {
    /** Asks, and while there is nothing asks again whenever that may have changed, until the time is over or nobody waits any more. */
    until: async <T>({ account_id, waitMs, gone, ask }: Ask<T>): Promise<T[]> => {
      const until = performance.now() + waitMs
      const first = await ask()
      // A request whose client has gone may still be here when the service has closed: no listener must start then.
      if (first.length > 0 || waitMs === 0 || gone.aborted || closed) return first
      listener ??= listen()
      await listener
      if ((sleepers.get(account_id)?.size ?? 0) >= maxWaiting) throw tooMany(maxWaiting)
      const { wake, sleep, leave } = register(account_id)
      gone.addEventListener('abort', wake)
      try {
        for (;;) {
          // Asked only now that a notification would wake us: nothing can come in between unnoticed.
          const found = await ask()
          const leftMs = until - performance.now()
          if (found.length > 0 || gone.aborted || closing.aborted || leftMs <= 0) return found
          const next = await fn.nextClaimable({ account_id })
          const nextMs = next ? Math.max(next.getTime() - now().getTime(), 1) : pollMs
          await sleep(Math.min(leftMs, nextMs, pollMs))
          if (gone.aborted) return []
        }
      } finally {
        leave()
      }
    },
    close: async () => {
      closed = true
      await (await listener)?.close()
    }
  }
}
