/**
 * Loaded into every process of the bench, including the service: answers questions about resource use over IPC, and ends the process when
 * the bench has ended.
 */
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'

export type Usage = { cpu_s: number; rss_mb: number }

type Question = { id: number; name: string; argument: unknown }
// biome-ignore lint/suspicious/noExplicitAny: who asks knows what to pass
type Answers = Record<string, (argument: any) => unknown>

const profiler = new Session()

/** Answers of this process; modules add their own. */
export const answers: Answers = {
  usage: (): Usage => {
    const { user, system } = process.cpuUsage()
    return { cpu_s: (user + system) / 1e6, rss_mb: process.memoryUsage.rss() / 2 ** 20 }
  },

  startProfile: async () => {
    profiler.connect()
    await profiler.post('Profiler.enable')
    await profiler.post('Profiler.setSamplingInterval', { interval: 200 })
    await profiler.post('Profiler.start')
  },

  stopProfile: async (file: string) => {
    const { profile } = await profiler.post('Profiler.stop')
    profiler.disconnect()
    writeFileSync(file, JSON.stringify(profile))
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
