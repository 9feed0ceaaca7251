/** What a measure is. A new one is a file that exports one, and a line in `measures` of main.ts. */
import type { Figure } from './figures.ts'
import type { Stage } from './stage.ts'

export type Options = {
  runs: number
  /** How many things, or seconds. */
  n: number
  /** A directory for CPU profiles of the service, where they are asked for. */
  profileDir: string | undefined
}

export type Measure = {
  /** One line about what is measured, with `n` in it. */
  title: (n: number) => string
  /** So many runs, and this n, unless the command line says otherwise. */
  runs: number
  n: number
  /** What n is, where it is no number of things. */
  unit?: 'seconds'
  measure: (stage: Stage, options: Options) => Promise<Figure[]>
}
