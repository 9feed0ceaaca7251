/**
 * Long polls: requests that wait for claimable work. They hold no database connection: a notification wakes the requests of its account,
 * and each queries again. The listener starts with the first of them.
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
  /** Aborted when the service begins to stop; waiting requests then get a response. */
  closing: AbortSignal
  /** Poll interval, because notifications may be lost. */
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

/** Maximum waiting requests per account. */
export const MAX_WAITING = 500
/** Maximum wait of one request. */
export const MAX_WAIT_SECONDS = 30

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
        else if (ms < MAX_WAIT_SECONDS * 1000) setTimeout(wake, ms, account_id).unref()
      },
      onConnected: wakeAll
    }).catch(error => {
      log.warn({ err: error }, 'long polls get no notifications: listener failed')
      listener = undefined
      return undefined
    })

  /** Registers a waiting request. A wake-up between two sleeps ends the next sleep immediately. */
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
    /** Calls `ask` now and whenever its result may have changed, until it returns something, `waitMs` is over or the client has gone. */
    until: async <T>({ account_id, waitMs, gone, ask }: Ask<T>): Promise<T[]> => {
      const until = performance.now() + waitMs
      const first = await ask()
      // If the client has gone, the service may have closed meanwhile: don't start a listener.
      if (first.length > 0 || waitMs === 0 || gone.aborted || closed) return first
      listener ??= listen()
      await listener
      if ((sleepers.get(account_id)?.size ?? 0) >= maxWaiting) throw tooMany(maxWaiting)
      const { wake, sleep, leave } = register(account_id)
      gone.addEventListener('abort', wake)
      try {
        for (;;) {
          // After registering, so that no notification in between is missed.
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
