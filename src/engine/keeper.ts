/** Runs the engine's periodic tasks. It ticks by its own timer, so that a busy scheduler never delays a lease. */

/** `everyMs` 0 means at every tick. `isDue` decides as well, if there is one, and is called at every tick. */
export type PeriodicTask = { task: string; everyMs: number; isDue?: () => boolean; work: () => Promise<unknown> }

type Options = {
  tasks: PeriodicTask[]
  /** Runs a task; does nothing while it is still running. */
  run: (task: string, work: () => Promise<unknown>) => unknown
  tickMs: number
}

/** Runs all tasks at once, and then each at its interval. */
export const startKeeper = ({ tasks, run, tickMs }: Options) => {
  const lastAt = new Map<string, number>()

  const tick = () => {
    const time = performance.now()
    for (const { task, everyMs, isDue = () => true, work } of tasks) {
      if (!isDue() || time - (lastAt.get(task) ?? Number.NEGATIVE_INFINITY) < everyMs) continue
      lastAt.set(task, time)
      void run(task, work)
    }
  }
  const timer = setInterval(tick, tickMs)
  tick()

  return {
    /** Runs a task at the next tick. */
    soon: (task: string): void => void lastAt.delete(task),
    stop: (): void => clearInterval(timer)
  }
}
