/**
 * Runs the engine's periodic tasks. It ticks by its own timer, so that a busy scheduler never delays a lease. While nothing is in flight it ticks
 * rarely, and all that is due about then runs together: a process and a database that wake for one thing after another never rest.
 */

/** `everyMs` is rounded to ticks; 0 means at every tick. `isDue` decides as well, if there is one, and is called at every tick. */
export type PeriodicTask = { task: string; everyMs: number; isDue?: () => boolean; work: () => Promise<unknown> }

type Options = {
  /** Runs a task; does nothing while it is still running. */
  run: (task: string, work: () => Promise<unknown>) => unknown
  tickMs: number
  /** Between ticks while idle. */
  idleTickMs: number
  isIdle: () => boolean
}

export const createKeeper = ({ run, tickMs, idleTickMs, isIdle }: Options) => {
  let tasks: PeriodicTask[] = []
  const lastAt = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let isResting = false
  let isStopped = false

  const tickIn = (ms: number) => {
    clearTimeout(timer)
    if (!isStopped) timer = setTimeout(tick, ms)
  }

  const tick = () => {
    const time = performance.now()
    isResting = isIdle()
    const nextMs = isResting ? idleTickMs : tickMs
    for (const { task, everyMs, isDue = () => true, work } of tasks) {
      if (!isDue() || time - (lastAt.get(task) ?? Number.NEGATIVE_INFINITY) < everyMs - nextMs / 2) continue
      lastAt.set(task, time)
      void run(task, work)
    }
    tickIn(nextMs)
  }

  const rouse = () => {
    if (!isResting) return
    isResting = false
    tickIn(tickMs)
  }

  return {
    /** Runs all tasks at once, and then each at its interval. */
    start: (periodicTasks: PeriodicTask[]): void => {
      tasks = periodicTasks
      tick()
    },
    /** Runs a task at the next tick, which comes within `tickMs`. */
    soon: (task: string): void => {
      lastAt.delete(task)
      rouse()
    },
    /** To be called when this engine may have become busy: if so, the next tick comes within `tickMs`. */
    notice: (): void => {
      if (isResting && !isIdle()) rouse()
    },
    /** Tasks that are still running may call the others afterwards. */
    stop: (): void => {
      isStopped = true
      clearTimeout(timer)
    }
  }
}
