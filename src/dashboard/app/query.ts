/** Reads that repeat while somebody looks: they pause while the page is hidden, and while the user types or has selected rows. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Failure, get, type Query, queryText, service } from './api.ts'

export type Read<T> = {
  data: T | undefined
  failure: Failure | undefined
  /** When `data` was read, by this computer's clock. */
  at: number
  isPaused: boolean
  reload: () => void
}

/** Answers by path, shown while they are read again. */
const cache = new Map<string, { data: unknown; at: number }>()
const mostCached = 50

/** Forgets everything, such as when somebody else signs in. */
export const forget = (): void => cache.clear()

const held = new Set<symbol>()
/** Holds all reading while `isHeld`, such as while rows are selected. */
export const useHold = (isHeld: boolean): void => {
  useEffect(() => {
    if (!isHeld) return
    const hold = Symbol()
    held.add(hold)
    return () => void held.delete(hold)
  }, [isHeld])
}

const isTyping = () => document.activeElement?.matches('input:not([type=checkbox]):not([type=search]), textarea, select') ?? false
export const isPausedNow = (): boolean => document.hidden || held.size > 0 || isTyping()

/** Milliseconds between reads: a plan's rate limit must have room for what its owner does. */
const pollMs = (): number => {
  const usual = service.callsPerMinute >= 200 ? 5000 : 10_000
  return hasRoom() ? usual : usual * 3
}
const hasRoom = () => service.callsLeft >= service.callsPerMinute / 3

type Options<T> = {
  repeat?: boolean
  /** Milliseconds to the next read, if something changes sooner than the usual one. */
  every?: (data: T) => number | undefined
}
/** Reads a path, now and every few seconds; `undefined` reads nothing. */
export const useRead = <T>(path: string | undefined, query: Query = {}, { repeat = true, every }: Options<T> = {}): Read<T> => {
  const key = path && path + queryText(query)
  const [, redraw] = useState(0)
  const state = useRef<{ key?: string; path?: string; data?: T; at: number; failure?: Failure; isPaused: boolean }>({
    at: 0,
    isPaused: false
  })
  const now = useRef(() => {})
  const soon = useRef(every)
  soon.current = every
  if (state.current.key !== key) {
    const there = key ? cache.get(key) : undefined
    // The rows of the same list stay until those of other filters are there.
    const before = path === state.current.path ? state.current : undefined
    state.current = { key, path, data: (there?.data as T | undefined) ?? before?.data, at: there?.at ?? 0, isPaused: false }
  }

  useEffect(() => {
    if (!key) return
    const stopped = new AbortController()
    let timer = 0
    const set = (changes: Partial<typeof state.current>) => {
      if (stopped.signal.aborted) return
      Object.assign(state.current, changes)
      redraw(n => n + 1)
    }
    const read = async () => {
      clearTimeout(timer)
      let waitMs = pollMs()
      try {
        const data = await get<T>(key, {}, stopped.signal)
        const at = Date.now()
        cache.delete(key)
        cache.set(key, { data, at })
        if (cache.size > mostCached) cache.delete(cache.keys().next().value!)
        if (hasRoom()) waitMs = Math.min(soon.current?.(data) ?? waitMs, waitMs)
        set({ data, at, failure: undefined, isPaused: false })
      } catch (error) {
        if (stopped.signal.aborted) return
        const failure = error instanceof Failure ? error : new Failure(0, 'bug', String(error))
        waitMs = Math.max(failure.retryAfter * 1000, failure.status === 0 ? 2000 : waitMs)
        set({ failure })
        if (failure.status === 404 || failure.status === 401 || failure.status === 403 || failure.status === 422) return
      }
      if (!stopped.signal.aborted) timer = window.setTimeout(again, waitMs)
    }
    const again = () => {
      if (!repeat && !state.current.failure) return
      if (!isPausedNow()) return void read()
      if (!state.current.isPaused) set({ isPaused: true })
      timer = window.setTimeout(again, 500)
    }
    now.current = () => void read()
    void read()
    return () => {
      stopped.abort()
      clearTimeout(timer)
    }
  }, [key, repeat])

  const reload = useCallback(() => now.current(), [])
  const { data, failure, at, isPaused } = state.current
  return { data, failure, at, isPaused, reload }
}
