/**
 * Reads that repeat while somebody looks, after events and every few seconds: they pause while the page is hidden, and while the user types or has
 * selected rows.
 */
import { focusManager, QueryClient, QueryObserver, type QueryObserverOptions } from '@tanstack/query-core'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { type Failure, failureOf, get, type Query, queryText, service } from './api.ts'
import { type FeedEvent, isLive, openFeed } from './feed.ts'

export type Read<T> = {
  data: T | undefined
  failure: Failure | undefined
  /** When `data` was read, by this computer's clock. */
  at: number
  reload: () => void
}

// The service compares and orders; numbers that keep their digits must not be copied.
const client = new QueryClient({ defaultOptions: { queries: { networkMode: 'always', retry: false, structuralSharing: false } } })
client.mount() // to read again what is old when the page is shown

/** Forgets everything, such as when somebody else signs in. */
export const forget = (): void => client.clear()

const held = new Set<symbol>()
const isTyping = () => document.activeElement?.matches('input:not([type=checkbox]):not([type=search]), textarea, select') ?? false
export const isPausedNow = (): boolean => document.hidden || held.size > 0 || isTyping()
const update = () => focusManager.setFocused(!isPausedNow())
// Between two fields, neither has the focus.
for (const event of ['visibilitychange', 'focusin', 'focusout']) document.addEventListener(event, () => setTimeout(update))

/** Holds all reading while `isHeld`, such as while rows are selected. */
export const useHold = (isHeld: boolean): void => {
  useEffect(() => {
    if (!isHeld) return
    const hold = Symbol()
    held.add(hold)
    update()
    return () => {
      held.delete(hold)
      update()
    }
  }, [isHeld])
}

/** Milliseconds between reads: a plan's rate limit must have room for what its owner does. */
const pollMs = (): number => {
  const usual = service.callsPerMinute >= 200 ? 5000 : 10_000
  return hasRoom() ? usual : usual * 3
}
const hasRoom = () => service.callsLeft >= service.callsPerMinute / 3

/** Events after which a path is read again. Where something else matters, such as a success or a message, they are not the whole of it. */
const topics: Record<string, { types: RegExp; isWhole?: boolean }> = {
  overview: { types: /^(cue|execution|alert|task|limit)/, isWhole: true },
  cues: { types: /^(cue|execution|alert)/, isWhole: true },
  executions: { types: /^(execution|approval)/ },
  approvals: { types: /^approval/, isWhole: true },
  errors: { types: /^execution/, isWhole: true },
  destinations: { types: /^execution/ },
  workers: { types: /^task/ },
  alerts: { types: /^alert/ },
  operations: { types: /^operation/, isWhole: true },
  keys: { types: /^key/, isWhole: true },
  usage: { types: /^(cue|limit)/, isWhole: true }
}
type Key = readonly [path: string | undefined, query: string]
const topicOf = ([path = '', query]: Key) =>
  topics[query.includes('held=approval') ? 'approvals' : (/^\/v1\/(?:auth\/)?(\w+)/.exec(path)?.[1] ?? '')]
/** Whether an event is about what is read: a kind of object, or those that the address names. */
const concerns = (key: Key, { type, cue_id, execution_id, data }: FeedEvent) => {
  const named = key.join('').match(/cue_\w{12}|(?<=\/)[0-9a-f-]{36}/g) ?? []
  return topicOf(key)?.types.test(type) && named.every(id => [cue_id, execution_id, data.id].includes(id))
}

/** Milliseconds between reads beside those after events: together, they are no more than without events. */
const betweenMs = (key: Key, readAt: number): number =>
  !isLive(readAt) || !topicOf(key) ? pollMs() : topicOf(key)!.isWhole ? Math.max(30_000, pollMs()) : 2 * pollMs()

const changed = new Set<string>()
let next = 0
const readChanged = () => {
  next = Date.now() + pollMs()
  // Paused reads are made when it goes on.
  void client.invalidateQueries({
    predicate: ({ queryHash }) => changed.has(queryHash),
    refetchType: isPausedNow() ? 'none' : 'active'
  })
  changed.clear()
}
const hear = (event: FeedEvent | undefined) => {
  const isFirst = changed.size === 0
  for (const { queryHash, queryKey, meta } of client.getQueryCache().findAll({ type: 'active' }))
    if (meta?.repeat && (!event || concerns(queryKey as Key, event))) changed.add(queryHash)
  if (isFirst && changed.size > 0) setTimeout(readChanged, Math.max(next - Date.now(), 100))
}
/** Reads the account's events while somebody is signed in. */
export const useFeed = (): void => useEffect(() => openFeed(hear), [])

const isFinal = ({ status }: Failure) => [401, 403, 404, 422].includes(status)

type Options<T> = {
  repeat?: boolean
  /** Milliseconds to the next read, if something changes sooner than the usual one. */
  every?: (data: T) => number | undefined
  /** The least milliseconds between reads, beside those after events. */
  least?: number
  /** Reads again when this changes. */
  after?: string
}
/** Reads a path, now and every few seconds; `undefined` reads nothing. */
export const useRead = <T>(
  path: string | undefined,
  query: Query = {},
  { repeat = true, every, least = 0, after }: Options<T> = {}
): Read<T> => {
  const options = client.defaultQueryOptions({
    queryKey: [path, queryText(query)],
    queryFn: ({ signal }) => get<T>(path!, query, signal),
    // Also if the page is drawn again while it is hidden, with another time window. What is read once is read at once.
    enabled: () => path !== undefined && !(repeat && document.hidden),
    meta: { repeat },
    staleTime: 5000,
    refetchOnMount: 'always',
    refetchOnWindowFocus: repeat,
    // The rows of the same list stay until those of other filters are there.
    placeholderData: (before: T | undefined, of: { queryKey: readonly unknown[] } | undefined) =>
      of?.queryKey[0] === path ? before : undefined,
    refetchInterval: ({ state: { data, dataUpdatedAt, error } }: { state: { data?: T; dataUpdatedAt: number; error: unknown } }) => {
      const failure = error ? failureOf(error) : undefined
      if (failure) return !isFinal(failure) && Math.max(failure.retryAfter * 1000, failure.status === 0 ? 2000 : pollMs())
      const usual = Math.max(betweenMs([path, queryText(query)], dataUpdatedAt), least)
      return repeat && Math.min((hasRoom() && data && every?.(data)) || usual, usual)
    }
  } as QueryObserverOptions<T>)
  const [observer] = useState(() => new QueryObserver<T>(client, options as never))
  const [, redraw] = useState({})
  useEffect(() => observer.subscribe(() => redraw({})), [observer])
  useEffect(() => observer.setOptions(options as never))
  const { data, error, dataUpdatedAt, refetch } = observer.getOptimisticResult(options as never)
  const reload = useCallback(() => void refetch(), [refetch])
  useEffect(() => {
    if (data) reload()
  }, [after])
  return { data, failure: error ? failureOf(error) : undefined, at: dataUpdatedAt, reload }
}
