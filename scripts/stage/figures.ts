/** Figures of a measurement: one value per run, shown as median with minimum and maximum. */
export type Figure = {
  /** As in the JSON line: snake_case, including the unit. */
  name: string
  /** One per run. */
  values: number[]
}

/** Returns the value below which a share of the sorted values lies. */
export const quantile = (sorted: number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

export const sorted = (values: number[]) => values.toSorted((a, b) => a - b)

export const median = (values: number[]): number => {
  const list = sorted(values)
  const middle = list.length >> 1
  return list.length % 2 ? list[middle]! : (list[middle - 1]! + list[middle]!) / 2
}

/** Returns one figure per key of the runs' results, in their order. Keys that the system cannot measure are omitted. */
export const figuresOf = (runs: Record<string, number>[], prefix = ''): Figure[] =>
  Object.keys(runs[0] ?? {})
    .filter(key => !Number.isNaN(runs[0]![key]))
    .map(key => ({ name: prefix + key, values: runs.map(run => run[key]!) }))

/** Formats figures as a table with one line each. */
export const table = (figures: Figure[]): string => {
  const width = Math.max(...figures.map(({ name }) => name.length))
  const lines = figures.map(({ name, values }) => {
    const spread = values.length > 1 ? `  (${short(Math.min(...values))} – ${short(Math.max(...values))})` : ''
    return `  ${name.padEnd(width)}  ${short(median(values)).padStart(9)}${spread}`
  })
  return lines.join('\n')
}

/** Formats figures as JSON for programs. */
export const summary = (figures: Figure[]) =>
  Object.fromEntries(
    figures.map(({ name, values }) => [name, [median(values), Math.min(...values), Math.max(...values)].map(value => Number(short(value)))])
  )

/** Three significant digits; measurements are less precise than that. */
const short = (value: number): string =>
  Math.abs(value) >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
