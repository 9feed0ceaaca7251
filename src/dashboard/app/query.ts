/** Reads that repeat while somebody looks: they pause while the page is hidden, and while the user types or has selected rows. */
import { focusManager, QueryClient, QueryObserver, type QueryObserverOptions } from '@tanstack/query-core'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { type Failure, failureOf, get, type Query, queryText, service } from './api.ts'

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

const isFinal = ({ status }: Failure) => [401, 403, 404, 422].includes(status)

type Options<T> = {
  repeat?: boolean
  /** Milliseconds to the next read, if something changes sooner than the usual one. */
  every?: (data: T) => number | undefined
  /** Reads again when this changes. */
  after?: string
}
/** Reads a path, now and every few seconds; `undefined` reads nothing. */
export const useRead = <T>(path: string | undefined, query: Query = {}, { repeat = true, every, after }: Options<T> = {}): Read<T> => {
  const options = client.defaultQueryOptions({
    queryKey: [path, queryText(query)],
    queryFn: ({ signal }) => get<T>(path!, query, signal),
    // Also if the page is drawn again while it is hidden, with another time window. What is read once is read at once.
    enabled: () => path !== undefined && !(repeat && document.hidden),
    staleTime: 5000,
    refetchOnMount: 'always',
    refetchOnWindowFocus: repeat,
    // The rows of the same list stay until those of other filters are there.
    placeholderData: (before: T | undefined, of: { queryKey: readonly unknown[] } | undefined) =>
      of?.queryKey[0] === path ? before : undefined,
    refetchInterval: ({ state: { data, error } }: { state: { data: T | undefined; error: unknown } }) => {
      const failure = error ? failureOf(error) : undefined
      if (failure) return !isFinal(failure) && Math.max(failure.retryAfter * 1000, failure.status === 0 ? 2000 : pollMs())
      return repeat && Math.min((hasRoom() && data && every?.(data)) || pollMs(), pollMs())
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
