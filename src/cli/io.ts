/** The process as commands see it; tests replace it. */
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
