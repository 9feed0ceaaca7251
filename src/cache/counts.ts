/** Counts by name, such as those of an account, and their total. Names with nothing are forgotten. */
export const createCounts = () => {
  const counts = new Map<string, number>()
  let total = 0
  return {
    get total() {
      return total
    },
    of: (name: string): number => counts.get(name) ?? 0,
    names: (): string[] => [...counts.keys()],
    add: (name: string, number: number): void => {
      total += number
      const count = (counts.get(name) ?? 0) + number
      if (count === 0) counts.delete(name)
      else counts.set(name, count)
    }
  }
}
