/** Figures of a measurement by name: snake_case, including the unit. */
export type Figures = Record<string, number>

/** Returns the value below which a share of the sorted values lies. */
export const quantile = (sorted: number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

export const sorted = (values: number[]) => values.toSorted((a, b) => a - b)

export const median = (values: number[]): number => {
  const list = sorted(values)
  const middle = list.length >> 1
  return list.length % 2 ? list[middle]! : (list[middle - 1]! + list[middle]!) / 2
}

/** Repeats a measurement. */
export const times = async <T>(runs: number, run: (nth: number) => Promise<T>): Promise<T[]> => {
  const results: T[] = []
  while (results.length < runs) results.push(await run(results.length))
  return results
}

export const prefixed = (prefix: string, figures: Figures): Figures =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [prefix + name, value]))

/** Of each figure: median, minimum and maximum of all runs. Those that the system cannot measure are omitted. */
export const summary = (runs: Figures[]): Record<string, [median: number, min: number, max: number]> =>
  Object.fromEntries(
    Object.keys(runs[0] ?? {}).flatMap(name => {
      const values = runs.map(run => run[name]!)
      return values.some(Number.isNaN) ? [] : [[name, [short(median(values)), short(Math.min(...values)), short(Math.max(...values))]]]
    })
  )

/** Three significant digits; measurements are less precise than that. */
const short = (value: number): number => (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toFixed(Math.abs(value) >= 10 ? 1 : 2)))
