/**
 * Caches the results of a function by argument, for values that never change. When `size` results are cached, the cache is cleared. Errors
 * are not cached.
 */
export const memoize = <K, V>(size: number, make: (key: K) => V): ((key: K) => V) => {
  const known = new Map<K, V>()
  return key => {
    let value = known.get(key)
    if (value === undefined) {
      value = make(key)
      if (known.size >= size) known.clear()
      known.set(key, value)
    }
    return value
  }
}
