/** Defines a measure. To add one, export it from a new file and add a line to `measures` in main.ts. */
import type { Figure } from './figures.ts'
import type { Stage } from './stage.ts'

export type Options = {
  runs: number
  /** Number of cues or the like, or seconds. */
  n: number
  /** Directory for CPU profiles of the service, if requested. */
  profileDir: string | undefined
}

export type Measure = {
  /** One line about what is measured, including `n`. */
  title: (n: number) => string
  /** Default number of runs. */
  runs: number
  n: number
  /** The unit of n, unless it is a count. */
  unit?: 'seconds'
  measure: (stage: Stage, options: Options) => Promise<Figure[]>
}
