/** The process as commands see it; tests replace it. */
import { UsageError } from './exit-codes.ts'

export type Io = {
  env: Record<string, string | undefined>
  stdin: AsyncIterable<Uint8Array | string> & { isTTY?: boolean }
  stdout: Sink
  stderr: Sink
  /** Aborted by the first SIGINT or SIGTERM. */
  stopping: AbortSignal
  /** Aborted by the second. */
  dying: AbortSignal
}
export type Sink = { write: (text: string) => unknown; isTTY?: boolean }

/** Asks on a terminal. @throws UsageError if there is none */
export const confirms = async (io: Io, question: string): Promise<boolean> => {
  if (!io.stdin.isTTY) throw new UsageError('to confirm without a terminal, give --yes')
  io.stderr.write(`${question} [y/N] `)
  for await (const line of io.stdin) return /^y(es)?\s*$/i.test(String(line))
  return false
}
