/**
 * Caches the results of a function by argument, for values that never change. When `size` results are cached, the cache is cleared. Errors
 * are not cached.
 */
export const memoize = <K, V>(size: number, make: (key: K) => V): ((key: K) => V) => {
  const values = new Map<K, V>()
  return key => {
    let value = values.get(key)
    if (value === undefined) {
      value = make(key)
      if (values.size >= size) values.clear()
      values.set(key, value)
    }
    return value
  }
}
