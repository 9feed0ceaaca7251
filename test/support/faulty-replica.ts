/** A replica with two threads and its own database, whose threads can be broken from outside; see faults.ts. */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createDatabase } from './database.ts'
import { eventually } from './eventually.ts'
import { startReplica } from './replica.ts'

/** Starting takes seconds while other tests run. */
export const patienceMs = 60_000

export const startFaultyReplica = async (t: Test, env: Record<string, string> = {}) => {
  const { url, pool } = await createDatabase(t)
  const hold = join(t.testdir({}), 'hold')
  const replica = startReplica(t, {
    DATABASE_URL: url,
    CALLBACK_ALLOW_HTTP: 'on',
    CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
    NODE_OPTIONS: `--import=${new URL('faults.ts', import.meta.url).href} --max-old-space-size=100`,
    FAULTS_HOLD: hold,
    ...env
  })
  const [, port] = await eventually(() => / at http:\/\/localhost:(\d+)/.exec(replica.stderr()), patienceMs)
  const call = async (path: string, body?: object, key?: string): Promise<string> => {
    const headers = { ...(key && { authorization: `Bearer ${key}` }), ...(body && { 'content-type': 'application/json' }) }
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: body ? 'POST' : 'GET',
      headers,
      body: body && JSON.stringify(body)
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`)
    return text
  }
  return {
    ...replica,
    pool,
    call,
    /** Blocks the API's thread until released. */
    block: async () => {
      void call('/fault/block').catch(() => {})
      await eventually(() => existsSync(hold), patienceMs)
      return { release: () => rmSync(hold) }
    },
    /** Ends the API's thread; the request gets no response. */
    end: (how: 'exhaust' | 'throw') => void call(`/fault/${how}`).catch(() => {}),
    errors: () => replica.lines().filter(({ level }) => level >= 50),
    /** A cue of a new account that fires every second. */
    everySecond: async (callback_url: string) => {
      const { api_key } = JSON.parse(await call('/v1/auth/register', { email: 'someone@example.com' }))
      await call('/v1/cues', { name: 'tick', cron: '* * * * * *', callback_url }, api_key)
    }
  }
}
