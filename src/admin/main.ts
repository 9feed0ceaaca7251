#!/usr/bin/env node
/** The operator's command `pgcue-admin`: works on the databases themselves, with the settings of a replica. */
import { run } from './run.ts'

const stopping = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => {
    if (stopping.signal.aborted) process.exit(130)
    stopping.abort(new Error('stopped'))
  })
}
process.stdout.on('error', error => process.exit((error as NodeJS.ErrnoException).code === 'EPIPE' ? 0 : 1))

const { env, stdout, stderr } = process
process.exitCode = await run(process.argv.slice(2), { env, stdout, stderr, stopping: stopping.signal })
