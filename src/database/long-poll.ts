/**
 * Long polls: requests that wait for claimable work or for events. They hold no database connection: a notification wakes the requests of its
 * account, and each queries again. The listener starts with the first of them. Because notifications may be lost, each account's work is polled,
 * too, and the place of the latest event for all accounts together.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { Functions } from './functions.ts'
import { createListener, type Listener } from './listener.ts'

type Options = {
  config: Config
  fn: Pick<Functions, 'latestPlace' | 'nextClaimable'>
  now: () => Date
  log: FastifyBaseLogger
  /** Aborted when the service begins to stop; waiting requests then get a response. */
  closing: AbortSignal
  /** Interval at which an account's requests query again. */
  pollMs?: number
  maxWaiting?: number
}

/** What a request waits for. */
type Topic = 'claimable' | 'events'

type Ask<T> = {
  topic?: Topic
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
  const topics = { claimable: new Map<string, Set<() => void>>(), events: new Map<string, Set<() => void>>() }
  let listener: Promise<Listener | undefined> | undefined
  let closed = false
  // The latest place in the feed that a notification named.
  let place = 0

  const wake = (topic: Topic, account_id: string) => {
    for (const wakeOne of [...(topics[topic].get(account_id) ?? [])]) wakeOne()
  }
  const wakeTopic = (topic: Topic) => {
    for (const account_id of [...topics[topic].keys()]) wake(topic, account_id)
  }
  const wakeAll = () => {
    wakeTopic('claimable')
    wakeTopic('events')
  }
  closing.addEventListener('abort', wakeAll)

  const onClaimable = (account_id: string, at: string) => {
    if (!topics.claimable.has(account_id)) return
    const ms = Number(at) - now().getTime()
    if (ms <= 0) wake('claimable', account_id)
    else if (ms < MAX_WAIT_SECONDS * 1000) setTimeout(wake, ms, 'claimable', account_id).unref()
  }

  const listen = () =>
    createListener(config, {
      channels: ['cue_claimable', 'cue_published'],
      onNotification: (channel, payload) => {
        const [first = '', ...rest] = payload.split(' ')
        if (channel === 'cue_claimable') return onClaimable(first, rest[0] ?? '')
        place = Math.max(place, Number(first))
        for (const account_id of rest) wake('events', account_id)
      },
      onConnected: wakeAll
    }).catch(error => {
      log.warn({ err: error }, 'long polls get no notifications: listener failed')
      listener = undefined
      return undefined
    })

  /** Wakes an account's requests when its next execution becomes claimable, and every `pollMs`, while it has any. */
  const pollClaimable = async (account_id: string, requests: Set<() => void>) => {
    while (topics.claimable.get(account_id) === requests) {
      const next = await fn.nextClaimable({ account_id }).catch(() => null)
      const nextMs = next ? Math.max(next.getTime() - now().getTime(), 1) : pollMs
      await delay(Math.min(nextMs, pollMs), undefined, { ref: false })
      wake('claimable', account_id)
    }
  }

  let isPolling = false
  /** Wakes all requests that wait for events, if there have been any without a notification. */
  const pollEvents = async () => {
    if (isPolling) return
    isPolling = true
    while (topics.events.size > 0) {
      await delay(pollMs, undefined, { ref: false })
      const latest = topics.events.size > 0 ? await fn.latestPlace({}).catch(() => 0) : 0
      if (latest > place) wakeTopic('events')
      place = Math.max(place, latest)
    }
    isPolling = false
  }

  /** Registers a waiting request. A wake-up between two sleeps ends the next sleep immediately. @throws ApiError above the account's limit */
  const register = (topic: Topic, account_id: string) => {
    let woken = Promise.withResolvers<void>()
    const wakeOne = () => woken.resolve()
    const requests = topics[topic].get(account_id) ?? new Set()
    const open = (topics.claimable.get(account_id)?.size ?? 0) + (topics.events.get(account_id)?.size ?? 0)
    if (open >= maxWaiting) throw tooMany(maxWaiting)
    topics[topic].set(account_id, requests.add(wakeOne))
    if (topic === 'events') void pollEvents()
    else if (requests.size === 1) void pollClaimable(account_id, requests)
    return {
      wake: wakeOne,
      /** Resolves to whether it was woken before its time. */
      sleep: async (ms: number): Promise<boolean> => {
        let isOver = false
        const timer = setTimeout(() => {
          isOver = true
          wakeOne()
        }, ms)
        await woken.promise
        clearTimeout(timer)
        woken = Promise.withResolvers()
        return !isOver
      },
      leave: () => {
        requests.delete(wakeOne)
        if (requests.size === 0) topics[topic].delete(account_id)
      }
    }
  }

  /** Registers a request that stays open, such as a stream. It is woken when there may be something new, and when its client has gone. */
  const watch = async (topic: Topic, account_id: string, signal: AbortSignal) => {
    if (!closed) listener ??= listen()
    await listener
    const watching = register(topic, account_id)
    signal.addEventListener('abort', watching.wake)
    return watching
  }

  return {
    watch,
    /** Calls `ask` now and whenever its result may have changed, until it returns something, `waitMs` is over or the client has gone. */
    until: async <T>({ topic = 'claimable', account_id, waitMs, signal, ask }: Ask<T>): Promise<T[]> => {
      const until = performance.now() + waitMs
      const first = await ask()
      // If the client has gone, the service may have closed meanwhile: don't start a listener.
      if (first.length > 0 || waitMs === 0 || signal.aborted || closed) return first
      const { sleep, leave } = await watch(topic, account_id, signal)
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
export type Waiting = ReturnType<typeof createWaiting>
