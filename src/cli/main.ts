#!/usr/bin/env node
/** The `pgcue` executable: runs `run` in a process. */
import { run } from './run.ts'

const signal = () => new AbortController()
const stopping = signal()
const dying = signal()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => (stopping.signal.aborted ? dying : stopping).abort(name))
}
// The reader may close the pipe early: `pgcue cues list | head`.
process.stdout.on('error', error => process.exit((error as NodeJS.ErrnoException).code === 'EPIPE' ? 0 : 1))

const { env, stdin, stdout, stderr } = process
process.exitCode = await run(process.argv.slice(2), { env, stdin, stdout, stderr, stopping: stopping.signal, dying: dying.signal })
