/** Work on JSON whose size a client chooses: pure functions of texts, so that the thread that `large-json.ts` starts can run them, too. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { canonicalJson, JsonError, mergeJson, split, splitList } from './canonical-json.ts'

export const work = {
  split,
  splitList,
  canonicalJson,
  mergeJson,
  /** A text as a JSON string: that of an escaped text of 1 MB takes 90 ms. */
  literal: (text: string): string => JSON.stringify(text)
}

export type Asked = { name: keyof typeof work; args: unknown[]; port: MessagePort }
export type Answered = { result?: unknown; fault?: { reason: JsonError['reason']; message: string } }

/** Identifies that thread. */
export const threadData = 'large JSON'

/** Anything else thrown than a JsonError is a bug, and ends the thread. */
const outcomeOf = (name: keyof typeof work, args: unknown[]): Answered => {
  try {
    return { result: (work[name] as (...args: unknown[]) => unknown)(...args) }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return { fault: { reason: error.reason, message: error.message } }
  }
}

if (workerData === threadData) {
  parentPort!.on('message', ({ name, args, port }: Asked) => port.postMessage(outcomeOf(name, args)))
}
