/** The thread that `large-json.ts` starts: runs one piece of work after the other. */
import { parentPort } from 'node:worker_threads'
import { JsonError } from './canonical-json.ts'
import { work } from './json-work.ts'

export type Asked = { id: number; name: keyof typeof work; args: unknown[] }
export type Answered = { id: number; result?: unknown; fault?: { reason: JsonError['reason']; position: number; what: string } }

parentPort!.on('message', ({ id, name, args }: Asked) => {
  parentPort!.postMessage({ id, ...outcomeOf(name, args) } satisfies Answered)
})

/** Anything else thrown than a JsonError is a bug, and ends the thread. */
const outcomeOf = (name: keyof typeof work, args: unknown[]): Omit<Answered, 'id'> => {
  try {
    return { result: (work[name] as (...args: unknown[]) => unknown)(...args) }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const { reason, position, what } = error
    return { fault: { reason, position, what } }
  }
}
