/**
 * Long polls: requests that wait for claimable work. They hold no database connection: a notification wakes the requests of its account,
 * and each queries again. The listener starts with the first of them. Because notifications may be lost, each account is polled, too.
 */
import { setTimeout as delay } from 'node:timers/promises'
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
  /** Aborted when the service begins to stop; waiting requests then get a response. */
  closing: AbortSignal
  /** Interval at which an account's requests query again. */
  pollMs?: number
  maxWaiting?: number
}

type Ask<T> = {
  account_id: string
  waitMs: number
  /** Aborted when the client has gone. */
  signal: AbortSignal
  ask: () => Promise<T[]>
}

/** Maximum waiting requests per account. */
export const MAX_WAITING = 500
/** Maximum wait of one request. */
export const MAX_WAIT_SECONDS = 30

const tooMany = (most: number) =>
  new ApiError(
    'rate_limit_exceeded',
    `Too many long polls: an account may have ${most} open. Wait until one ends, or send the request without \`wait\`.`,
    {
      headers: { 'retry-after': '5' }
    }
  )

export const createWaiting = ({ config, fn, now, log, closing, pollMs = 5000, maxWaiting = MAX_WAITING }: Options) => {
  const accounts = new Map<string, Set<() => void>>()
  let listener: Promise<Listener | undefined> | undefined
  let closed = false

  const wake = (account_id: string) => {
    for (const wakeOne of [...(accounts.get(account_id) ?? [])]) wakeOne()
  }
  const wakeAll = () => {
    for (const account_id of [...accounts.keys()]) wake(account_id)
  }
  closing.addEventListener('abort', wakeAll)

  const listen = () =>
    createListener(config, {
      channels: ['cue_claimable'],
      onNotification: (_channel, payload) => {
        const [account_id = '', at = ''] = payload.split(' ')
        if (!accounts.has(account_id)) return
        const ms = Number(at) - now().getTime()
        if (ms <= 0) wake(account_id)
        else if (ms < MAX_WAIT_SECONDS * 1000) setTimeout(wake, ms, account_id).unref()
      },
      onConnected: wakeAll
    }).catch(error => {
      log.warn({ err: error }, 'long polls get no notifications: listener failed')
      listener = undefined
      return undefined
    })

  /** Wakes an account's requests when its next execution becomes claimable, and every `pollMs`, while it has any. */
  const poll = async (account_id: string, requests: Set<() => void>) => {
    while (accounts.get(account_id) === requests) {
      const next = await fn.nextClaimable({ account_id }).catch(() => null)
      const nextMs = next ? Math.max(next.getTime() - now().getTime(), 1) : pollMs
      await delay(Math.min(nextMs, pollMs), undefined, { ref: false })
      wake(account_id)
    }
  }

  /** Registers a waiting request. A wake-up between two sleeps ends the next sleep immediately. */
  const register = (account_id: string) => {
    let woken = Promise.withResolvers<void>()
    const wakeOne = () => woken.resolve()
    const requests = accounts.get(account_id) ?? new Set()
    if (requests.size >= maxWaiting) throw tooMany(maxWaiting)
    accounts.set(account_id, requests.add(wakeOne))
    if (requests.size === 1) void poll(account_id, requests)
    return {
      wake: wakeOne,
      sleep: async (ms: number) => {
        const timer = setTimeout(wakeOne, ms)
        await woken.promise
        clearTimeout(timer)
        woken = Promise.withResolvers()
      },
      leave: () => {
        requests.delete(wakeOne)
        if (requests.size === 0) accounts.delete(account_id)
      }
    }
  }

  return {
    /** Calls `ask` now and whenever its result may have changed, until it returns something, `waitMs` is over or the client has gone. */
    until: async <T>({ account_id, waitMs, signal, ask }: Ask<T>): Promise<T[]> => {
      const until = performance.now() + waitMs
      const first = await ask()
      // If the client has gone, the service may have closed meanwhile: don't start a listener.
      if (first.length > 0 || waitMs === 0 || signal.aborted || closed) return first
      listener ??= listen()
      await listener
      const { wake, sleep, leave } = register(account_id)
      signal.addEventListener('abort', wake)
      try {
        for (;;) {
          // After registering, so that no notification in between is missed.
          const results = await ask()
          const leftMs = until - performance.now()
          if (results.length > 0 || signal.aborted || closing.aborted || leftMs <= 0) return results
          await sleep(leftMs)
          if (signal.aborted) return []
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
