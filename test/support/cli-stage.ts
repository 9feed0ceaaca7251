/** Setup for tests of the command line: a listening service, and `pgcue` in this process with its own environment. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { run } from '../../src/cli/run.ts'
import { build } from './setup.ts'

export type Ran = { code: number; out: string; err: string }
type Settings = {
  env?: Record<string, string>
  stdin?: string
  tty?: boolean
  stopping?: AbortSignal
  /** Called with everything written to stdout, or to stderr, while the command runs. */
  onOutput?: (text: string) => void
  onError?: (text: string) => void
}

/** Runs `pgcue` with these arguments. */
export const pgcue = async (
  args: string[],
  { env = {}, stdin = '', tty = false, stopping, onOutput, onError }: Settings = {}
): Promise<Ran> => {
  const said = { out: '', err: '' }
  const sink = (name: 'out' | 'err') => ({
    isTTY: tty,
    write: (text: string) => {
      said[name] += text
      const listen = name === 'out' ? onOutput : onError
      listen?.(text)
    }
  })
  const never = new AbortController().signal
  async function* input() {
    yield stdin
  }
  const io = {
    env,
    stdin: Object.assign(input(), { isTTY: tty }),
    stdout: sink('out'),
    stderr: sink('err'),
    stopping: stopping ?? never,
    dying: never
  }
  const code = await run(args, io)
  return { code, ...said }
}

export const cliStage = async (t: Test) => listening(t, await build(t))

/** The command line for a service built elsewhere. */
export const listening = async <S extends Awaited<ReturnType<typeof build>>>(t: Test, stage: S) => {
  const baseUrl = await stage.app.listen({ host: '127.0.0.1', port: 0 })
  const config = mkdtempSync(join(tmpdir(), 'pgcue-cli-'))
  t.teardown(() => rmSync(config, { recursive: true, force: true }))
  const env: Record<string, string> = { PGCUE_BASE_URL: baseUrl, PGCUE_API_KEY: stage.account.api_key, XDG_CONFIG_HOME: config }
  const cli = (args: string[], settings: Settings = {}) => pgcue(args, { ...settings, env: { ...env, ...settings.env } })
  return {
    ...stage,
    baseUrl,
    config,
    env,
    cli,
    /** Returns the parsed output of a command with --json. */
    json: async (args: string[], settings?: Settings) => {
      const { code, out, err } = await cli([...args, '--json'], settings)
      if (code !== 0) throw new Error(`exit code ${code}: ${err}`)
      return JSON.parse(out)
    }
  }
}
