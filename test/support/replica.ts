import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

const server = fileURLToPath(new URL('../../src/server.ts', import.meta.url))
const bundled = new URL('bundled.ts', import.meta.url).href

/** A replica as run by `npm start`, on any port of this machine, with this environment only. Killed at the end of the test if still running. */
export const startReplica = (t: Test, env: Record<string, string | undefined>) => {
  const settings = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    HOST: '127.0.0.1',
    PORT: '0',
    ENCRYPTION_KEYS: Buffer.alloc(32, 1).toString('base64'),
    SESSION_SECRET: 'a secret that is only for tests, of 32 characters'
  }
  const child = spawn(process.execPath, ['--import', bundled, server], { env: { ...settings, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const said = { out: '', err: '' }
  child.stdout.on('data', data => {
    said.out += data
  })
  child.stderr.on('data', data => {
    said.err += data
  })
  const ended = once(child, 'close').then(([code]): { code: number | null; out: string; err: string } => ({ code, ...said }))
  return {
    /** Resolves to its exit code, its log, and its output for the terminal. */
    ended,
    stderr: () => said.err,
    /** Its log so far. */
    lines: () =>
      said.out
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line)),
    pid: child.pid!,
    signal: (name: NodeJS.Signals) => child.kill(name)
  }
}
