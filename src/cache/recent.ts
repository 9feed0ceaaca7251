/**
 * Keeps the values used last, in two generations: when the newer one is full, it replaces the older. Deleting and setting hot keys instead, which
 * moves them to the end of a Map, leaves long chains of deleted entries.
 *
 * @param most total weight of what is kept
 */
export const createRecent = <K, V>(most: number, weightOf: (value: V) => number = () => 1) => {
  let recent = new Map<K, V>()
  let older = new Map<K, V>()
  let weight = 0

  const set = (key: K, value: V): void => {
    const added = weightOf(value)
    if (weight + added > most / 2) {
      older = recent
      recent = new Map()
      weight = 0
    }
    recent.set(key, value)
    weight += added
  }

  return {
    set,
    get: (key: K): V | undefined => {
      const value = recent.get(key)
      if (value !== undefined) return value
      const former = older.get(key)
      if (former !== undefined) set(key, former)
      return former
    }
  }
}
