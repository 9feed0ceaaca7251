/**
 * Decides when the engine does what. A turn does everything that can be done now; timers, notifications and ended deliveries ask for the next
 * one.
 */
import type { Pump } from '../deliveries/pump.ts'
import type { Ahead } from '../firing/look-ahead.ts'
import type { Deadlines } from './deadlines.ts'

type Options = {
  pump: Pick<Pump, 'turn' | 'wakeAt'>
  ahead: Pick<Ahead, 'hasDue' | 'nextDue'>
  /** Fires due cues that need no delivery slot; `missed` and `tracked` ones take longer. */
  firing: Record<(typeof recorded)[number], () => Promise<void>>
  deadlines: Pick<Deadlines, 'at' | 'meet'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  onError: (error: unknown, task: string) => void
  /** A task has succeeded. */
  onDone?: (task: string) => void
}

/** Kinds of cues that are fired without sending anything. */
const recorded = ['workers', 'missed', 'tracked'] as const

/** After a task has failed, before it runs again. */
const pauseMs = 500
const maxSleepMs = 60_000

export const createScheduler = ({ pump, ahead, firing, deadlines, now, onError, onDone = () => {} }: Options) => {
  // Task → whether to run it again.
  const running = new Map<string, boolean>()
  let isAsked = false
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  const wake = (): void => {
    if (isAsked || stopped) return
    isAsked = true
    setImmediate(turn)
  }

  const turn = () => {
    isAsked = false
    if (stopped) return
    pump.turn()
    for (const kind of recorded) if (ahead.hasDue(kind)) void run(`fire cues: ${kind}`, firing[kind])
    if (deadlines.at <= now()) void run('meet deadlines', deadlines.meet)
    clearTimeout(timer)
    const next = Math.min(pump.wakeAt, ahead.nextDue, deadlines.at)
    if (next < Number.POSITIVE_INFINITY) timer = setTimeout(wake, Math.min(Math.max(next - now(), 1), maxSleepMs))
  }

  const run = async (task: string, work: () => Promise<unknown>, isNotified = false): Promise<void> => {
    if (running.has(task)) return void (isNotified && running.set(task, true))
    try {
      do {
        running.set(task, false)
        await work()
      } while (running.get(task))
      onDone(task)
    } catch (error) {
      onError(error, task)
      await new Promise(resolve => setTimeout(resolve, pauseMs))
    } finally {
      running.delete(task)
      wake()
    }
  }

  return {
    /** Asks for a turn. Several calls in one round of the event loop make one turn. */
    wake,
    /**
     * Runs a task, then asks for a turn. Does nothing while a task of this name is running, or for half a second after it failed; `isNotified`: one
     * that is running runs again, as it may have missed what the notification was for.
     */
    run,
    /** Takes no further turns. */
    stop: (): void => {
      stopped = true
      clearTimeout(timer)
    }
  }
}
