/** Values outside of components that components follow. */
import { useEffect, useState } from 'preact/hooks'

export type Store<T> = { get: () => T; set: (value: T) => void; use: () => T }

export const createStore = <T>(first: T): Store<T> => {
  let value = first
  const listeners = new Set<() => void>()
  const get = () => value
  return {
    get,
    set: next => {
      value = next
      for (const listener of [...listeners]) listener()
    },
    use: () => {
      const [, redraw] = useState(0)
      useEffect(() => {
        const seen = value
        const listener = () => redraw(n => n + 1)
        listeners.add(listener)
        if (value !== seen) listener()
        return () => void listeners.delete(listener)
      }, [])
      return value
    }
  }
}
