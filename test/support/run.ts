/** Runs tasks of an engine's parts like its scheduler: one of a name at a time, and then `onEnd`. An error fails the test. */
export const createRun = (onEnd: () => void) => {
  const running = new Set<string>()
  return async (task: string, work: () => Promise<unknown>): Promise<void> => {
    if (running.has(task)) return
    running.add(task)
    await work()
    running.delete(task)
    onEnd()
  }
}
