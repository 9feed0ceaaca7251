/** Loaded into every process that is started: answers questions over IPC, and ends the process when the one that has started it ends. */
export type Usage = { cpu_s: number; rss_mb: number }

type Question = { id: number; name: string; argument: unknown }

/** Answers of this process; modules add their own. */
// biome-ignore lint/suspicious/noExplicitAny: the caller knows the argument
export const answers: Record<string, (argument: any) => unknown> = {
  usage: (): Usage => {
    const { user, system } = process.cpuUsage()
    return { cpu_s: (user + system) / 1e6, rss_mb: process.memoryUsage.rss() / 2 ** 20 }
  }
}

process.on('message', async ({ id, name, argument }: Question) => {
  try {
    process.send?.({ id, answer: await answers[name]!(argument) })
  } catch (error) {
    process.send?.({ id, error: (error as Error).message })
  }
})
process.on('disconnect', () => process.exit())
