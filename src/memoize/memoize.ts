/**
 * A function that keeps what it made, by its argument, at most `size` of them: full, it starts anew. For what is asked for again and again,
 * and never changes. What throws is not kept.
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
