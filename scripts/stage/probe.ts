/** Loaded into every process that is started: answers questions over IPC, and ends the process when the one that has started it ends. */

/** Answers of this process, which its module adds. */
// biome-ignore lint/suspicious/noExplicitAny: the caller knows the argument
export const answers: Record<string, (argument: any) => unknown> = {}

process.on('message', async ({ id, name, argument }: { id: number; name: string; argument: unknown }) => {
  try {
    process.send?.({ id, answer: await answers[name]!(argument) })
  } catch (error) {
    process.send?.({ id, error: (error as Error).message })
  }
})
process.on('disconnect', () => process.exit())
